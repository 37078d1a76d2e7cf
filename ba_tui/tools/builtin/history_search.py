"""Groups a session's events into rounds of text, and searches them. Pure: events in, values out.

What the model reads of a hit is recall.py; where the events come from is the caller's business.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

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
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

AROUND = 160
"""Characters shown on either side of a hit."""
NEAR = 400
"""Words of a query that lie within so many characters are shown together."""
PLACES = 200
"""Places of a word that are looked at for the best one."""
_QUOTED = regex(r'"([^"]+)"|(\S+)')
_BROKEN = {"cancelled": "cut off by the person", "error": "broke off", "max_tokens": "cut at its longest"}


@frozen
class MessagePart:
    """Something said or done in a round: ``who`` in a few words, and the words themselves. ``person``: the person
    wrote them."""

    who: str
    text: str
    person: bool = False


@dataclass(slots=True)
class HistoryRound:
    """What the person said and all that followed. ``at`` in seconds since the epoch; ``ending`` empty while it runs."""

    number: int
    at: float
    parts: list[MessagePart] = field(default_factory=list[MessagePart])
    ending: str = ""


@frozen
class Match:
    """``terms``: how many different ones of the query the round holds; ``parts``: those with the most, best first."""

    round: HistoryRound
    terms: int
    parts: tuple[tuple[MessagePart, str], ...]


def rounds(events: Iterable[Event], *, leaving_out: str = "") -> list[HistoryRound]:
    """The rounds of a session, oldest first, interrupted ones included; calls of ``leaving_out`` are not in them."""
    found: list[HistoryRound] = []
    names: dict[str, str] = {}
    waiting: dict[str, None] = {}
    for event in events:
        if event.agent == PERSON:
            # What is shared of their commands is in messages; the rest is private.
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
            return MessagePart("the person, meanwhile" if steered else message.origin, message.text, person=steered)
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
            return MessagePart("the person's answer", reply.text, person=True)
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
    """The words of a query, each once; what stands in double quotes is one."""
    found = (" ".join((quoted or term).split()) for quoted, term in _QUOTED.findall(_normal(query)))
    return list({term.casefold(): term for term in found if term.strip('"')}.values())


def search(history: Sequence[HistoryRound], query: str) -> list[Match]:
    """Rounds that hold all words of ``query``, newest first, then those with some, the most first.

    The round that still runs comes behind its like: its words are mostly those of the question itself.
    Letter case does not count. Words are found within words, so that it also works where no spaces are written.
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
    """The text around the place where the most words stand together."""
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
        # Whole words, where there are spaces to go by.
        shown = shown[max(0, shown.find(" ", 0, 20)) :]
    return f"{'…' if start else ''}{' '.join(shown.split())}{'…' if end < len(text) else ''}"


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
