"""The newest lines of a session file: enough for a first paint, read from the end.

What the lines mean is not asked for here; see records.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ba_tui.sessions.records import backwards, forwards, starts_turn
from ba_tui.sessions.timeline import current_lines, rewind_target

_ANSWER = b'"type":"message_done"}\n'
_UNSEEN = (b'"type":"judged"}\n', b'"type":"checkpointed"}\n')
"""Ends of lines that nothing is painted for."""


def newest(path: Path, limit: int) -> list[bytes]:
    """About ``limit`` lines, newest first, and the beginning of a turn among them; of a session that was rewound only
    what stands."""
    lines = backwards(path)
    taken = _taken(lines, limit)
    if any(rewind_target(line) is not None for line in taken):
        lines = reversed(current_lines(forwards(path)))
        taken = _taken(lines, limit)
    if any(map(starts_turn, taken)):
        return taken
    opening = next(filter(starts_turn, lines), None)
    if opening is None:
        return taken
    # The last turn is longer than the limit: its prompt, and its end from a whole answer on.
    answers = [index for index, line in enumerate(taken) if line.endswith(_ANSWER)]
    return [*taken[: answers[-1] + 1 if answers else limit], opening]


def _taken(lines: Iterator[bytes], limit: int) -> list[bytes]:
    """The next ``limit`` lines, not counting those that are not seen."""
    taken: list[bytes] = []
    seen = 0
    for line in lines:
        taken.append(line)
        seen += not line.endswith(_UNSEEN)
        if seen == limit:
            break
    return taken
