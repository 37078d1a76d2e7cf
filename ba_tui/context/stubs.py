"""Bulky observations cut down to their telling lines, with a word on how to get the whole back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ba_tui.context.cues import masked
from ba_tui.context.facts import failed, lines, target
from ba_tui.context.importance import Importance, weight
from ba_tui.context.novelty import scored_lines
from ba_tui.context.rounds import Round, changed
from ba_tui.core.messages import Block, Image, Message, Text, ToolOutput, ToolUse

BULKY = 1_200
"""Bytes from which an observation is worth cutting."""
LEAST = 160
MARK = "[stub · "
_WHOLE = re.compile(r"\bdata/[\w.-]+")
_PICTURE = 2_000


@dataclass(frozen=True, slots=True)
class Observation:
    """A bulky result: where it stands, what it answers, and how large it is in bytes."""

    message: int
    block: int
    round: int
    call: str
    size: int
    output: ToolOutput

    @property
    def title(self) -> str:
        return f"round {self.round} · {self.call}"


def observations(rounds: Sequence[Round], offset: int = 0) -> list[Observation]:
    """The bulky results in ``rounds``, oldest first; the first message of the first round counts as ``offset``."""
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
            place += 1
    return found


def _size(output: ToolOutput) -> int:
    if output.content.startswith(MARK):
        return 0
    return len(output.content.encode("utf-8", "replace")) + _PICTURE * len(output.attachments)


def stub(found: Observation, room: int, shapes: Counter[str] | None = None) -> ToolOutput:
    """``found`` in about ``room`` bytes."""
    output = found.output
    every = list(lines(output.content))
    parts = [f"{MARK}{found.title} · {len(output.content.splitlines())} lines"]
    if output.attachments:
        parts.append(f"{len(output.attachments)} attachments left out")
    whole = _WHOLE.search(output.content)
    back = f"recall(round={found.round})" + (f" or read_artifact {whole[0]}" if whole else "")
    parts.append(f"whole: {back}]")
    kept = _telling(every, max(LEAST, room) - 120, shapes or Counter(), bad=failed(output))
    return replace(output, content="\n".join([" · ".join(parts), *kept]), attachments=())


def _telling(every: list[str], room: int, shapes: Counter[str], *, bad: bool) -> list[str]:
    """The lines that say most, in their order."""
    level = Importance.CRITICAL if bad else Importance.HIGH
    each = weight(level, 0.0, len(every))
    ranked = sorted(
        ((score / (len(every[place]) + 20) ** 0.5, place) for score, place in scored_lines(every, shapes, each)),
        reverse=True,
    )
    chosen: list[int] = []
    seen: set[str] = set()
    left = room
    for _, place in ranked:
        cost = len(every[place].encode("utf-8", "replace")) + 1
        if cost <= left and every[place].strip() not in seen:
            seen.add(every[place].strip())
            chosen.append(place)
            left -= cost
        if left < 12:
            break
    return [every[place] for place in sorted(chosen)]


def shapes_of(found: Sequence[Observation]) -> Counter[str]:
    """How often each shape of line occurs in all of them."""
    return Counter(masked(line) for item in found for line in item.output.content.splitlines())


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
