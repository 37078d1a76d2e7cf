"""Cutting: bulky observations become stubs of their main lines; as a last resort messages are removed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from ba_tui.context.compression.facts import Importance, failed, result_lines, target, weight
from ba_tui.context.compression.keywords import KnownWords, scored_lines
from ba_tui.context.compression.notes import LeftOut, Notes, read, written
from ba_tui.context.compression.rounds import Count, Round, Rounds, base_id, changed, opening, rounds_of
from ba_tui.context.compression.user_text import (
    ASKING,
    UserText,
    is_answer,
    size,
    split_answer,
    texts_in,
    texts_of,
    written_in,
)
from ba_tui.core.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
    reminder,
    user,
)
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

BULKY = 1_200
"""Bytes from which on an observation is cut."""
LONG = 1_000
"""The same for user texts."""
LEAST = 160
MARK = "[stub · "
_WHOLE = regex(r"\bdata/[\w.-]+")
_PICTURE = 2_000


@frozen
class CutResult:
    """``blocks`` that replace ``span`` others."""

    blocks: tuple[Block, ...]
    span: int = 1


@frozen
class Observation:
    """A bulky result or a long user text, with its size in bytes. ``span``: its blocks; ``bad``: the call failed."""

    message: int
    block: int
    round: int
    call: str
    size: int
    output: ToolOutput | UserText
    span: int = 1
    bad: bool = False

    @property
    def title(self) -> str:
        return f"round {self.round} · {self.call}"

    @property
    def alone(self) -> Message:
        """Return it as a message, to be counted."""
        return output_message(self.output)


def output_message(output: ToolOutput | UserText) -> Message:
    """Return a message with ``output`` only, to be counted."""
    return Message("user", blocks_of(output), origin="tool", id="")


def blocks_of(output: ToolOutput | UserText) -> tuple[Block, ...]:
    return output.blocks if isinstance(output, UserText) else (output,)


def observations(rounds: Sequence[Round], offset: int = 0, *, words: bool = False) -> list[Observation]:
    """Return the bulky results, and with ``words`` user texts; ``offset``: the position of the first message."""
    found: list[Observation] = []
    place = offset
    for item in rounds:
        calls: dict[str, ToolUse] = {}
        for number, message in enumerate(item.messages):
            for index, block in enumerate(message.blocks):
                if isinstance(block, ToolUse):
                    calls[block.id] = block
                elif isinstance(block, ToolOutput) and (bytes_ := _size(block)) > BULKY:
                    call = calls.get(block.tool_use_id)
                    name = f"{call.name} {target(call)}".strip() if call else "a call"
                    if words or call is None or not is_answer(call, block):
                        bad = failed(block, call)
                        found.append(Observation(place, index, item.number, name, bytes_, block, bad=bad))
            if words:
                for text in written_in(message, item.number, begins=number == 0, calls={}):
                    if text.written.size > LONG:
                        here = (place, text.index, item.number, "a text of the user", text.written.size)
                        found.append(Observation(*here, text.written, text.span))
            place += 1
    return found


def _size(output: ToolOutput) -> int:
    return 0 if output.content.startswith(MARK) else size(output.content) + _PICTURE * len(output.attachments)


def stub(found: Observation, room: int, known: KnownWords | None = None) -> ToolOutput | UserText:
    """Return ``found`` in about ``room`` bytes, with a note on how to read the whole."""
    output = found.output
    if isinstance(output, UserText):
        return output.within(room)
    announced, said = split_answer(output.content)
    if announced and found.call.startswith(ASKING):
        answer = UserText(found.round, said).within(room)
        return replace(output, content=announced + "".join(block.text for block in answer.blocks))
    every = result_lines(output)
    parts = [f"{MARK}{found.title} · {len(output.content.splitlines())} lines"]
    if output.attachments:
        parts.append(f"{len(output.attachments)} attachments left out")
    whole = _WHOLE.search(output.content)
    back = f"recall(round={found.round})" + (f" or read_artifact {whole[0]}" if whole else "")
    parts.append(f"whole: {back}]")
    level = Importance.CRITICAL if found.bad else Importance.HIGH
    scores = scored_lines(every, known or KnownWords(), weight(level, 0.0, len(every)))
    kept = _telling(every, scores, max(LEAST, room) - 120)
    return replace(output, content="\n".join([" · ".join(parts), *kept]), attachments=())


def _telling(every: list[str], scores: Iterable[tuple[float, int]], room: int) -> list[str]:
    """Return the most informative lines, in their order."""
    ranked = sorted(((score / (len(every[place]) + 20) ** 0.5, place) for score, place in scores), reverse=True)
    chosen: list[int] = []
    seen: set[str] = set()
    left = room
    for _, place in ranked:
        cost = size(every[place]) + 1
        if cost <= left and every[place].strip() not in seen:
            seen.add(every[place].strip())
            chosen.append(place)
            left -= cost
        if left < 12:
            break
    return [every[place] for place in sorted(chosen)]


def known_of(found: Sequence[Observation]) -> KnownWords:
    """Return the statistics of the lines of all observations."""
    return KnownWords.of(item.output.content for item in found if isinstance(item.output, ToolOutput))


def with_stubs(messages: Sequence[Message], cut: Mapping[tuple[int, int], CutResult]) -> list[Message]:
    """Return ``messages`` with the blocks at (message, block) replaced."""
    result = list(messages)
    for place in {place for place, _ in cut}:
        here = {index: each for (message, index), each in cut.items() if message == place}
        result[place] = changed(result[place], replaced(result[place].blocks, here))
    return result


def replaced(blocks: Sequence[Block], cut: Mapping[int, CutResult]) -> tuple[Block, ...]:
    """Return ``blocks`` with those at the positions in ``cut`` replaced."""
    found: list[Block] = []
    index = 0
    while index < len(blocks):
        here = cut.get(index)
        found += here.blocks if here else (blocks[index],)
        index += here.span if here else 1
    return tuple(found)


def pictures(rounds: Sequence[Round], offset: int = 0) -> dict[tuple[int, int], CutResult]:
    """Return texts that replace the user's pictures in ``rounds``."""
    found: dict[tuple[int, int], CutResult] = {}
    numbered = ((item.number, message) for item in rounds for message in item.messages)
    for place, (number, message) in enumerate(numbered, offset):
        for index, block in enumerate(message.blocks):
            if isinstance(block, Image):
                said = f"A picture ({block.media_type}) of round {number} is no longer shown."
                found[place, index] = CutResult(reminder(said).blocks)
    return found


