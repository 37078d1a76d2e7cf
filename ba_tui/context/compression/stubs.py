"""Bulky observations cut down to their telling lines, with a word on how to get the whole back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ba_tui.context.compression.facts import failed, result_lines, target
from ba_tui.context.compression.importance import Importance, weight
from ba_tui.context.compression.novelty import KnownWords, scored_lines
from ba_tui.context.compression.rounds import Round, changed
from ba_tui.context.compression.user_text import ANSWER, ASKING, Written, is_answer, written_in
from ba_tui.core.messages import Block, Image, Message, ToolOutput, ToolUse, reminder
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

BULKY = 1_200
"""Bytes from which an observation is worth cutting."""
LONG = 1_000
"""The same for what the person wrote."""
LEAST = 160
MARK = "[stub · "
_WHOLE = regex(r"\bdata/[\w.-]+")
_PICTURE = 2_000


@frozen
class CutResult:
    """``blocks`` in the place of ``span`` others."""

    blocks: tuple[Block, ...]
    span: int = 1


@frozen
class Observation:
    """A bulky result, or a long text of the person: where it stands, what it is, and how large it is in bytes.
    ``span``: how many blocks it takes; ``bad``: the call failed."""

    message: int
    block: int
    round: int
    call: str
    size: int
    output: ToolOutput | Written
    span: int = 1
    bad: bool = False

    @property
    def title(self) -> str:
        return f"round {self.round} · {self.call}"

    @property
    def alone(self) -> Message:
        """To be counted."""
        return output_message(self.output)


def output_message(output: ToolOutput | Written) -> Message:
    """A message with nothing else, to be counted."""
    return Message("user", blocks_of(output), origin="tool", id="")


def blocks_of(output: ToolOutput | Written) -> tuple[Block, ...]:
    return output.blocks if isinstance(output, Written) else (output,)


def observations(rounds: Sequence[Round], offset: int = 0, *, words: bool = False) -> list[Observation]:
    """The bulky results in ``rounds``, oldest first; the first message of the first round counts as ``offset``.
    With ``words`` also what the person wrote at length."""
    found: list[Observation] = []
    place = offset
    for item in rounds:
        calls: dict[str, ToolUse] = {}
        for number, message in enumerate(item.messages):
            for index, block in enumerate(message.blocks):
                if isinstance(block, ToolUse):
                    calls[block.id] = block
                elif isinstance(block, ToolOutput) and (size := _size(block)) > BULKY:
                    call = calls.get(block.tool_use_id)
                    name = f"{call.name} {target(call)}".strip() if call else "a call"
                    if words or call is None or not is_answer(call, block):
                        bad = failed(block, call)
                        found.append(Observation(place, index, item.number, name, size, block, bad=bad))
            if words:
                for text in written_in(message, item.number, begins=number == 0, calls={}):
                    if text.written.size > LONG:
                        here = (place, text.index, item.number, "a text of the person", text.written.size)
                        found.append(Observation(*here, text.written, text.span))
            place += 1
    return found


def _size(output: ToolOutput) -> int:
    if output.content.startswith(MARK):
        return 0
    return len(output.content.encode("utf-8", "replace")) + _PICTURE * len(output.attachments)


def stub(found: Observation, room: int, known: KnownWords | None = None) -> ToolOutput | Written:
    """``found`` in about ``room`` bytes."""
    output = found.output
    if isinstance(output, Written):
        return output.within(room)
    if output.content.startswith(ANSWER) and found.call.startswith(ASKING):
        answer = Written(found.round, output.content.removeprefix(ANSWER)).within(room)
        return replace(output, content=ANSWER + "".join(block.text for block in answer.blocks))
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


def known_of(found: Sequence[Observation]) -> KnownWords:
    """What is known of the lines of all of them."""
    return KnownWords.of(item.output.content for item in found if isinstance(item.output, ToolOutput))


def with_stubs(messages: Sequence[Message], cut: Mapping[tuple[int, int], CutResult]) -> list[Message]:
    """``messages`` with what stands at (message, block) replaced."""
    result = list(messages)
    for place in {place for place, _ in cut}:
        here = {index: each for (message, index), each in cut.items() if message == place}
        result[place] = changed(result[place], replaced(result[place].blocks, here))
    return result


def replaced(blocks: Sequence[Block], cut: Mapping[int, CutResult]) -> tuple[Block, ...]:
    """``blocks`` with those at the places in ``cut`` replaced."""
    found: list[Block] = []
    index = 0
    while index < len(blocks):
        here = cut.get(index)
        found += here.blocks if here else (blocks[index],)
        index += here.span if here else 1
    return tuple(found)


def pictures(rounds: Sequence[Round], offset: int = 0) -> dict[tuple[int, int], CutResult]:
    """Words in place of the pictures that the person gave in ``rounds``."""
    found: dict[tuple[int, int], CutResult] = {}
    place = offset
    for item in rounds:
        for message in item.messages:
            for index, block in enumerate(message.blocks):
                if isinstance(block, Image):
                    said = f"A picture ({block.media_type}) of round {item.number} is no longer shown."
                    found[place, index] = CutResult(reminder(said).blocks)
            place += 1
    return found
