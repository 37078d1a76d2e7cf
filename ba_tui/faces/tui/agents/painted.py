"""What the row of a call with sub-agents looks like: columns that stand below each other, and a line for each agent.

Widths are terminal cells. Which agents a row shows stands in ``rows``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment

from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.agents.roster import AgentLine
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.transcript.lines import Segments, clipped
from ba_tui.faces.tui.transcript.palette import Palette

NAME = 11
CALLS, TOKENS, TIME = 10, 7, 8
NARROW = 64
"""Cells from which calls are counted; below, what an agent is for needs the room."""
MOST = 6
"""Agents of one call that a folded row lists."""


class AgentSpace(NamedTuple):
    """``width`` in cells; ``now`` in seconds since the epoch."""

    width: int
    palette: Palette
    now: float


def spent(seconds: float) -> str:
    """``12s``, ``2m05s``, ``1h07m``: whole seconds, so that nothing flickers."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02}s" if whole < 3_600 else f"{whole // 3_600}h{whole // 60 % 60:02}m"


def head(lines: Sequence[AgentLine], name: str, target: str, space: AgentSpace) -> Segments:
    """The first line: who works on what; then calls, tokens and time in columns."""
    if len(lines) == 1:
        return _columns(lines[0], _shown(lines[0]), lines[0].description or target, space)
    first = min(line.began for line in lines)
    last = 0.0 if any(line.running for line in lines) else max(line.ended for line in lines)
    whole = AgentLine("", "", began=first, ended=last, calls=sum(each.calls for each in lines), tokens=sum(_own(lines)))
    return _columns(whole, name, f"{count(len(lines), 'agent')}: {target}" if target else "", space)


def below(lines: Sequence[AgentLine], space: AgentSpace, *, everything: bool = False) -> list[Segments]:
    """The lines under it: what the agent does, or how it ended; of several, a line each, those that run first."""
    palette = space.palette
    if len(lines) == 1:
        return [(_words(lines[0], space.width, palette),)]
    shown = sorted(lines, key=lambda line: not line.running)
    left = 0 if everything else max(0, len(lines) - MOST)
    rows = [_member(line, space) for line in shown[: len(lines) - left]]
    if left:
        words = f"{palette.glyphs.more} {count(left, 'more agent')}, /agents lists all"
        rows.append((Segment(clipped(words, space.width, palette.glyphs.more), palette.dim),))
    return rows


def _own(lines: Sequence[AgentLine]) -> Sequence[int]:
    """The tokens of each that are not in those of another one above it."""
    names = {line.agent_id for line in lines}
    return [line.tokens for line in lines if line.agent_id.rpartition("/")[0] not in names]


def _shown(line: AgentLine) -> str:
    return line.agent_id.rpartition("/")[2]


def _columns(line: AgentLine, name: str, target: str, space: AgentSpace) -> Segments:
    palette, more = space.palette, space.palette.glyphs.more
    name = clipped(paintable(name, newlines=False), max(NAME, space.width // 4), more)
    name += " " * (NAME - cell_len(name))
    calls = count(line.calls, "call") if line.calls and space.width >= NARROW else ""
    tokens = short_count(line.tokens) if line.tokens else ""
    figures = f"{calls:>{CALLS if space.width >= NARROW else 0}}{tokens:>{TOKENS}}"
    timed = f"{spent(line.seconds(space.now)):>{TIME}}"
    room = max(0, space.width - cell_len(name) - 1 - len(figures) - len(timed))
    target = clipped(paintable(target, newlines=False), room, more)
    return (
        Segment(name + " ", palette.name),
        Segment(target + " " * (room - cell_len(target)), palette.target),
        Segment(figures, palette.dim),
        Segment(timed, palette.dim),
    )


def _words(line: AgentLine, width: int, palette: Palette) -> Segment:
    words = line.words
    if line.background and line.running:
        words = f"in the background: {words}"
    if line.worktree and line.running:
        words = f"in a copy: {words}"
    said = clipped(paintable(words, newlines=False), width, palette.glyphs.more)
    tone = palette.dim if line.state in ("running", "ok") else getattr(palette, line.state, palette.dim)
    return Segment(said, tone)


def _member(line: AgentLine, space: AgentSpace) -> Segments:
    """One of several agents: sign, name, words, tokens."""
    palette = space.palette
    sign = getattr(palette.glyphs, line.state)
    name = clipped(paintable(_shown(line), newlines=False), 16, palette.glyphs.more)
    tokens = f"{short_count(line.tokens) if line.tokens else '':>{TOKENS}}{spent(line.seconds(space.now)):>{TIME}}"
    room = max(8, space.width - 2 - 17 - len(tokens) - 1)
    words = _words(line, room, palette)
    gap = " " * max(1, room + 1 - cell_len(words.text))
    return (
        Segment(f"{sign} ", getattr(palette, line.state, palette.dim)),
        Segment(f"{name}{' ' * (17 - cell_len(name))}", palette.name),
        words,
        Segment(gap + tokens, palette.dim),
    )
