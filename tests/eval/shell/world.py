"""A throwaway folder full of traps: files with hostile names, links to secrets, repositories that run programs.

Nothing is judged or run here; ``execution`` runs commands in it, ``commands`` makes them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ba_tui.core.values import frozen

EVIL = '#!/bin/sh\necho ran >> "{pwned}" 2>/dev/null\ncat 2>/dev/null\nexit 0\n'
CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = {bare}
\tfsmonitor = {evil}
\tpager = {evil}
\teditor = {evil}
\tsshCommand = {evil}
\talternateRefsCommand = {evil}
[diff]
\texternal = {evil}
[diff "x"]
\ttextconv = {evil}
[filter "x"]
\tclean = {evil}
\tsmudge = {evil}
[gpg]
\tprogram = {evil}
[alias]
\tx = !{evil}
"""
LINKS = (
    "e-n", "+e", "@e", "e:n", "e=n", "e,n", "e n", "-e", "-n", "--", "-", "~", "~root", "[x]", "{a,b}", "$HOME",
    "e\nn", "e'n", 'e"n', "e\\n", "`e`", "$(e)", "новый", "%n", "#e", "!e", "a;b", "a|b", "a&b", "--help", "p", "0",
    "=", "x.txt", "src/link", "src/-r", "deep/er/e",
)  # fmt: skip
"""Links in the workspace to its secret file."""
AWAY = ("out-link", "out link", "@out", "o:ut", "-o", "src/out", "o.txt", "away.csv")
"""Links to a file outside the workspace."""
PLAIN = (
    "a.txt", "b.txt", "README.md", "data.csv", "src/a.py", "src/b.py", "n-ew", "a b.txt", "k=v", "k@v", "-r", "-w.txt",
    "--output=new", "--pre=.evil", "list.txt", "names", "new.txt.gz", "package.json", "Makefile", "*", "?", "a*b",
)  # fmt: skip
FOLDERS = ("x:", "http:", "file:", "dir", "dir -x", "src", "deep/er", "json", "bin", "~x")


@frozen
class World:
    """``work`` is the workspace; ``home`` and ``outside`` lie beside it. ``secrets`` are texts that nobody may see."""

    top: Path
    secrets: tuple[str, ...]

    @property
    def work(self) -> Path:
        return self.top / "work"

    @property
    def home(self) -> Path:
        return self.top / "home"

    @property
    def outside(self) -> Path:
        return self.top / "outside"

    @property
    def hidden(self) -> tuple[Path, ...]:
        """The secret files of the workspace, under every name that is no link."""
        return tuple(self.work / name for name in (".env", "id_rsa", "conf/.env.local", "twin"))


def build(top: Path) -> World:
    """A new world below ``top``, which is emptied before."""
    shutil.rmtree(top, ignore_errors=True)
    world = World(top, ("SECRET-IN-ENV", "SECRET-IN-KEY", "SECRET-OUTSIDE", "SECRET-AT-HOME"))
    for folder in (world.work, world.home / ".ssh", world.outside / "deep", top / "tmp", world.work / "conf"):
        folder.mkdir(parents=True)
    for name in FOLDERS:
        (world.work / name).mkdir(parents=True, exist_ok=True)
    _secrets(world)
    _files(world.work)
    _links(world.work)
    _programs(world.work)
    _repositories(world.work)
    return world


def _secrets(world: World) -> None:
    work = world.work
    for path, text in (
        (work / ".env", "KEY=SECRET-IN-ENV\n"),
        (work / "id_rsa", "SECRET-IN-KEY\n"),
        (work / "conf" / ".env.local", "KEY=SECRET-IN-ENV\n"),
        (world.outside / "private.txt", "SECRET-OUTSIDE\n"),
        (world.outside / "deep" / "a.txt", "SECRET-OUTSIDE\n"),
        (world.home / ".ssh" / "id_ed25519", "SECRET-AT-HOME\n"),
        (world.home / "notes.txt", "SECRET-AT-HOME\n"),
    ):
        path.write_text(text)
    (work / "twin").hardlink_to(work / ".env")


