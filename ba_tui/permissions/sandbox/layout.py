"""What a confined program sees of the disk: which parts it may write, only read, or not see at all.

Values only; how a mechanism is told is in ``bubblewrap``, ``landlock`` and ``seatbelt``.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice
from pathlib import Path, PurePath
from typing import Literal, TypeAlias

import ba_tui
from ba_tui.core.profiles import Profile
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import SECRET_IN_HOME, SECRET_TAILS, TEMPORARY, is_secret
from ba_tui.permissions.sandbox.git_stores import OTHERS, stores
from ba_tui.permissions.sandbox.protected_files import GIT, GIT_SETTINGS, VENV, is_protected
from ba_tui.permissions.sandbox.workspace_scan import ScanResult
from ba_tui.resources import read_regular

MountAccess: TypeAlias = Literal["write", "read", "hidden", "scratch", "masked"]
"""``hidden`` is empty and can't be written, so that nothing is lost in there; ``scratch`` is empty and forgotten;
``masked`` is a file that shows another one's text instead of its own."""

HOMES = (Path("/home"), Path("/root"), Path("/Users"))
SOCKETS = (Path("/run"),)
"""Hidden because what listens there would act outside on behalf of whoever asks."""
SOCKET_TABLE = Path("/proc/net/unix")
MOST_SOCKETS = 1_000
MOST_DEPTH = 6
SYSTEM = (Path("/run/current-system"), Path("/run/opengl-driver"), Path("/run/systemd/resolve"))
SECRETS = ("shadow", "shadow-", "gshadow", "gshadow-", "ssh/ssh_host_*_key", "ssl/private", "krb5.keytab")

NOTHING = ScanResult()

TOOLS = (
    ".pyenv", ".nvm", ".cargo", ".rustup", ".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx",
    ".local/share/uv", ".local/share/mise", ".local/share/fnm", ".local/share/pnpm", ".asdf", ".sdkman", ".volta",
    ".fnm", ".bun", ".deno", ".rbenv", ".rvm", ".gem", ".juliaup", ".ghcup", ".opam", ".nix-profile", ".conda",
    "miniconda3", "miniforge3", "mambaforge", "anaconda3", "go", "sdk", "bin", ".dotnet", ".gitconfig", ".config/git",
    ".cache/ms-playwright", ".cache/huggingface", ".cache/puppeteer",
)  # fmt: skip
"""What people install below their home, and how git is told their name."""
CACHES = (
    ".cache/pip", ".cache/uv", ".cache/pre-commit", ".cache/go-build", ".cache/ccache", ".cache/sccache",
    ".cache/yarn", ".cache/pypoetry", ".cache/matplotlib", ".cache/node", ".npm", ".cargo/registry", ".cargo/git",
    "go/pkg", ".m2/repository", ".gradle/caches", ".gradle/wrapper", ".nuget/packages", ".pnpm-store",
    ".local/share/pnpm/store",
)  # fmt: skip
SCRATCH = (".cache", ".npm")
"""Where programs fail when they can't write, though nobody misses what they wrote."""
MOST_PROTECTED = 150
"""Protected files that are made read-only; those that lie deepest are left out, and a change of them is noticed."""
MOST_LINKED = 100
"""Files with a hard link outside the workspace that are made read-only."""
INSTALLED = frozenset({"node_modules", "site-packages"})


@frozen
class FileReach:
    """``roots`` may be written but for what is guarded there; ``writable`` and ``readable`` are further paths that
    a person chose; ``hidden`` is never seen. ``home`` is the person's own folder; ``started``: files of the roots that
    the person's hooks start."""

    roots: tuple[Path, ...]
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    network: bool = False
    home: Path | None = None
    started: frozenset[Path] = frozenset()


@frozen
class MountPart:
    """``source``: what is seen at ``path`` when that is something else than what lies there."""

    path: Path
    access: MountAccess
    source: Path | None = None


