"""The tool recall: finds what was said and done earlier in this session, also what the model no longer sees.

The search itself is history_search.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from ba_tui.core.events import Event
from ba_tui.core.results import Prose, ToolResult
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.processes.terminal_text import shortened
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed

if TYPE_CHECKING:
    from ba_tui.tools.builtin.history_search import HistoryRound, Match, MessagePart

NAME = "recall"
DEFAULT_LIMIT = 5
PARTS = 3
"""Hits shown of one round."""
MAX_CHARS = 1_000_000
DISPLAY_CHARS = 20_000
OPENING_CHARS = 200
_ENDINGS = {
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    "error": "ended by an error",
    "limit": "stopped at a limit",
}

ReadHistory: TypeAlias = Callable[[], Awaitable[Sequence[Event]]]
"""Gives all events of this session so far, oldest first."""


async def nothing_said() -> Sequence[Event]:
    """The history of no session."""
    return ()


def recall_tool(definition: Definition, history: ReadHistory) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        from ba_tui.tools.builtin.history_search import rounds, search, terms_of  # noqa: PLC0415 - not before a search

        events = await history()
        found = await asyncio.to_thread(rounds, events, leaving_out=NAME)
        query: str = args.get("query", "")
        if "round" in args:
            first, last = int(args["round"]), int(args.get("to", args["round"]))
            return _whole(found, first, last, person=bool(args.get("person")))
        terms = len(terms_of(query))
        if not terms:
            return _overview(found)
        matches = await asyncio.to_thread(search, found, query)
        return _listed(matches, query, terms, int(args.get("limit", DEFAULT_LIMIT)), len(found))

    facts = ToolFacts("tasks", target="query", tags=("memory",), repeatable=True, bulky=True)
    return Tool(NAME, definition.description, definition.input_schema, run, facts=facts)


def _listed(matches: Sequence[Match], query: str, terms: int, limit: int, total: int) -> ToolResult:
    """``terms``: how many different ones the query has; ``total``: how many rounds were searched."""
    full = sum(match.terms == terms for match in matches)
    if not matches:
        text = f"None of the {count(total, 'round')} of this session holds {query!r}. Try other or fewer words."
        return ToolResult(text, summary="no match")
    head = f"{full} of {count(total, 'round')} with every word of {query!r}"
    head += f", {len(matches) - full} more with some of them." if len(matches) > full else "."
    lines = [head]
    for match in matches[:limit]:
        note = "" if match.terms == terms else f" · {match.terms} of {terms} words"
        lines.append(f"\n{_title(match.round)}{note}")
        lines += [f"- {part.who}: {excerpt}" for part, excerpt in match.parts[:PARTS]]
        if len(match.parts) > PARTS:
            lines.append(f"- … {len(match.parts) - PARTS} more places in this round")
    if len(matches) > limit:
        lines.append(f"\n[{len(matches) - limit} more; raise limit or add words]")
    lines.append("\nOne round whole: recall with round.")
    text = "\n".join(lines)
    return ToolResult(text, Prose(text), summary=count(len(matches), "round"), kind="hits")


def _whole(history: Sequence[HistoryRound], first: int, last: int, *, person: bool) -> ToolResult:
    """``person``: only what the person wrote, however long it is."""
    if not history or first > len(history) or last < first:
        there = f"the rounds 1 to {len(history)}" if history else "no rounds yet"
        hint = "Give round, and to when it should be more than one."
        raise Failed(
            "not_found", f"There is no round {first}{f' to {last}' if last != first else ''}; there are {there}.", hint
        )
    chosen = history[first - 1 : last]
    text = "\n\n".join(f"# {_title(item)}\n\n{_all_said(item, person=person)}" for item in chosen)
    if len(text) > MAX_CHARS and not person:
        text = shortened(text, MAX_CHARS)
    return ToolResult(text, Prose(shortened(text, DISPLAY_CHARS)), summary=count(len(chosen), "round"))


def _overview(history: Sequence[HistoryRound]) -> ToolResult:
    """What the rounds began with, the newest last."""
    lines = [f"{_title(item)}: {_opening(item)}" for item in history]
    text = "\n".join(lines) or "This session has no rounds yet."
    return ToolResult(text, Prose(shortened(text, DISPLAY_CHARS)), summary=count(len(history), "round"), kind="listing")


def _opening(item: HistoryRound) -> str:
    return one_line(item.parts[0].text, OPENING_CHARS) if item.parts else ""


def _all_said(item: HistoryRound, *, person: bool) -> str:
    return "\n\n".join(_said(part) for part in item.parts if part.person or not person)


def _said(part: MessagePart) -> str:
    return f"[{part.who}]\n{part.text if part.person else part.text.strip()}"


def _title(item: HistoryRound) -> str:
    try:
        moment = f"{datetime.fromtimestamp(item.at).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        moment = "at an unknown time"
    ending = _ENDINGS.get(item.ending)
    return f"Round {item.number} · {moment}{f' · {ending}' if ending else ''}"
