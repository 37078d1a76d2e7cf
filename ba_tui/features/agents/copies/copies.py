"""core.teamwork.copies.AgentCopies in the folder of a session: what each agent was given, and what it made of it.

A copy is a folder of plain files without ``.git``: its agent has no commands, so nobody runs git in there. What every
file was when it was copied lies beside it, for comparing and merging. Both go with the session when that is deleted.
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

from ba_tui.core.agent_spec import ProjectCopy
from ba_tui.core.errors import BaError, StorageError, UsageError
from ba_tui.core.teamwork.copies import not_copied
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.agents.copies.listing import Listed, listed
from ba_tui.tools.editing.changes import PlannedChange
from ba_tui.tools.editing.disk import MAX_BYTES, read_bytes
from ba_tui.tools.editing.documents import binary_kind, detect
from ba_tui.tools.editing.transaction import KIND
from ba_tui.tools.editing.undoing import UndoneFiles
from ba_tui.tools.failed import Failed
from ba_tui.write_ahead import recover, write_ahead

FOLDER = "copies"
FILES, BASE, APPLIED, INFO = "files", "base", "applied", "copy.json"
MAKING, UNCHANGED = ".making", ".unchanged"
LOOK_SECONDS = 1.0
SHOWN = 8
"""Names of files in a line."""
Stamp: TypeAlias = tuple[int, int, int]
"""Size, time of the last change in ns, and number of a file: when none differs, nobody wrote to it."""


@frozen
class CopyChange:
    """What an agent made of one file; None where there is none. ``path`` from the top of the project, with ``/``."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None

    @property
    def binary(self) -> bool:
        return any(binary_kind(each[:8192]) for each in (self.before, self.after) if each is not None)

    def sizes(self) -> tuple[int, int]:
        """Lines that it adds and removes; none where it is no text."""
        if self.binary:
            return 0, 0
        old, new = (detect(each).decode(each) if each else "" for each in (self.before, self.after))
        added, removed = PlannedChange(Path(), self.path, self.before, self.after or b"", old, new).size().split()
        return int(added), -int(removed)


