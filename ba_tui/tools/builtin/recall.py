"""The tool recall: groups the events of a session into rounds of text and searches them, including what the model no
longer sees."""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from ba_tui.core.events import (
    PERSON,
    Answered,
    Asked,
    Event,
    MessageDone,
    Notice,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message
from ba_tui.core.ports.sessions import ReadHistory
from ba_tui.core.results import Prose, ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.processes.terminal_text import shortened
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failures import ToolFailure

NAME = "recall"
DEFAULT_LIMIT = 5
PARTS = 3
"""Matches shown of one round."""
MAX_CHARS = 1_000_000
DISPLAY_CHARS = 20_000
OPENING_CHARS = 200
_ENDINGS = {
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    "error": "ended by an error",
    "limit": "stopped at a limit",
}


def recall_tool(definition: Definition, history: ReadHistory) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
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

    return definition.tool(run)


def _listed(matches: Sequence[Match], query: str, terms: int, limit: int, total: int) -> ToolResult:
    """Return a result with the matches. ``terms``: number of terms in the query; ``total``: number of searched
    rounds."""
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
    """Return whole rounds. ``person``: only the user's own texts, of any length."""
    if not history or first > len(history) or last < first:
        there = f"the rounds 1 to {len(history)}" if history else "no rounds yet"
        hint = "Give round, and to when it should be more than one."
        raise ToolFailure(
            "not_found", f"There is no round {first}{f' to {last}' if last != first else ''}; there are {there}.", hint
        )
    chosen = history[first - 1 : last]
    text = "\n\n".join(f"# {_title(item)}\n\n{_all_said(item, person=person)}" for item in chosen)
    if len(text) > MAX_CHARS and not person:
        text = shortened(text, MAX_CHARS)
    return ToolResult(text, Prose(shortened(text, DISPLAY_CHARS)), summary=count(len(chosen), "round"))


def _overview(history: Sequence[HistoryRound]) -> ToolResult:
    """Return the beginnings of the rounds, the newest last."""
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


AROUND = 160
"""Characters shown on either side of a match."""
NEAR = 400
"""Terms within so many characters are shown together."""
PLACES = 200
"""Most places of a term that are compared."""
_QUOTED = regex(r'"([^"]+)"|(\S+)')
_BROKEN = {"cancelled": "cut off by the user", "error": "broke off", "max_tokens": "cut at its longest"}


@frozen
class MessagePart:
    """A part of a round: ``who`` in a few words, and the text. ``person``: the user wrote it."""

    who: str
    text: str
    person: bool = False


@dataclass(slots=True)
class HistoryRound:
    """The user's prompt and what followed. ``at``: seconds since the epoch; ``ending``: empty while the round runs."""

    number: int
    at: float
    parts: list[MessagePart] = field(default_factory=list[MessagePart])
    ending: str = ""


@frozen
class Match:
    """``terms``: number of different terms in the round; ``parts``: those with the most terms, best first."""

    round: HistoryRound
    terms: int
    parts: tuple[tuple[MessagePart, str], ...]


def rounds(events: Iterable[Event], *, leaving_out: str = "") -> list[HistoryRound]:
    """Return the rounds of a session, oldest first, also interrupted ones, without calls of ``leaving_out``."""
    found: list[HistoryRound] = []
    names: dict[str, str] = {}
    waiting: dict[str, None] = {}
    for event in events:
        if event.agent == PERSON:
            # Shared output of the user's commands is in messages; the rest is private.
            continue
        if isinstance(event, TurnStarted) and event.agent == "main":
            if found:
                _never_came(found[-1], names, waiting)
                found[-1].ending = found[-1].ending or "interrupted"
            found.append(HistoryRound(len(found) + 1, event.at))
        if not found:
            continue
        match event:
            case ToolStarted(call=call):
                names[call.id] = call.name
                if call.name != leaving_out:
                    waiting[call.id] = None
            case ToolFinished(call_id=call_id):
                waiting.pop(call_id, None)
            case _:
                pass
        part = _part(event, names, leaving_out)
        if part and part.text.strip():
            found[-1].parts.append(part)
        if isinstance(event, TurnEnded) and event.agent == "main":
            found[-1].ending = event.reason
            _never_came(found[-1], names, waiting)
    return found


def _never_came(item: HistoryRound, names: dict[str, str], waiting: dict[str, None]) -> None:
    item.parts += [MessagePart(f"result of {names[call_id]}", "(interrupted: no result)") for call_id in waiting]
    waiting.clear()


def _part(event: Event, names: dict[str, str], leaving_out: str) -> MessagePart | None:
    by = "" if event.agent == "main" else f" of {event.agent}"
    match event:
        case TurnStarted(prompt=message) if not message.hidden:
            return MessagePart(f"prompt{by}", message.text, person=event.agent == "main")
        case Steered(message=message) if not message.hidden:
            steered = message.origin == "steer"
            return MessagePart("the user, meanwhile" if steered else message.origin, message.text, person=steered)
        case MessageDone(message=message):
            return MessagePart(f"answer{by}{_how_broken(message)}", message.text)
        case ToolStarted(call=call) if call.name != leaving_out:
            given = call.malformed or json.dumps(call.input, ensure_ascii=False, default=str)
            return MessagePart(f"call{by} of {call.name}", given)
        case ToolFinished(call_id=call_id, result=result) if names.get(call_id) != leaving_out:
            failed = " (failed)" if result.failed else ""
            whole = f"\n[the whole result: {result.artifact}]" if result.artifact else ""
            return MessagePart(f"result{by} of {names.get(call_id, 'a tool')}{failed}", result.text + whole)
        case Asked(question=question) if question.kind == "choice":
            return MessagePart(f"question{by}", question.text)
        case Answered(reply=reply):
            return MessagePart("the user's answer", reply.text, person=True)
        case Notice(text=text):
            return MessagePart("notice", text)
        case TurnEnded(error=error) if error:
            return MessagePart("error", error.message)
        case _:
            return None


def _how_broken(message: Message) -> str:
    why = _BROKEN.get(message.stop or "")
    return f" ({why})" if why else ""


def terms_of(query: str) -> list[str]:
    """Return the different terms of a query; text in double quotes is one term."""
    found = (" ".join((quoted or term).split()) for quoted, term in _QUOTED.findall(_normal(query)))
    return list({term.casefold(): term for term in found if term.strip('"')}.values())


def search(history: Sequence[HistoryRound], query: str) -> list[Match]:
    """Return rounds with all terms of ``query``, newest first, then those with some, most terms first.

    The running round is last among equals, as it mostly repeats the question. Case is ignored. Terms match within
    words, so that languages without spaces work too.
    """
    terms = [re.compile(re.escape(term).replace(r"\ ", r"\s+"), re.IGNORECASE) for term in terms_of(query)]
    if not terms:
        return []
    matches = [match for item in history if (match := _match(item, terms))]
    return sorted(matches, key=lambda match: (-match.terms, not match.round.ending, -match.round.number))


def _match(item: HistoryRound, terms: Sequence[re.Pattern[str]]) -> Match | None:
    held: set[int] = set()
    parts: list[tuple[int, int, MessagePart, str]] = []
    for place, part in enumerate(item.parts):
        text = _normal(part.text)
        found_at = {number: match_at.start() for number, term in enumerate(terms) if (match_at := term.search(text))}
        if found_at:
            held |= found_at.keys()
            parts.append((-len(found_at), place, part, _excerpt(text, terms, found_at)))
    if not parts:
        return None
    parts.sort(key=lambda entry: entry[:2])
    return Match(item, len(held), tuple((part, excerpt) for _, _, part, excerpt in parts))


def _excerpt(text: str, terms: Sequence[re.Pattern[str]], found_at: dict[int, int]) -> str:
    """Return the text around the place with the most terms."""
    rarest = max(found_at, key=lambda number: len(terms[number].pattern))
    start, end, most = found_at[rarest], found_at[rarest] + 1, 0
    for match_at in islice(terms[rarest].finditer(text), PLACES):
        around = max(0, match_at.start() - NEAR), match_at.end() + NEAR
        near = [found for term in terms if (found := term.search(text, *around))]
        if len(near) > most:
            start, end, most = min(found.start() for found in near), max(found.end() for found in near), len(near)
        if most == len(found_at):
            break
    start, end = max(0, start - AROUND), min(len(text), end + AROUND)
    shown = text[start:end]
    if start:
        # Cut at a space if there is one.
        shown = shown[max(0, shown.find(" ", 0, 20)) :]
    return f"{'…' if start else ''}{' '.join(shown.split())}{'…' if end < len(text) else ''}"


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
