"""The conversation in a file that somebody else may have written: prompts, answers, calls, results, todos, titles.

An event enters an imported session only if ``KEPT`` names its type, and then only with fields that are conversation. A
new type of event is left out until it is added here. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ba_tui.core.events import (
    MAIN,
    AgentStarted,
    Compressed,
    Event,
    MessageDone,
    Notice,
    Rewound,
    Steered,
    Titled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import (
    Block,
    Document,
    Image,
    Message,
    MessageOrigin,
    RedactedThinking,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
    is_note,
)
from ba_tui.core.results import Display, StateChange, Table, ToolResult
from ba_tui.core.text.markup import OURS, neutralized
from ba_tui.core.text.patterns import regex
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.records import JournalEntry, UnknownRecord, loads

_AGENT = regex(rf"{MAIN}(?:/[A-Za-z0-9_.-]{{1,100}}){{0,8}}")
_DOTS = regex(r"/\.+(?:/|$)")
_NO_WORDS = Text("(This prompt held no words of the user.)")


def conversation_only(entries: Iterable[JournalEntry], left_out: Counter[str]) -> Iterator[Event]:
    """Yield what is conversation in ``entries``; ``left_out`` counts all other entries by their type."""
    for entry in entries:
        if isinstance(entry, UnknownRecord):
            left_out[one_line(str((loads(entry.line) or {}).get("type")), 40)] += 1
            continue
        keep = KEPT.get(type(entry))
        kept = keep(entry) if keep and _is_agent(entry.agent) else None
        if kept is None:
            left_out["damaged entry" if isinstance(entry, Notice) and entry.damage else entry.type] += 1
        else:
            yield kept


def _is_agent(name: str) -> bool:
    return _AGENT.fullmatch(name) is not None and not _DOTS.search(name)


def _prompt(event: TurnStarted) -> Event | None:
    if event.prompt.role != "user":
        return None
    said = _said(event.prompt)
    return replace(event, prompt=said if said.blocks else replace(said, blocks=(_NO_WORDS,)))


def _steered(event: Steered) -> Event | None:
    """Messages that the user saw; a hidden one is a note of the program."""
    message = event.message
    if message.hidden or message.role != "user" or message.origin not in {"user", "steer", "imported"}:
        return None
    said = _said(message)
    return replace(event, message=said) if said.blocks else None


def _answer(event: MessageDone) -> Event | None:
    return replace(event, message=_message(event.message)) if event.message.role == "assistant" else None


def _result(event: ToolFinished) -> Event:
    """The words of a result and what shows them. References into another session's files and data are dropped."""
    result = event.result
    todos = result.changes.todos if result.changes else None
    kept = ToolResult(
        neutralized(result.text, OURS),
        _shown(result.display),
        result.is_error,
        result.summary,
        _attached(result.attachments),
        result.error,
        None if todos is None else StateChange(todos=todos),
        kind=result.kind,
    )
    return replace(event, result=kept)


def _shown(display: Display | None) -> Display | None:
    return replace(display, handle="") if isinstance(display, Table) else display


def _compressed(event: Compressed) -> Event:
    return replace(event, messages=tuple(map(_message, event.messages)))


def _rewound(event: Rewound) -> Event | None:
    """The conversation goes back; files and their checkpoints belong to another session."""
    if event.turns is None:
        return None
    state = StateChange(todos=event.state.todos)
    return Rewound(tuple(map(_message, event.messages)), state, event.turns, agent=event.agent, at=event.at)


def _agent(event: AgentStarted) -> Event:
    """A sub-agent's transcript; its model and its copy of a project are dropped."""
    return replace(event, model="", worktree="", background=False)


def _title(event: Titled) -> Event:
    return replace(event, title=one_line(event.title))


def _as_it_is(event: Event) -> Event:
    return event


KEPT: Mapping[type, Callable[[Any], Event | None]] = {
    TurnStarted: _prompt,
    Steered: _steered,
    MessageDone: _answer,
    ToolStarted: _as_it_is,
    ToolFinished: _result,
    Compressed: _compressed,
    Rewound: _rewound,
    AgentStarted: _agent,
    Titled: _title,
    TurnEnded: _as_it_is,
}
"""The types of events that imports keep, each with the function that removes what is no conversation; None drops the
event. All other types are dropped."""


def _said(message: Message) -> Message:
    """A prompt without notes that the user could not see."""
    seen = tuple(block for block in message.blocks if not (isinstance(block, Text) and is_note(block.text)))
    return replace(_message(replace(message, blocks=seen)), hidden=False)


def _message(message: Message) -> Message:
    """``message`` without blocks that only its author's program or vendor understands, and without ba's own tags.

    Its origin says that no user typed it here: hosts and facts that it names are not the user's words.
    """
    origin: MessageOrigin = "imported" if message.origin in {"user", "steer", "memory", "skill"} else message.origin
    blocks = tuple(kept for block in message.blocks if (kept := _block(block, message.role)) is not None)
    return replace(message, blocks=blocks, origin=origin if message.role == "user" else "assistant")


def _block(block: Block, role: str) -> Block | None:
    match block:
        case Text(text=text):
            return Text(neutralized(text, OURS))
        case ToolOutput() if role == "user":
            return replace(block, content=neutralized(block.content, OURS), attachments=_attached(block.attachments))
        case Image(url=None) | Document() if role == "user":
            return block
        case Thinking() | RedactedThinking() | ToolUse() if role == "assistant":
            return block
        case _:
            return None


def _attached(blocks: Sequence[Image | Document]) -> tuple[Image | Document, ...]:
    """Pictures and documents that are in the file itself: a link would be fetched from its host."""
    return tuple(block for block in blocks if not (isinstance(block, Image) and block.url))