# The last resort: the request fits afterwards, whatever the conversation is, and no rule is broken. Messages are
# removed from the front, then long texts are cut, without regard to their content.

GO_ON = "Go on."
CUT = "\n[… cut to fit; recall gives the whole …]\n"
WIDE = (500_000, 250_000, 120_000, 60_000, 30_000, 15_000, 8_000, 4_000)
"""Characters to which each text is cut, one after the other, until all messages fit."""
ROOMS = (2_000, 500, 120)
"""The same for the newest messages, where older ones must be removed."""


def fit(
    messages: Sequence[Message], limit: int, count: Count, starts: Mapping[str, int] | None = None
) -> tuple[Message, ...]:
    """Return what fits of ``messages`` in ``limit`` tokens: at least the user's last words. ``starts``: see Keep."""
    if count(messages) <= limit:
        return tuple(messages)
    parts = rounds_of(messages, starts)
    for room in WIDE:
        shorter = (*parts.earlier, *_all_cut(parts, room))
        if count(shorter) <= limit:
            return shorter
    before = read(parts.earlier)
    for room, notes in product(ROOMS, (before, Notes(left_out=before.left_out + LeftOut.of(before.texts)), None)):
        if found := _newest(parts, _all_cut(parts, room), notes, limit, count):
            return found
    return (_words(parts, limit, count),)


def _newest(
    parts: Rounds, messages: Sequence[Message], notes: Notes | None, limit: int, count: Count
) -> tuple[Message, ...] | None:
    """Return the newest of ``messages`` that fit after ``notes``, which say how much of the user's is left out."""
    left = limit
    for _ in range(2):
        found = next((part for part in _shorter(messages, left, count) if count(part) <= left), None)
        if found is None:
            return None
        before = _saying_what_is_gone(parts, found, notes) if notes else ()
        if count((*before, *found)) <= limit:
            return (*before, *found)
        left = limit - count(before)
    return None


def _saying_what_is_gone(parts: Rounds, found: Sequence[Message], notes: Notes) -> tuple[Message, ...]:
    there = set(map(base_id, found))
    gone = [text for item in parts.rounds for message, text in texts_in(item) if base_id(message) not in there]
    whole = replace(notes, left_out=notes.left_out + LeftOut.of(gone))
    return opening(written(whole)) if whole != Notes() else ()


def _all_cut(parts: Rounds, room: int) -> list[Message]:
    """Return the messages of all rounds with their texts cut to ``room``."""
    return [
        _cut(message, room, item.number, begins=place == 0)
        for item in parts.rounds
        for place, message in enumerate(item.messages)
    ]