@frozen
class _Kept:
    """The folder of one copy. All of it blocks."""

    folder: Path
    project: Path
    stamps: dict[str, Stamp] = field(default_factory=dict[str, Stamp])
    left: tuple[str, ...] = ()
    """What of the project is not in the copy, and why."""

    @property
    def files(self) -> Path:
        return self.folder / FILES

    def touched(self) -> dict[str, Stamp | None]:
        """The paths of files that are new, gone (None), or not what they were, in their order."""
        found, above = dict[str, Stamp](), len(str(self.files)) + 1
        # Texts, not Path: there may be ten thousands of them.
        for top, _, names in os.walk(str(self.files)):
            for name in names:
                path = f"{top}/{name}"
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    found[path[above:]] = _stamp(status)
        paths = sorted(found.keys() | self.stamps.keys())
        return {path: found.get(path) for path in paths if found.get(path) != self.stamps.get(path)}

    def same(self, path: str) -> bool:
        """Whether the project's file is as the agent's."""
        with suppress(Failed):
            return _held(self.project / path, path) == _held(self.files / path, path)
        return False

    def change(self, path: str) -> CopyChange | None:
        """None when it holds what it held. Raises Failed for what is too large."""
        before, after = (_held(folder / path, path) for folder in (self.folder / BASE, self.files))
        mode = None
        if after is not None and before is None:
            mode = stat.S_IMODE((self.files / path).lstat().st_mode) & 0o777
        return None if before == after else CopyChange(path, before, after, mode)

    def since(self, change: CopyChange, now: bytes | None) -> CopyChange:
        """What is new in ``change`` since it came in, where ``now``, the project's file, is what came of that."""
        came, then = (_held(self.folder / APPLIED / each / change.path, change.path) for each in ("project", "copy"))
        return replace(change, before=then) if came is not None and came == now else change

    def note(self, path: str, came: bytes, then: bytes) -> None:
        """The project's file became ``came`` when the agent's, ``then``, came in."""
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
    """Made once for a session. ``folder`` is the session's own, ``project`` the top of the repository; ``denied`` says
    which files a rule denies to read."""

    def __init__(self, folder: Path, project: Path, denied: Callable[[Path], bool]) -> None:
        self._folder = folder / FOLDER
        self.project = Path(os.path.realpath(project))
        self._denied = denied
        self._looks: dict[str, tuple[float, dict[str, Stamp | None]]] = {}

    async def make(self, agent_id: str) -> ProjectCopy:
        """See core.teamwork.copies.AgentCopies. A cancel ends the copying."""
        stop = threading.Event()
        try:
            return await asyncio.to_thread(self._make, agent_id, stop)
        except asyncio.CancelledError:
            stop.set()
            raise

    async def find(self, agent_id: str) -> ProjectCopy:
        """See core.teamwork.copies.AgentCopies."""
        if await asyncio.to_thread(self._unchanged(agent_id).exists):
            return await self.make(agent_id)
        kept = await asyncio.to_thread(self.kept, agent_id)
        return ProjectCopy(kept.project, kept.files, kept.left)

    async def told(self, agent_id: str) -> str:
        """See core.teamwork.copies.AgentCopies."""
        try:
            return await asyncio.to_thread(self._told, agent_id)
        except (OSError, BaError) as error:
            return f"What it changed in its copy can't be listed: {error}"

    def changed(self, agent_id: str, *, anew: bool = False) -> dict[str, Stamp | None]:
        """The paths of the project that the agent changed in its copy, and of which state of the file that is said;
        those that the project holds in the same way are left out. None where there is no copy. Blocks; one look serves
        all who judge a call, unless ``anew``."""
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
        """The whole id of an agent that has a copy and is called ``agent_id``, as users and models are told of it:
        ``general-1`` of ``main/general-1``. Blocks. Raises UsageError, naming all, when several are called so."""
        if not agent_id or os.path.lexists(self._place(agent_id)):
            return agent_id
        ids = [unquote(name) for name in _names(self._folder) if not name.endswith((MAKING, UNCHANGED))]
        found = sorted(id for id in ids if id.endswith(f"/{agent_id}"))
        if len(found) > 1:
            raise UsageError(f"Several agents are called {agent_id}.", f"Name one of {', '.join(found)}.")
        return found[0] if found else agent_id

    def kept(self, agent_id: str) -> _Kept:
        """The copy as it was left. Blocks. Raises UsageError when it is gone."""
        folder = self._place(agent_id)
        try:
            given: Any = json.loads((folder / INFO).read_text())
            stamps = {str(path): (int(a), int(b), int(c)) for path, (a, b, c) in given["stamps"].items()}
            project = Path(os.fsdecode(bytes.fromhex(given["project"])))
            left = tuple(map(str, given.get("left", ())))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"The copy of {agent_id} is gone.", "Start a new agent.") from error
        kept = _Kept(folder, project, stamps, left)
        # A process that was killed may have left a patch of the copy half done.
        recover(write_ahead(kept.files).folder, {KIND: UndoneFiles((Path(os.path.realpath(kept.files)),))})
        return kept

    def _place(self, agent_id: str) -> Path:
        return self._folder / quote(agent_id, safe="")

    def _unchanged(self, agent_id: str) -> Path:
        """Says that there was a copy, which was removed since nothing was changed in it."""
        place = self._place(agent_id)
        return place.with_name(f"{place.name}{UNCHANGED}")

    def _make(self, agent_id: str, stop: threading.Event) -> ProjectCopy:
        found = listed(self.project, self._denied)
        place = self._place(agent_id)
        making = place.with_name(place.name + MAKING)
        try:
            # What an end of ba in the middle of this left is no copy.
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

    def _fill(self, kept: _Kept, found: Listed, stop: threading.Event) -> None:
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
                # Gone by now, or the person may not read it: the agent can't either.
                base.unlink(missing_ok=True)
                continue
            if base.is_symlink():
                # It became one just now.
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
    except Failed as error:
        if error.kind != "resource_error":
            raise
        raise error.reworded(f"{error} Files up to {MAX_BYTES // 1_000_000} MB come out of a copy.") from error
