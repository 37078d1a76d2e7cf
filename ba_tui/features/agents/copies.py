"""core.ports.agents.AgentCopies in the folder of a session: each agent's copy of the project, and its changes.

A copy is a folder of plain files without ``.git``: its agent has no commands, so git never runs there. The original of
every file is stored next to it, for comparing and merging. Deleting the session deletes both.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from ba_tui.core.errors import BaError, StorageError, UsageError
from ba_tui.core.ports.agents import not_copied
from ba_tui.core.teamwork import ProjectCopy
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.processes.programs import BriefRun, run_briefly
from ba_tui.tools.editing.disk import MAX_BYTES, read_bytes
from ba_tui.tools.editing.documents import binary_kind, detect
from ba_tui.tools.editing.edits import PlannedChange
from ba_tui.tools.editing.transaction import KIND, UndoneFiles
from ba_tui.tools.failures import ToolFailure
from ba_tui.write_ahead import recover, write_ahead

MOST_FILES = 50_000
MOST_BYTES = 2_000_000_000
DEEPEST = 40
"""Maximum depth of nested repositories."""
SECONDS = 60.0
ALONE = "Start the agent without isolation."
# No command from a repository's git settings is run: the repository may come from anyone.
_QUIET = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")


@frozen
class CopyListing:
    """Regular files and links, as paths from the root of the repository. ``left``: files that are not copied, with
    reasons.
    """

    files: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    left: tuple[str, ...]


def listed(project: Path, denied: Callable[[Path], bool]) -> CopyListing:
    """Return the files to copy: those that git tracks or would track, as they are on the disk. Left out are files that
    ``denied`` returns, and links that point outside of the project.

    Raises:
        UsageError: it is in no git repository, or too large. StorageError: git can't list it.
    """
    if not os.path.lexists(project / ".git"):
        raise UsageError("This folder is in no git repository, so no agent can work in a copy of it.", ALONE)
    files, links, left, size = list[str](), list[tuple[str, str]](), list[str](), 0
    names = _all_names(project, left)
    for name in names:
        path = project / name
        try:
            found = path.lstat()
        except OSError:
            # Deleted in the working tree, but still in git's index.
            continue
        if os.path.realpath(path.parent) != str(path.parent):
            left.append(f"{name}: its folder was replaced by a link")
        elif denied(path):
            left.append(f"{name}: a rule denies reading it")
        elif stat.S_ISLNK(found.st_mode):
            to = path.readlink()
            if to.is_absolute() or not _stays(project, path, to):
                left.append(f"{name}: a link that leads out of the project")
            else:
                links.append((name, str(to)))
        elif stat.S_ISREG(found.st_mode):
            files.append(name)
            size += found.st_size
        else:
            left.append(f"{name}: no regular file")
    if len(files) > MOST_FILES or size > MOST_BYTES:
        what = f"{len(files):,} files with {size / 1e9:.1f} GB"
        most = f"{MOST_FILES:,} files and {MOST_BYTES / 1e9:.0f} GB"
        raise UsageError(f"The project is too large for a copy: {what}; at most {most} are copied.", ALONE)
    return CopyListing(tuple(files), tuple(links), tuple(left))


def repository(folder: Path) -> Path:
    """Return the root of the git repository that contains ``folder``; ``folder`` itself without a repository."""
    real = Path(os.path.realpath(folder))
    return next((each for each in (real, *real.parents) if os.path.lexists(each / ".git")), real)


def session_copies(folder: Path, cwd: Path, denied: Callable[[Path], bool]) -> Copies:
    """Return the copies that a session in ``cwd`` keeps in ``folder``."""
    return Copies(folder, repository(cwd), denied)


def _stays(project: Path, link: Path, to: Path) -> bool:
    target = Path(os.path.realpath(link.parent / to))
    return target.is_relative_to(os.path.realpath(project))


def _all_names(project: Path, left: list[str]) -> Sequence[str]:
    """Return the names of all files; submodules and nested repositories are listed by their own git. Failures are added
    to ``left``.
    """
    found, waiting = list[str](), [""]
    while waiting:
        top = waiting.pop()
        try:
            names = _git_names(project / top)
        except StorageError as error:
            if not top:
                raise
            left.append(f"{top}: {str(error).rstrip('.')}")
            continue
        for name in names:
            path = project / top / name
            if not path.is_dir() or path.is_symlink():
                found.append(top + name)
            elif os.path.realpath(path) != str(path):
                left.append(f"{top}{name}: its folder was replaced by a link")
            elif not os.path.lexists(path / ".git"):
                left.append(f"{top}{name}: a submodule that is not checked out")
            elif top.count("/") >= DEEPEST:
                left.append(f"{top}{name}: a repository within too many others")
            else:
                waiting.append(f"{top}{name.rstrip('/')}/")
    return sorted(found)


def _git_names(project: Path) -> Sequence[str]:
    git = shutil.which("git")
    if git is None:
        raise UsageError("No agent can work in a copy: git is not installed.", ALONE)
    argv = [git, *_QUIET, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = run_briefly(BriefRun(argv, SECONDS, project, {**environment, "GIT_OPTIONAL_LOCKS": "0"}))
    if done.code != 0:
        why = done.trouble or done.errors.decode("utf-8", "replace").strip().rpartition("\n")[2] or "git failed"
        raise StorageError(f"The project can't be listed for a copy: {why.removeprefix('fatal: ')}.", ALONE)
    return sorted({os.fsdecode(name) for name in done.output.split(b"\0") if name and not name.startswith(b"../")})


FOLDER = "copies"
FILES, BASE, APPLIED, INFO = "files", "base", "applied", "copy.json"
MAKING, UNCHANGED = ".making", ".unchanged"
LOOK_SECONDS = 1.0
SHOWN = 8
"""Maximum names of files in a line."""
Stamp: TypeAlias = tuple[int, int, int]
"""Size, modification time in ns, and inode of a file: equal stamps mean that the file was not written."""


@frozen
class CopyChange:
    """An agent's change of one file; None for a missing file. ``path`` relative to the project, with ``/``."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None

    @property
    def binary(self) -> bool:
        return any(binary_kind(each[:8192]) for each in (self.before, self.after) if each is not None)

    def sizes(self) -> tuple[int, int]:
        """Return the number of added and removed lines; none for a binary file."""
        if self.binary:
            return 0, 0
        old, new = (detect(each).decode(each) if each else "" for each in (self.before, self.after))
        added, removed = PlannedChange(Path(), self.path, self.before, self.after or b"", old, new).size().split()
        return int(added), -int(removed)


