"""A separate git store for a project that keeps its files as trees. It never touches the project's own repository.

It maintains git's index; ``git`` runs git. ``keeper`` knows which session took which checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError
from ba_tui.core.values import frozen
from ba_tui.sessions.checkpoints.git import (
    HINT,
    MOST,
    FileTraits,
    Git,
    GitStopped,
    GitWatch,
    look,
    read_traits,
    unusable,
)
from ba_tui.sessions.journal import make_private
from ba_tui.shared_files import open_lock_file, take_lock

CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tsymlinks = true
\tautocrlf = false
\tsafecrlf = false
\tfsmonitor = false
\tpreloadIndex = true
\tlogAllRefUpdates = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
\texcludesFile = /dev/null
[gc]
\tauto = 0
[maintenance]
\tauto = false
[commit]
\tgpgSign = false
"""
ATTRIBUTES = "* -text -eol -filter -ident !diff !working-tree-encoding\n"
"""Bytes are stored unchanged, without line ends, filters or encodings of the project's attributes."""
RULES = """\
.git
node_modules/
bower_components/
.venv/
venv/
.tox/
.nox/
__pycache__/
*.pyc
.mypy_cache/
.pytest_cache/
.ruff_cache/
.hypothesis/
.ipynb_checkpoints/
.gradle/
.terraform/
.next/
.nuxt/
.parcel-cache/
.DS_Store"""
_LISTING = 32_000_000
_BUSY = "Wait until it has finished, then try again."


@frozen
class ShadowLimits:
    """Limits of the store.

    ``largest``: bytes of one file. ``files``, ``new``: files and bytes that one checkpoint may add. ``session``: bytes
    of a session's earlier versions, 0 for no limit. ``seconds`` of one step; ``wait``: seconds to wait for the lock.
    """

    largest: int = 10_000_000
    files: int = 100_000
    new: int = 1_000_000_000
    session: int = 0
    seconds: float = 30.0
    wait: float = 10.0


@frozen
class Snapshot:
    """A tree, and unignored paths that were left out. ``traits``: attributes that no tree contains; None for too many
    files."""

    tree: str
    skipped: tuple[str, ...] = ()
    traits: FileTraits | None = None
    others: tuple[str, ...] = ()


@frozen
class SavedCheckpoint:
    """A stored checkpoint."""

    id: str
    tree: str
    session: str
    turn: int
    skipped: frozenset[str]
    traits: FileTraits | None = None
    others: frozenset[str] = frozenset()
    """Files that another program wrote during the turn; only for a checkpoint at the end of a turn."""


@frozen
class TreeEntry:
    """A file in a tree: its mode (``100644``, ``100755`` or ``120000``) and the id of its content."""

    mode: str
    id: str


@frozen
class TreeChange:
    path: bytes
    before: TreeEntry | None
    after: TreeEntry | None

    @property
    def name(self) -> str:
        return os.fsdecode(self.path)


