"""Bulky observations cut down to their telling lines, with a word on how to get the whole back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ba_tui.context.cues import code, masked, standing
from ba_tui.context.facts import failed, lines, sentences, target
from ba_tui.context.importance import Importance, weight
from ba_tui.context.novelty import scored_lines
from ba_tui.context.rounds import Round, changed
from ba_tui.core.messages import Block, Image, Message, Text, ToolOutput, ToolUse
from ba_tui.core.patterns import regex
from ba_tui.core.values import frozen

BULKY = 1_200
"""Bytes from which an observation is worth cutting."""
LONG = 1_000
"""The same for what the person said."""
PASTED = 40
"""Line ends from which the person's words were hardly typed."""
HEAD = 0.4
"""The part of a stub of the person's words that is their beginning, word for word."""
STANDING = 4.0
LEAST = 160
MARK = "[stub · "
_WHOLE = regex(r"\bdata/[\w.-]+")
_PICTURE = 2_000


@frozen
class Observation:
    """A bulky result, or long words of the person: where it stands, what it is, and how large it is in bytes."""

    message: int
    block: int
    round: int
    call: str
    size: int
    output: ToolOutput | Text

    @property
    def title(self) -> str:
        return f"round {self.round} · {self.call}"

    @property
    def alone(self) -> Message:
        """To be counted."""
        return Message("user", (self.output,), origin="tool", id="")


def observations(rounds: Sequence[Round], offset: int = 0, *, words: bool = False) -> list[Observation]:
    """The bulky results in ``rounds``, oldest first; the first message of the first round counts as ``offset``.
    With ``words`` also what the person said at length."""
    found: list[Observation] = []
    place = offset
    for item in rounds:
        names: dict[str, str] = {}
        for message in item.messages:
            for index, block in enumerate(message.blocks):
                if isinstance(block, ToolUse):
                    names[block.id] = f"{block.name} {target(block)}".strip()
                elif isinstance(block, ToolOutput) and (size := _size(block)) > BULKY:
                    call = names.get(block.tool_use_id, "a call")
                    found.append(Observation(place, index, item.number, call, size, block))
                elif words and isinstance(block, Text) and message.role == "user" and (size := _length(block)) > LONG:
                    found.append(Observation(place, index, item.number, "words of the person", size, block))
            place += 1
    return found


def _size(output: ToolOutput) -> int:
    if output.content.startswith(MARK):
        return 0
    return len(output.content.encode("utf-8", "replace")) + _PICTURE * len(output.attachments)


def _length(said: Text) -> int:
    return 0 if said.text.startswith(MARK) else len(said.text.encode("utf-8", "replace"))


def stub(found: Observation, room: int, shapes: Counter[str] | None = None) -> ToolOutput | Text:
    """``found`` in about ``room`` bytes."""
    output = found.output
    if isinstance(output, Text):
        return _said(found, output.text, room)
    every = list(lines(output.content))
    parts = [f"{MARK}{found.title} · {len(output.content.splitlines())} lines"]
    if output.attachments:
        parts.append(f"{len(output.attachments)} attachments left out")
    whole = _WHOLE.search(output.content)
    back = f"recall(round={found.round})" + (f" or read_artifact {whole[0]}" if whole else "")
    parts.append(f"whole: {back}]")
    level = Importance.CRITICAL if failed(output) else Importance.HIGH
    scores = scored_lines(every, shapes or Counter(), weight(level, 0.0, len(every)))
    kept = _telling(every, scores, max(LEAST, room) - 120)
    return replace(output, content="\n".join([" · ".join(parts), *kept]), attachments=())


def _said(found: Observation, text: str, room: int) -> Text:
    """The person's words: how they begin, then what says most."""
    every = list(lines(text) if text.count("\n") > PASTED else sentences(text))
    mark = f"{MARK}{found.title} · {len(every)} sentences · whole: recall(round={found.round})]"
    left = max(LEAST, room) - 120
    first, head = 0, int(left * HEAD)
    while first < len(every) and (size := _bytes(every[first])) <= head:
        head, left, first = head - size, left - size, first + 1
    scores = (
        (score + (STANDING if standing(every[place]) and not code(every[place]) else 0.0), place)
        for score, place in scored_lines(every, Counter(), 1.0)
        if place >= first
    )
    return Text("\n".join([mark, *every[:first], *_telling(every, scores, left)]))


def _telling(every: list[str], scores: Iterable[tuple[float, int]], room: int) -> list[str]:
    """The lines that say most, in their order."""
    ranked = sorted(((score / (len(every[place]) + 20) ** 0.5, place) for score, place in scores), reverse=True)
    chosen: list[int] = []
    seen: set[str] = set()
    left = room
    for _, place in ranked:
        cost = _bytes(every[place])
        if cost <= left and every[place].strip() not in seen:
            seen.add(every[place].strip())
            chosen.append(place)
            left -= cost
        if left < 12:
            break
    return [every[place] for place in sorted(chosen)]


def _bytes(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


def shapes_of(found: Sequence[Observation]) -> Counter[str]:
    """How often each shape of line occurs in all of them."""
    return Counter(
        masked(line)
        for item in found
        if isinstance(item.output, ToolOutput)
        for line in item.output.content.splitlines()
    )


def with_stubs(messages: Sequence[Message], cut: Mapping[tuple[int, int], Block]) -> list[Message]:
    """``messages`` with the blocks at (message, block) put in place of theirs."""
    result = list(messages)
    for place in {place for place, _ in cut}:
        blocks = [cut.get((place, index), block) for index, block in enumerate(result[place].blocks)]
        result[place] = changed(result[place], blocks)
    return result


def pictures(rounds: Sequence[Round], offset: int = 0) -> dict[tuple[int, int], Block]:
    """Words in place of the pictures that the person gave in ``rounds``."""
    found: dict[tuple[int, int], Block] = {}
    place = offset
    for item in rounds:
        for message in item.messages:
            for index, block in enumerate(message.blocks):
                if isinstance(block, Image):
                    found[place, index] = Text(f"[{block.media_type} of round {item.number}, no longer shown]")
            place += 1
    return found