def _shorter(messages: Sequence[Message], limit: int, count: Count) -> Iterator[Sequence[Message]]:
    """Return ``messages`` without the oldest rounds, as many as needed; then the last one without its oldest steps."""
    sizes = [count([message]) for message in messages]
    rest = sum(sizes)
    starts = _starts(messages)
    for start, later in zip(starts, [*starts[1:], len(messages)], strict=True):
        if rest <= limit or start == starts[-1]:
            break
        rest -= sum(sizes[start:later])
    else:
        return
    if rest <= limit:
        yield messages[start:]
        return
    first = starts[-1]
    place = first + 1
    while place + 2 < len(messages) and rest > limit:
        rest -= sizes[place] + sizes[place + 1]
        place += 2
    yield [messages[first], *messages[place:]]


def _starts(messages: Sequence[Message]) -> list[int]:
    """Return where the conversation may begin: at words of the user that answer no call."""
    found = [
        place
        for place, message in enumerate(messages)
        if message.role == "user" and not any(isinstance(block, ToolOutput) for block in message.blocks)
    ]
    return found or [0]


def _cut(message: Message, room: int, number: int, *, begins: bool) -> Message:
    theirs = {
        place.index: CutResult(place.written.within(room).blocks, place.span)
        for place in written_in(message, number, begins=begins, calls={})
    }
    ours = {
        index: CutResult(() if _droppable(block, message) else (_smaller(block, room),))
        for index, block in enumerate(message.blocks)
    }
    blocks = replaced(message.blocks, ours | theirs)
    return changed(message, blocks) if blocks != message.blocks else message


def _droppable(block: Block, message: Message) -> bool:
    """Whether a block may be removed. Reasoning is never cut: it is removed as a whole, if something else is left."""
    unsaid = (Thinking, RedactedThinking, Opaque)
    return isinstance(block, unsaid) and any(not isinstance(other, unsaid) for other in message.blocks)


def _smaller(block: Block, room: int) -> Block:
    match block:
        case Text(text=text) if len(text) > room:
            return Text(ends(text, room))
        case ToolOutput(content=text) if len(text) > room or block.attachments:
            return replace(block, content=ends(text, room), attachments=())
        case ToolUse(input=given, malformed=malformed) if len(json.dumps(given, default=str)) > room:
            smaller = {
                name: ends(value, room // 2) if isinstance(value, str) else value for name, value in given.items()
            }
            if len(json.dumps(smaller, default=str)) > 2 * room:
                smaller = {"cut": ends(json.dumps(given, ensure_ascii=False, default=str), room)}
            return replace(block, input=smaller, malformed=ends(malformed, room) if malformed else malformed)
        case ToolUse(malformed=str() as malformed) if len(malformed) > room:
            return replace(block, malformed=ends(malformed, room))
        case Image(media_type=kind) | Document(media_type=kind):
            return reminder(f"A file ({kind}) was left out to make the request fit.").blocks[0]
        case _:
            return block


def _words(parts: Rounds, limit: int, count: Count) -> Message:
    """Return only the user's last words, cut until they fit."""
    said = [(item, text) for item in parts.rounds for text in texts_of(item)]
    if not said:
        return _largest(user(GO_ON), len(GO_ON), lambda room: (Text(GO_ON[:room]),), limit, count)
    item, last = said[-1]
    message = _largest(item.messages[0], last.size, lambda room: last.within(room).blocks, limit, count)
    if count([message]) <= limit:
        return message
    # Not even a mark fits.
    plain = last.head.lstrip() or last.tail.lstrip()
    return _largest(item.messages[0], len(plain), lambda room: (Text(plain[:room]),), limit, count)


def _largest(
    message: Message, most: int, made: Callable[[int], tuple[Block, ...]], limit: int, count: Count
) -> Message:
    """Return ``message`` with the blocks that ``made`` makes for the largest room, up to ``most``, in which it fits."""
    low, high = 1, max(1, most)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count([replace(message, blocks=made(middle))]) <= limit
        low, high = (middle, high) if fits else (low, middle - 1)
    return changed(message, made(low))


def ends(text: str, room: int) -> str:
    """Return beginning and end of ``text``, with a mark between them if it fits."""
    if len(text) <= room:
        return text
    if room <= 2 * len(CUT):
        return text.strip()[: max(1, room)].strip() or "…"
    half = (room - len(CUT)) // 2
    return f"{text[:half]}{CUT}{text[len(text) - half :]}"
