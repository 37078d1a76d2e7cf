"""What a confined program sees of the disk: which parts it may write, only read, or not see at all.

Values only; how a mechanism is told is in ``sandbox_bwrap``, ``sandbox_landlock`` and ``sandbox_seatbelt``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

import ba_tui
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import SECRET_FOLDERS, SECRET_IN_HOME, SECRET_NAMES, SECRET_TAILS
from ba_tui.resources import read_regular

Access: TypeAlias = Literal["write", "read", "hidden", "scratch"]
"""``hidden`` is empty and can't be written, so that nothing is lost in there; ``scratch`` is empty and forgotten."""

HOMES = (Path("/home"), Path("/root"), Path("/Users"))
SOCKETS = (Path("/run"),)
"""Hidden because what listens there would act outside on behalf of whoever asks."""
SOCKET_TABLE = Path("/proc/net/unix")
MOST_SOCKETS = 1_000
MOST_DEPTH = 6
TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - they get a private stand-in
SYSTEM = (Path("/run/current-system"), Path("/run/opengl-driver"), Path("/run/systemd/resolve"))
SECRETS = ("shadow", "shadow-", "gshadow", "gshadow-", "ssh/ssh_host_*_key", "ssl/private", "krb5.keytab")

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
GUARDED = (
    ".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".ba",
    ".claude", ".agents", ".mcp.json", ".husky", ".vscode", ".idea", ".envrc", ".bashrc", ".bash_profile",
    ".bash_login", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".inputrc", ".gitconfig",
)  # fmt: skip
"""What makes programs outside run something, as seen from a folder that may be written."""


@frozen
class Reach:
    """``roots`` may be written but for what is guarded there; ``writable`` and ``readable`` are further paths that
    a person chose; ``hidden`` is never seen. ``home`` is the person's own folder."""

    roots: tuple[Path, ...]
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    network: bool = False
    home: Path | None = None


@frozen
class Part:
    """``source``: what is seen at ``path`` when that is something else than what lies there."""

    path: Path
    access: Access
    source: Path | None = None


def layout(reach: Reach, temporary: Path) -> tuple[Part, ...]:
    """Outer parts come before those inside them, so the last one that covers a path decides about it.

    ``temporary`` is seen as ``/tmp`` and ``/var/tmp``.
    """
    parts = {path: Part(path, "hidden") for path in _concealed(reach)}
    parts |= {path: Part(path, "write", temporary) for path in TEMPORARY if _folder(path)}
    away = tuple(parts)
    if reach.home and _within(reach.home, away) and not _within(reach.home, reach.roots):
        parts |= {path: Part(path, "scratch") for path in (reach.home / name for name in SCRATCH)}
    for path, access in _needed(reach):
        if _within(path, away) and not _within(path, reach.roots):
            parts[path] = Part(path, access, Path(os.path.realpath(path)))
    for path in (*reach.readable, *_repositories(reach.roots)):
        if _there(path):
            parts[path] = Part(path, "write" if path not in reach.readable else "read")
    for path in (*reach.writable, *reach.roots):
        if _there(path):
            parts[path] = Part(path, "write")
    for part in _guarded(tuple(path for path, part in parts.items() if part.access == "write" and not part.source)):
        parts.setdefault(part.path, part)
    for path in _secrets(reach):
        if _seen(path, parts.values()) and path not in reach.roots:
            parts[path] = Part(path, "hidden")
    parts |= {path: Part(path, "hidden") for path in _outlets(reach, parts.values())}
    return ordered(parts.values())


def ordered(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: (len(part.path.parts), str(part.path))))


def _concealed(reach: Reach) -> Iterator[Path]:
    home = (reach.home,) if reach.home else ()
    for path in (*HOMES, *home, *SOCKETS):
        if _folder(path) and path != Path("/"):
            yield path


def _needed(reach: Reach) -> Iterator[tuple[Path, Access]]:
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
    groups: tuple[tuple[Access, list[Path]], ...] = (("read", readable), ("write", writable))
    for access, paths in groups:
        for path in paths:
            if path != reach.home and path not in HOMES and _there(path):
                yield path, access


def _guarded(folders: Sequence[Path]) -> Iterator[Part]:
    for folder in folders:
        bare = folder.name == ".git"
        base = folder.parent if bare else folder
        git = base / ".git"
        if _there(git) and not git.is_symlink():
            # A place of its own, so that it can't be renamed and another one be put there.
            yield Part(git, "write" if git.is_dir() else "read")
        for pattern in GUARDED:
            if bare and not pattern.startswith(".git/"):
                continue
            path = base / pattern
            if _there(path) and not path.is_symlink():
                yield Part(path, "read")
        yield from _submodules(git / "modules")


def _submodules(folder: Path, depth: int = 0) -> Iterator[Part]:
    """What decides what git runs in repositories of submodules, whose names may have slashes."""
    if depth > MOST_DEPTH or not _folder(folder):
        return
    for path in folder.iterdir():
        if not _folder(path):
            continue
        own = _there(path / "config")
        if own:
            yield from (Part(path / name, "read") for name in ("config", "hooks") if _there(path / name))
        yield from _submodules(path / "modules" if own else path, depth + 1)


def _repositories(roots: Sequence[Path]) -> Iterator[Path]:
    """The repositories that roots are worktrees of, when those know of them too."""
    for root in roots:
        link = root / ".git"
        try:
            text = _said(link) if link.is_file() and not link.is_symlink() else ""
            own = Path(text.removeprefix("gitdir:").strip())
            if not text.startswith("gitdir:") or own.parent.name != "worktrees" or own.parent.parent.name != ".git":
                continue
            if _said(own / "gitdir").strip() == str(link):
                yield own.parent.parent
        except (OSError, ValueError):
            continue


def _said(file: Path) -> str:
    return read_regular(file, 8_192).decode("utf-8")


def _secrets(reach: Reach) -> Iterator[Path]:
    """What nobody should see, where it exists; most of it is hidden with the home folder anyway."""
    patterns: list[tuple[Path, str]] = [(Path("/etc"), name) for name in SECRETS]
    if home := reach.home:
        names = (*SECRET_FOLDERS, *SECRET_IN_HOME, *(name for name in SECRET_NAMES if not name.startswith("id_")))
        tails = (tail.removesuffix("/**") for tail in SECRET_TAILS if not tail.startswith("/"))
        patterns += [(home, name) for name in (*names, *tails)]
    for folder, pattern in patterns:
        if not _there(folder):
            continue
        for path in folder.glob(pattern) if "*" in pattern else (folder / pattern,):
            if _there(path) and not path.is_symlink() and os.access(path, os.R_OK):
                yield path
    yield from (path for path in reach.hidden if _there(path) and path.is_dir())


def _outlets(reach: Reach, parts: Iterable[Part]) -> Iterator[Path]:
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
    return any(path.is_relative_to(folder) for folder in folders)


def _seen(path: Path, parts: Iterable[Part]) -> bool:
    """Whether the innermost part around ``path`` shows it; what no part covers can be read."""
    part = _innermost(path, parts)
    return part is None or part.access != "hidden"


def _innermost(path: Path, parts: Iterable[Part]) -> Part | None:
    around = [part for part in parts if path.is_relative_to(part.path)]
    return max(around, key=lambda part: len(part.path.parts)) if around else None
