"""Which parts of a pipe failed although the pipe did not: what its exit code alone does not tell.

The codes come from bash; the names, from the command as it was written. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Sequence

PIPE_CLOSED = 141
"""A part that was ended because nothing reads what it prints any more, as by ``head``."""
NO_MATCH = frozenset({"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "diff", "cmp", "comm", "test", "["})
"""Programs whose 1 is an answer and no failure."""
LONGEST = 60


def failed_parts(script: str, codes: Sequence[int]) -> list[str]:
    """```pytest` exited 1`` for each earlier part that failed; ``codes`` are those of the pipe that ran last."""
    if len(codes) < 2 or codes[-1] or not any(code not in {0, PIPE_CLOSED} for code in codes):
        return []
    names = _names(script, len(codes))
    said: list[str] = []
    for place, code in enumerate(codes[:-1]):
        name = names[place] if names else ""
        if code in {0, PIPE_CLOSED} or (code == 1 and name.rpartition("/")[2] in NO_MATCH):
            continue
        said.append(f"`{name[:LONGEST]}` exited {code}" if name else f"part {place + 1} of the pipe exited {code}")
    return said


def _names(script: str, parts: int) -> list[str]:
    """The programs of the last pipe of ``script``; none where that has not so many parts, or can't be read."""
    from ba_tui.permissions.shell.parser import Parser  # noqa: PLC0415 - the grammar, for hardly any command
    from ba_tui.permissions.shell.tokens import TokenFindings, UnreadableCommand  # noqa: PLC0415
    from ba_tui.permissions.shell.tree import Pipeline, SimpleCommand  # noqa: PLC0415

    try:
        chains = Parser(script, TokenFindings()).whole().items
    except (UnreadableCommand, RecursionError):
        return []
    last = chains[-1].items[-1] if chains else None
    if not isinstance(last, Pipeline) or len(last.items) != parts:
        return []
    words = [part.words[0].literal() if isinstance(part, SimpleCommand) and part.words else "" for part in last.items]
    return [word or "" for word in words]