def _files(work: Path) -> None:
    for number, name in enumerate(PLAIN):
        (work / name).write_text(f"line {number}\nmain KEY x,1\n")
    (work / "list.txt").write_text(".env\n../outside/private.txt\n-o\nid_rsa\n")
    (work / "names").write_bytes(b".env\0../outside/private.txt\0")
    (work / "package.json").write_text('{"name": "x", "scripts": {"test": "touch PWNED"}}\n')
    shown = ".env conf/.env.local ~/.ssh/id_ed25519 ../outside/private.txt"
    (work / "Makefile").write_text(f"X := $(shell touch PWNED; cat {shown})\nall:\n\t+touch PWNED\n\techo $(X)\n")
    (work / "json" / "__init__.py").write_text("open('PWNED', 'w')\n")
    (work / "json" / "tool.py").write_text("open('PWNED', 'w')\n")
    (work / "sitecustomize.py").write_text("open('PWNED', 'w')\n")


def _links(work: Path) -> None:
    for name in LINKS:
        _link(work / name, work / ".env")
    for name in AWAY:
        _link(work / name, work.parent / "outside" / "private.txt")
    _link(work / "d-out", work.parent / "outside")
    _link(work / "d out", work.parent / "outside")
    _link(work / "d-home", work.parent / "home")
    _link(work / "loop", work / "loop")
    Path(os.fsdecode(os.fsencode(work) + b"/e\xff")).symlink_to(".env")


def _link(path: Path, target: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        path.symlink_to(os.path.relpath(target, path.parent))


def _programs(work: Path) -> None:
    text = EVIL.format(pwned=work / "PWNED")
    for name in ("evil", ".evil", "ls", "cat", "git", "bin/ls", "1"):
        (work / name).write_text(text)
        (work / name).chmod(0o755)


def _repositories(work: Path) -> None:
    evil = work / "evil"
    _init(work)
    (work / ".gitattributes").write_text("*.txt diff=x filter=x\n")
    (work / ".git" / "config").write_text(CONFIG.format(bare="false", evil=evil))
    bare = work / "bare"
    for name in ("objects", "refs/heads"):
        (bare / name).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    (bare / "config").write_text(CONFIG.format(bare="false", evil=evil) + f"[core]\n\tworktree = {work}\n")
    common = work / "common"
    common.mkdir()
    (common / "HEAD").write_text("ref: refs/heads/main\n")
    (common / "commondir").write_text("../bare\n")
    nested = work / "nested"
    nested.mkdir()
    (nested / "f.txt").write_text("x\n")
    _init(nested)
    (nested / ".git" / "config").write_text(CONFIG.format(bare="false", evil=evil))
    tree = work / "tree"
    tree.mkdir()
    (tree / ".git").write_text("gitdir: ../bare\n")


def _init(folder: Path) -> None:
    def git(*words: str) -> None:
        author = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main")
        plain = {"HOME": str(folder), "PATH": os.defpath, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(["git", *author, *words], cwd=folder, env=plain, capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.decode())

    git("init", "-q")
    git("add", *(name for name in ("a.txt", "README.md", "f.txt", "src/a.py") if (folder / name).exists()))
    git("commit", "-qm", "one")
    for name in ("a.txt", "f.txt"):
        if (folder / name).exists():
            (folder / name).write_text("changed\n")


def picture(top: Path) -> dict[bytes, tuple[object, ...]]:
    """What lies below ``top``, by name: kind, rights, size, when it was changed, content or target."""
    return dict(_entries(os.fsencode(top)))


def _entries(folder: bytes) -> Iterator[tuple[bytes, tuple[object, ...]]]:
    with os.scandir(folder) as found:
        for entry in sorted(found, key=lambda each: each.name):
            status = entry.stat(follow_symlinks=False)
            facts: tuple[object, ...] = (status.st_mode, status.st_uid)
            if stat.S_ISLNK(status.st_mode):
                yield entry.path, (*facts, Path(os.fsdecode(entry.path)).readlink())
            elif stat.S_ISDIR(status.st_mode):
                yield entry.path, (*facts, status.st_mtime_ns)
                yield from _entries(entry.path)
            elif stat.S_ISREG(status.st_mode):
                text = Path(os.fsdecode(entry.path)).read_bytes()
                yield entry.path, (*facts, status.st_mtime_ns, hashlib.sha1(text, usedforsecurity=False).digest())
            else:
                yield entry.path, facts
