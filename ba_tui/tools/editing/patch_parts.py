"""What a patch consists of, whatever form it was written in.

Reading the forms is patch_unified.py and patch_envelope.py, finding a hunk's place is hunks.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from ba_tui.tools.failed import Failed

Sign: TypeAlias = Literal[" ", "-", "+"]


@dataclass(slots=True)
class Hunk:
    """``lines`` with their signs; ``where`` is its line in the patch.

    What helps to find its place: ``anchors``, lines that stand before it, the outermost first; ``start``, its first
    line in the old file, from 1; ``at_end``. The last ``loose`` lines are bare and may be mere spacing.
    ``open_old`` and ``open_new``: the patch says that the last line has no line end, before and after.
    """

    where: int
    lines: list[tuple[Sign, str]] = field(default_factory=list[tuple[Sign, str]])
    anchors: tuple[str, ...] = ()
    start: int | None = None
    at_end: bool = False
    loose: int = 0
    open_old: bool = False
    open_new: bool = False
    returns: int = 0
    """How many of the lines end with a carriage return."""

    def put(self, line: str) -> bool:
        """Take a line of the patch; False when it is none of a hunk."""
        sign = line[:1]
        if sign == "\\":
            before = self.lines[-1][0] if self.lines else ""
            self.open_old = self.open_old or before in {" ", "-"}
            self.open_new = self.open_new or before in {" ", "+"}
            return True
        self.returns += line.endswith("\r")
        if line in {"", "\r"}:
            self.lines.append((" ", ""))
            self.loose += 1
            return True
        if sign not in {" ", "-", "+"}:
            return False
        self.lines.append((cast("Sign", sign), line[1:].removesuffix("\r")))
        self.loose = 0
        return True

    @property
    def windows(self) -> bool:
        """All of it is written with ``\\r\\n``; the last line of a patch may have no end."""
        return 0 < self.returns >= len(self.lines) - 1

    @property
    def old(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "+"]

    @property
    def new(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "-"]


@dataclass(slots=True)
class FilePatch:
    """What happens to the file at ``path``; ``content`` is for a new one, ``target`` is where it moves to.

    ``whole``: a deletion that shows all that the file must hold.
    """

    action: Literal["add", "update", "delete"]
    path: str
    where: int
    target: str | None = None
    content: str = ""
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    whole: bool = False


def refused(where: int, message: str, hint: str = "") -> Failed:
    """A patch that can't be read, ``where`` being the line in it."""
    return Failed("invalid_parameters", f"Line {where} of the patch: {message}", hint)