@frozen
class _Kept:
    """The folder of one copy. All methods block."""

    folder: Path
    project: Path
    stamps: dict[str, Stamp] = field(default_factory=dict[str, Stamp])
    left: tuple[str, ...] = ()
    """Project files that were not copied, with reasons."""

    @property
    def files(self) -> Path:
        return self.folder / FILES

    def touched(self) -> dict[str, Stamp | None]:
        """Return the paths of files that are new, deleted (None) or changed, in order."""
        found, above = dict[str, Stamp](), len(str(self.files)) + 1
        # Strings instead of Path objects: there may be tens of thousands.
        for top, _, names in os.walk(str(self.files)):
            for name in names:
                path = f"{top}/{name}"
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    found[path[above:]] = _stamp(status)
        paths = sorted(found.keys() | self.stamps.keys())
        return {path: found.get(path) for path in paths if found.get(path) != self.stamps.get(path)}

    def same(self, path: str) -> bool:
        """Return whether the project's file equals the agent's."""
        with suppress(ToolFailure):
            return _held(self.project / path, path) == _held(self.files / path, path)
        return False

    def change(self, path: str) -> CopyChange | None:
        """Return the change of a file; None without a change. Raises ToolFailure for a file that is too large."""
        before, after = (_held(folder / path, path) for folder in (self.folder / BASE, self.files))
        mode = None
        if after is not None and before is None:
            mode = stat.S_IMODE((self.files / path).lstat().st_mode) & 0o777
        return None if before == after else CopyChange(path, before, after, mode)

    def since(self, change: CopyChange, now: bytes | None) -> CopyChange:
        """Return the part of ``change`` that is new since it was applied, where ``now``, the project's file, is the
        result of that.
        """
        came, then = (_held(self.folder / APPLIED / each / change.path, change.path) for each in ("project", "copy"))
        return replace(change, before=then) if came is not None and came == now else change

    def note(self, path: str, came: bytes, then: bytes) -> None:
        """Record that merging the agent's ``then`` into the project's file gave ``came``."""
        for name, data in (("project", came), ("copy", then)):
            file = self.folder / APPLIED / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

    def save(self) -> None:
        given = {"project": os.fsencode(self.project).hex(), "stamps": self.stamps, "left": self.left}
        file = self.folder / INFO
        unfinished = file.with_suffix(".new")
        unfinished.write_text(json.dumps(given))
        unfinished.replace(file)