@frozen
class Inside:
    """What one program finds: its ``profile``, the ``findings`` in the workspace, the ``temporary`` folder that it sees
    as ``/tmp`` and ``/var/tmp``, ``mask``: returns the masked copy of a file that is named as secret, and ``masks``:
    the masked copies of other files."""

    profile: Profile
    temporary: Path
    findings: ScanResult = NOTHING
    mask: Callable[[Path], Path] = Path
    masks: Mapping[Path, Path] = field(default_factory=dict[Path, Path])


def layout(reach: FileReach, inside: Inside) -> tuple[MountPart, ...]:
    """Outer parts come before those inside them, so the last one that covers a path decides about it."""
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
                # Nor may the folders above be renamed, and others be put there.
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
    """The files with secrets that the program would see otherwise."""
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
    """``parts`` without those that only say again what holds for the folder around them: each one costs time."""
    kept: dict[str, MountPart] = {}
    for part in parts:
        around = next((kept[text] for text in _above(part.path) if text in kept), None)
        plain = part.source in {None, part.path}
        shown = around is None or (around.access in {"write", "read"} and around.source in {None, around.path})
        if shown and not _there(part.path):
            # It would be made, on the disk that everybody sees.
            continue
        again = around.access == "read" and around.source in {None, around.path} if around else True
        if not (part.access == "read" and plain and again):
            kept[str(part.path)] = part
    return tuple(kept.values())


def _above(path: Path) -> Iterator[str]:
    """The folders around ``path`` as texts, the innermost first."""
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
    """What programs need of places that are hidden otherwise: interpreters, tool chains and their caches."""
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
    """What of the workspace can't be written by just any allowed command."""
    profile, findings = inside.profile, inside.findings
    for git in (*findings.git, *repositories):
        yield from _git(git, writable=profile.git)
    written = (folder for folder in (*reach.writable, *profile.writable) if _folder(folder))
    elsewhere = (path for folder in written for path in folder.iterdir() if is_protected(PurePath(path.name, "x")))
    # A write through a hard link would change a file outside the workspace; git and package managers replace files.
    linked = () if profile.git or profile.packages else findings.linked[:MOST_LINKED]
    yield from (MountPart(path, "read") for path in linked if _there(path) and not path.is_symlink())
    paths = sorted((*findings.protected, *elsewhere), key=lambda path: len(path.parts))
    if profile.git:
        # Git replaces tracked files; where it can't, it leaves the old content and says nothing.
        paths = [path for path in paths if path.name == GIT]
    if profile.packages:
        paths = [path for path in paths if INSTALLED.isdisjoint(path.parts) and not _there(path / VENV)]
    for path in paths[:MOST_PROTECTED]:
        if _there(path) and not path.is_symlink():
            yield MountPart(path, "read")
            # A folder like .github is a place of its own too: else it could be renamed, and another be put there.
            inner = (above for above in path.parents if _within(above, reach.roots) and above not in reach.roots)
            yield from (MountPart(above, "write") for above in inner if path in reach.started or _is_tools(above))


def _is_tools(folder: Path) -> bool:
    return folder.name in INSTALLED or (folder.name.startswith(".") and folder.name not in {".", ".."})


def _git(folder: Path, *, writable: bool) -> Iterator[MountPart]:
    """The parts of one git folder."""
    if not _folder(folder):
        return
    if folder.name == GIT:
        # A place of its own in any case, so that it can't be renamed and another one be put there.
        yield MountPart(folder, "write" if writable else "read")
        if not writable:
            return
    for place in (folder, *_further(folder / "modules")):
        yield from (MountPart(place / name, "read") for name in GIT_SETTINGS if _there(place / name))


def _further(folder: Path, depth: int = 0) -> Iterator[Path]:
    """The git folders of submodules, whose names may have slashes."""
    if depth > MOST_DEPTH or not _folder(folder):
        return
    for path in folder.iterdir():
        if not _folder(path):
            continue
        own = _there(path / "HEAD") or _there(path / "config")
        if own:
            yield path
        yield from _further(path / "modules" if own else path, depth + 1)


