"""The sandbox of macOS: a profile for ``sandbox-exec``. Of its rules the last one that fits decides.

Which parts of the disk are seen is ``layout``'s affair.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox.layout import MountPart

PROGRAM = "/usr/bin/sandbox-exec"
DEVICES = r'(regex #"^/dev/(null|zero|tty|ptmx|dtracehelper|fd/.*|ttys[0-9]+)$")'


@frozen
class Seatbelt:
    name: str = "sandbox-exec"
    separate: bool = False
    walled: bool = False
    hides: bool = True
    guards: str = "files and network"

    def prefix(self, parts: Sequence[MountPart], *, network: bool) -> tuple[str, ...]:
        """What goes before a command."""
        return (PROGRAM, "-p", profile(parts, network=network))

    def environment(self, temporary: Path) -> dict[str, str]:
        return {"TMPDIR": str(temporary)}


def seatbelts() -> Iterator[Seatbelt]:
    if os.access(PROGRAM, os.X_OK):
        yield Seatbelt()


def profile(parts: Sequence[MountPart], *, network: bool) -> str:
    lines = ["(version 1)", "(allow default)", "(deny file-write*)", f"(allow file-write* {DEVICES})"]
    for part in parts:
        place = f"(subpath {_quoted(os.path.realpath(part.source or part.path))})"
        match part.access:
            case "masked":
                lines.append(f"(deny file-read-data file-write* (literal {_quoted(os.path.realpath(part.path))}))")
            case "hidden" | "scratch":
                lines.append(f"(deny file-read-data file-write* {place})")
            case "read":
                lines += [f"(allow file-read* {place})", f"(deny file-write* {place})"]
            case "write":
                lines.append(f"(allow file-read* file-write* {place})")
    lines += ["(deny signal)", "(allow signal (target same-sandbox))"]
    if not network:
        lines.append("(deny network*)")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