class Copies:
    """The copies of one session. ``folder`` is the session's own, ``project`` the root of the repository; ``denied``
    returns which files a rule denies to read.
    """

    def __init__(self, folder: Path, project: Path, denied: Callable[[Path], bool]) -> None:
        self._folder = folder / FOLDER
        self.project = Path(os.path.realpath(project))
        self._denied = denied
        self._looks: dict[str, tuple[float, dict[str, Stamp | None]]] = {}

    async def make(self, agent_id: str) -> ProjectCopy:
        """See core.ports.agents.AgentCopies. Cancelling stops the copying."""
        stop = threading.Event()
        try:
            return await asyncio.to_thread(self._make, agent_id, stop)
        except asyncio.CancelledError:
            stop.set()
            raise

    async def find(self, agent_id: str) -> ProjectCopy:
        """See core.ports.agents.AgentCopies."""
        if await asyncio.to_thread(self._unchanged(agent_id).exists):
            return await self.make(agent_id)
        kept = await asyncio.to_thread(self.kept, agent_id)
        return ProjectCopy(kept.project, kept.files, kept.left)

    async def told(self, agent_id: str) -> str:
        """See core.ports.agents.AgentCopies."""
        try:
            return await asyncio.to_thread(self._told, agent_id)
        except (OSError, BaError) as error:
            return f"What it changed in its copy can't be listed: {error}"

    def changed(self, agent_id: str, *, anew: bool = False) -> dict[str, Stamp | None]:
        """Return the changed paths in the agent's copy, each with the file state that this is based on; files that
        equal the project's are left out. None without a copy. Blocks; the result is cached for all judges of a call,
        unless ``anew``.
        """
        try:
            kept, (looked, touched) = self.kept(agent_id), self._looks.pop(agent_id, (0.0, {}))
            if anew or time.monotonic() - looked > LOOK_SECONDS:
                looked, touched = time.monotonic(), kept.touched()
            if not anew:
                self._looks[agent_id] = looked, touched
            return {path: stamp for path, stamp in touched.items() if not kept.same(path)}
        except (OSError, BaError):
            return {}

    def whole(self, agent_id: str) -> str:
        """Return the full id of an agent with a copy, given the short name that users and models see: ``general-1`` for
        ``main/general-1``. Blocks. Raises UsageError with all candidates if it is ambiguous.
        """
        if not agent_id or os.path.lexists(self._place(agent_id)):
            return agent_id
        ids = [unquote(name) for name in _names(self._folder) if not name.endswith((MAKING, UNCHANGED))]
        found = sorted(id for id in ids if id.endswith(f"/{agent_id}"))
        if len(found) > 1:
            raise UsageError(f"Several agents are called {agent_id}.", f"Name one of {', '.join(found)}.")
        return found[0] if found else agent_id

    def kept(self, agent_id: str) -> _Kept:
        """Return the copy as it was left. Blocks. Raises UsageError if it is gone."""
        folder = self._place(agent_id)
        try:
            given: Any = json.loads((folder / INFO).read_text())
            stamps = {str(path): (int(a), int(b), int(c)) for path, (a, b, c) in given["stamps"].items()}
            project = Path(os.fsdecode(bytes.fromhex(given["project"])))
            left = tuple(map(str, given.get("left", ())))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"The copy of {agent_id} is gone.", "Start a new agent.") from error
        kept = _Kept(folder, project, stamps, left)
        # A killed process may have left a half-applied patch of the copy.
        recover(write_ahead(kept.files).folder, {KIND: UndoneFiles((Path(os.path.realpath(kept.files)),))})
        return kept

    def _place(self, agent_id: str) -> Path:
        return self._folder / quote(agent_id, safe="")

    def _unchanged(self, agent_id: str) -> Path:
        """Record that there was a copy, which was removed because it had no changes."""
        place = self._place(agent_id)
        return place.with_name(f"{place.name}{UNCHANGED}")

    def _make(self, agent_id: str, stop: threading.Event) -> ProjectCopy:
        found = listed(self.project, self._denied)
        place = self._place(agent_id)
        making = place.with_name(place.name + MAKING)
        try:
            # A folder left by a crash during copying is not a copy.
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir(mode=0o700, parents=True)
            self._fill(_Kept(making, self.project, left=found.left), found, stop)
            making.rename(place)
            self._unchanged(agent_id).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(
                f"The project can't be copied: {error.strerror or error}.", "Make room, or try again."
            ) from error
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return ProjectCopy(self.project, place / FILES, found.left)

    def _fill(self, kept: _Kept, found: CopyListing, stop: threading.Event) -> None:
        kept.files.mkdir()
        (kept.folder / BASE).mkdir()
        for name in found.files:
            if stop.is_set():
                raise UsageError("The copying was stopped.")
            file, base = kept.files / name, kept.folder / BASE / name
            for target in (file, base):
                target.parent.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copy(self.project / name, base, follow_symlinks=False)
            except (FileNotFoundError, PermissionError):
                # Deleted meanwhile, or unreadable for the user: then the agent can't read it either.
                base.unlink(missing_ok=True)
                continue
            if base.is_symlink():
                # It was replaced by one just now.
                base.unlink()
                continue
            shutil.copy(base, file)
            base.chmod(0o600)
            kept.stamps[name] = _stamp(file.lstat())
        for name, to in found.links:
            link = kept.files / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(to)
        kept.save()

    def _told(self, agent_id: str) -> str:
        kept = self.kept(agent_id)
        missing = not_copied(kept.left)
        return f"{self._changes(agent_id, kept)} {missing}".rstrip()

    def _changes(self, agent_id: str, kept: _Kept) -> str:
        changed = self.changed(agent_id, anew=True)
        changes = [change for path in changed if (change := kept.change(path))]
        if not changes and kept.touched():
            return "What it changed in its copy is in the project."
        if not changes:
            self._unchanged(agent_id).touch(mode=0o600)
            shutil.rmtree(kept.folder, ignore_errors=True)
            return "It changed nothing in its copy of the project, which was removed."
        added, removed = (sum(change.sizes()[index] for change in changes) for index in (0, 1))
        names = ", ".join(change.path for change in changes[:SHOWN])
        more = f" and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
        what = f"It changed {count(len(changes), 'file')} in its copy (+{added} -{removed}): {names}{more}."
        return f"{what} The project is as it was; apply_changes with this agent_id brings them in."


def _names(folder: Path) -> Sequence[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names alone
    except OSError:
        return ()


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_size, status.st_mtime_ns, status.st_ino


def _held(path: Path, shown: str) -> bytes | None:
    if not os.path.lexists(path) or path.is_symlink():
        return None
    try:
        return read_bytes(path, shown)
    except ToolFailure as error:
        if error.kind != "resource_error":
            raise
        raise error.reworded(f"{error} Files up to {MAX_BYTES // 1_000_000} MB come out of a copy.") from error