def shown_in(roots: Sequence[Path], path: Path) -> str:
    """``path`` for people: from the first of ``roots`` that it lies in, or absolute."""
    root = next((root for root in roots if path.is_relative_to(root)), None)
    return str(path.relative_to(root) if root else path)


def git_folders_of(roots: Sequence[Path]) -> Iterator[Path]:
    """The git folders outside of ``roots`` that these are worktrees or submodules of, when those know of them too."""
    for root in roots:
        link = root / GIT
        try:
            text = _said(link) if link.is_file() and not link.is_symlink() else ""
        except (OSError, ValueError):
            continue
        if not text.startswith("gitdir:"):
            continue
        own = Path(os.path.normpath(root / text.removeprefix("gitdir:").strip()))
        found = _main_of(own, link) or _module_of(own, root)
        if found and not _within(found, roots):
            yield found


def _main_of(own: Path, link: Path) -> Path | None:
    """The git folder whose worktree ``own`` belongs to, when that one says that ``link`` is its own."""
    if own.parent.name != "worktrees":
        return None
    try:
        known = _said(own / "gitdir").strip() == str(link)
    except (OSError, ValueError):
        return None
    return own.parent.parent if known else None


def _module_of(own: Path, root: Path) -> Path | None:
    """``own`` when it is the git folder of a submodule and names ``root`` as its files' folder."""
    if "modules" not in own.parts or GIT not in own.parts:
        return None
    try:
        found = re.search(r"(?m)^\s*worktree\s*=\s*(\S.*?)\s*$", _said(own / "config"))
    except (OSError, ValueError):
        return None
    return own if found and os.path.realpath(own / found[1].strip('"')) == os.path.realpath(root) else None


def _said(file: Path) -> str:
    return os.fsdecode(read_regular(file, 65_536))


def _secrets(reach: FileReach) -> Iterator[Path]:
    """What nobody should see, where it exists; most of it is hidden with the home folder anyway."""
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
    """Sockets that somebody outside reads: no wall around files or the network keeps a program from them. Those of the
    workspace stay where programs share the network, since they may be their own."""
    try:
        lines = SOCKET_TABLE.read_text("utf-8", "replace").splitlines()[1:]
    except OSError:
        return
    texts = dict.fromkeys(fields[7] for line in lines if len(fields := line.split(maxsplit=7)) > 7)
    # Some name theirs from where they run, which is most likely here; with @ it is no file.
    named = (str(root / text) for text in texts if not text.startswith("@") for root in (reach.roots or (Path("/"),)))
    for text in islice(dict.fromkeys(named), MOST_SOCKETS):
        path = Path(os.path.realpath(text))
        part = _innermost(path, parts)
        if part and (part.access in {"hidden", "scratch"} or part.source not in {None, part.path}):
            continue
        if _there(path) and path.is_socket() and not (reach.network and _within(path, reach.roots)):
            yield path


def _there(path: Path) -> bool:
    """Whether it exists for us; what we can't look at, no program of ours can."""
    return os.access(path, os.F_OK)


def _folder(path: Path) -> bool:
    return _there(path) and path.is_dir() and not path.is_symlink()


def _within(path: Path, folders: Iterable[Path]) -> bool:
    text = f"{path}/"
    return any(text.startswith(f"{folder}/" if folder.name else "/") for folder in folders)


def _seen(path: Path, parts: Iterable[MountPart]) -> bool:
    """Whether the innermost part around ``path`` shows it; what no part covers can be read."""
    part = _innermost(path, parts)
    return part is None or part.access != "hidden"


def _innermost(path: Path, parts: Iterable[MountPart]) -> MountPart | None:
    around = [part for part in parts if _within(path, (part.path,))]
    return max(around, key=lambda part: len(part.path.parts)) if around else None
