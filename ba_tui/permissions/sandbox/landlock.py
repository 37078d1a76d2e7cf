"""The sandbox by Landlock: the kernel refuses files and TCP; used where bubblewrap can't make name spaces.

It only grants, so what lies inside a granted folder can't be taken out again. The program it starts is ``landlocked``.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox.layout import MountPart

PROGRAM = Path(__file__).with_name("landlocked.py")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")


@frozen
class Landlock:
    """``package``: the folder that the package landlockpy lies in."""

    package: str
    name: str = "landlock"
    separate: bool = False
    walled: bool = False
    hides: bool = False
    guards: str = "files and TCP only: protected files stay writable, and secrets of the workspace readable"

    def prefix(self, parts: Sequence[MountPart], *, network: bool) -> tuple[str, ...]:
        """What goes before a command."""
        writable = [str(part.source or part.path) for part in parts if part.access == "write"]
        writable += [f"/dev/{name}" for name in DEVICES]
        granted = {"read": sorted(_readable(parts)), "write": writable, "network": network}
        return (sys.executable, "-I", "-S", str(PROGRAM), self.package, json.dumps(granted), "--")

    def environment(self, temporary: Path) -> dict[str, str]:
        return {"TMPDIR": str(temporary)}


def landlocks() -> Iterator[Landlock]:
    spec = importlib.util.find_spec("landlockpy")
    if sys.platform == "linux" and spec and spec.origin:
        yield Landlock(str(Path(spec.origin).parent.parent))


def _readable(parts: Sequence[MountPart]) -> set[str]:
    """Everything but what is hidden, as the fewest folders."""
    hidden = {part.path for part in parts if part.access in {"hidden", "scratch"}} | {
        part.path for part in parts if part.source and part.source != part.path and part.access != "masked"
    }
    found = {str(part.source or part.path) for part in parts if part.access == "read"}

    def walk(folder: Path) -> None:
        if folder in hidden:
            return
        if not any(path.is_relative_to(folder) for path in hidden):
            found.add(str(folder))
            return
        try:
            children = list(folder.iterdir())
        except OSError:
            return
        for child in children:
            if not child.is_symlink():
                walk(child)

    walk(Path("/"))
    return found