class Store:
    """``folder``: the git directory; ``root``: the project; ``avoid``: ba's folders below it, which are left out."""

    def __init__(
        self, folder: Path, root: Path, avoid: Iterable[Path] = (), limits: ShadowLimits | None = None
    ) -> None:
        self.folder = folder
        self.root = root
        self.limits = limits or ShadowLimits()
        self._avoid = tuple(path for path in avoid if path.is_relative_to(root) and path != root)
        self._ready = False
        run = Git(folder, root, self.limits.seconds)
        self.git, self.command, self.environment = run.run, run.command, run.environment
        self._take_in = run.take_in

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Hold the lock of the store, across all processes. Raises StorageError if another process keeps it too
        long."""
        try:
            make_private(self.folder)
            fd = open_lock_file(self.folder / "ba.lock")
        except OSError as error:
            raise unusable(error) from error
        try:
            # Where the file system has no locks, git's own locks protect the store.
            with contextlib.suppress(OSError):
                if not take_lock(fd, wait=self.limits.wait):
                    raise StorageError("Another ba process uses the checkpoints of this project.", _BUSY)
            yield
        finally:
            os.close(fd)

    def ready(self) -> None:
        """Create missing parts of the store. Call it with the lock held."""
        if self._ready and (self.folder / "HEAD").exists():
            return
        try:
            for name in ("info", "objects", "refs"):
                (self.folder / name).mkdir(exist_ok=True)
            ours = [_pattern(path.relative_to(self.root)) for path in self._avoid]
            wanted = {
                "config": CONFIG,
                "info/attributes": ATTRIBUTES,
                "info/exclude": "\n".join([RULES, *ours, ""]),
                "HEAD": "ref: refs/heads/none\n",
            }
            for name, text in wanted.items():
                path = self.folder / name
                if not path.exists() or path.read_bytes() != os.fsencode(text):
                    path.write_bytes(os.fsencode(text))
            # We hold the lock, so an index lock here is left over from a killed git.
            (self.folder / "index.lock").unlink(missing_ok=True)
        except OSError as error:
            raise unusable(error) from error
        self._ready = True

    def snapshot(self, watch: GitWatch | None = None) -> Snapshot:
        """Return the current files. Call it with the lock held. ``watch`` shows the progress and can stop it.

        Raises:
            GitStopped: it was stopped.
            StorageError: git is missing, the disk is full, or there is far too much to keep.
        """
        self.ready()
        watch = watch or GitWatch()
        try:
            return self._snapshot(watch)
        except GitStopped:
            raise
        except StorageError:
            if not (self.folder / "index").exists():
                raise
            # The index is only a cache: delete a damaged one and retry.
            with contextlib.suppress(OSError):
                (self.folder / "index").unlink()
                (self.folder / "index.lock").unlink()
            return self._snapshot(watch)

    def _snapshot(self, watch: GitWatch) -> Snapshot:
        listed = self._listed()
        watch.check()
        add, drop, skipped = self._sorted(listed)
        watch.check()
        if drop:
            self.git("update-index", "--force-remove", "-z", "--stdin", given=b"".join(path + b"\0" for path in drop))
        if add:
            self._take_in(add, watch)
        tree, left = self.git("write-tree").decode().strip(), tuple(map(os.fsdecode, skipped))
        watch.check()
        return Snapshot(tree, left, self._traits(tree, left))

    def files(self, tree: str) -> list[tuple[bytes, bytes]]:
        """Return mode and path of every file in a tree."""
        lines = self.git("ls-tree", "-r", "-z", tree).split(b"\0")[:-1]
        return [(line[:6], line.partition(b"\t")[2]) for line in lines]

    def _traits(self, tree: str, skipped: Sequence[str]) -> FileTraits | None:
        files = self.files(tree)
        if len(files) > MOST:
            return None
        others = self._list("-o", "--directory")
        return look(self.root, files, [path for path in others if path.endswith(b"/")], skipped)

    def _listed(self) -> list[bytes]:
        """Return paths that are new or changed since the index was written."""
        if (self.root / ".gitignore").is_fifo():
            raise StorageError("The checkpoint was left out: .gitignore is a pipe, and git would wait for it.", HINT)
        own = self.root / ".git" / "info" / "exclude"
        extra = ["-X", str(own)] if own.is_file() else []
        found = self._list("-o", "-m", *extra)
        waiting = [path for path in found if path.endswith(b"/")]
        found = [path for path in found if not path.endswith(b"/")]
        while waiting:
            # For a nested repository git prints only its name, so list its files from inside.
            nested = waiting.pop()
            inside = self._list("-o", work=os.fsencode(self.root / os.fsdecode(nested)))
            waiting += [nested + path for path in inside if path.endswith(b"/")]
            found += [nested + path for path in inside if not path.endswith(b"/")]
        return found

    def _list(self, *options: str, work: bytes = b"") -> list[bytes]:
        # A missing index counts as empty.
        env = {"GIT_WORK_TREE": os.fsdecode(work), "GIT_INDEX_FILE": str(self.folder / "none")} if work else {}
        given = self.git("ls-files", "-z", "--exclude-standard", *options, env=env)
        if len(given) > _LISTING:
            raise self._too_much()
        return given.split(b"\0")[:-1]

    def _sorted(self, listed: Sequence[bytes]) -> tuple[list[bytes], list[bytes], list[bytes]]:
        """Return paths to add, paths to remove, and paths that are left out by rule."""
        add: list[bytes] = []
        large: list[bytes] = []
        links: set[bytes] = set()
        size, skipped = 0, list[bytes]()
        for path in dict.fromkeys(listed):
            full = self.root / os.fsdecode(path)
            try:
                found = full.lstat()
            except OSError:
                add.append(path)
                continue
            if stat.S_ISLNK(found.st_mode):
                links.add(path)
            elif stat.S_ISREG(found.st_mode):
                if found.st_size > self.limits.largest:
                    large.append(path)
                    continue
                if not os.access(full, os.R_OK):
                    skipped.append(path)
                    continue
                size += found.st_size
            add.append(path)
        if len(add) > self.limits.files or size > self.limits.new:
            raise self._too_much()
        if links:
            # Skip paths behind a link that replaced their folder.
            add = [path for path in add if not any(part in links for part in _above(path))]
        return add, large, large + skipped

    def _too_much(self) -> StorageError:
        text = f"{self.root} contains too many or too large files for a checkpoint."
        return StorageError(text, "List files that need no checkpoint in .gitignore, or start ba in a smaller folder.")

    def keep(self, snapshot: Snapshot, ref: str, session: str, turn: int) -> str:
        """Store a snapshot under ``ref``; return its id. Call it with the lock held."""
        more = {"traits": snapshot.traits.note()} if snapshot.traits else {}
        more |= {"others": snapshot.others} if snapshot.others else {}
        note = json.dumps({"session": session, "turn": turn, "skipped": snapshot.skipped, **more})
        id = self.git("commit-tree", snapshot.tree, "-F", "-", given=note.encode()).decode().strip()
        self.git("update-ref", f"refs/ba/{ref}", id)
        return id

    def read(self, name: str) -> SavedCheckpoint | None:
        """Return a checkpoint by its id or ref; None if it does not exist."""
        with contextlib.suppress(StorageError, ValueError, KeyError, TypeError, AttributeError):
            text = self.git("cat-file", "commit", name)
            head, _, body = text.partition(b"\n\n")
            id = self.git("rev-parse", "--verify", "-q", name).decode().strip()
            note = cast("dict[str, Any]", json.loads(body))
            tree = head.split(b"\n")[0].removeprefix(b"tree ").decode()
            self.git("cat-file", "-e", tree)
            traits = read_traits(note.get("traits"))
            skipped, others = frozenset(note["skipped"]), frozenset(note.get("others", ()))
            return SavedCheckpoint(id, tree, str(note["session"]), int(note["turn"]), skipped, traits, others)
        return None

    def changed(self, before: str, after: str) -> list[TreeChange]:
        """Return the differences between two trees, sorted by name."""
        parts = self.git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after).split(b"\0")
        found: list[TreeChange] = []
        # The last part is the empty one after the last separator.
        for about, path in zip(parts[::2], parts[1::2], strict=False):
            old_mode, mode, old, new, _ = about.decode().removeprefix(":").split(" ")
            gone, come = not int(old_mode), not int(mode)
            found.append(
                TreeChange(path, None if gone else TreeEntry(old_mode, old), None if come else TreeEntry(mode, new))
            )
        return found

    def refs(self) -> dict[str, str]:
        """Return all stored checkpoints: names below ``refs/ba/`` with ids."""
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/ba/").decode().splitlines()
        return {name.removeprefix("refs/ba/"): id for name, _, id in (line.partition(" ") for line in lines)}


def _pattern(path: Path) -> str:
    """Return a line of an exclude file that matches only this folder."""
    return "/" + re.sub(r"([*?[\\ ])", r"\\\1", path.as_posix()) + "/"


def _above(path: bytes) -> Iterable[bytes]:
    parts = path.split(b"/")
    return (b"/".join(parts[:count]) for count in range(1, len(parts)))
