"""The folders that the user trusted, each with exactly the content it had at that time.

Grants are stored in the user's config folder, never in the project. Every loader of a folder's content asks here first.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import yaml

from ba_tui.core.errors import BaError, StorageError, UsageError
from ba_tui.core.ports.permissions import AskedSetting, ToolWrite, TrustedItems, TrustState
from ba_tui.core.results import Diff
from ba_tui.core.values import frozen, late
from ba_tui.permissions.trust.files import TrustedCopies, TrustFile, differences, found_in, held, links
from ba_tui.permissions.trust.write_records import FileKey, SeenContent, WriteRecords, digest_of, told
from ba_tui.resources import UserFolders, exclusive, open_regular, places, project_root, save_whole, user_home
from ba_tui.settings.document import load_mapping, read_document
from ba_tui.settings.layers import AllowedSettings, load_settings, setting_files
from ba_tui.settings.setters import allowing

# Needed only after a kill.
recover = late("ba_tui.permissions.trust.session_writes:recover")
HEADER = """\
# Folders that you trust, each with the fingerprint of its tools, hooks, settings and the like at that time.
# To stop trusting a folder, remove it here or run: ba trust --revoke FOLDER
"""


@frozen
class _KnownFingerprint:
    """A fingerprint, and the stamp of the files it was computed from: names, sizes and times."""

    stamp: str
    fingerprint: str


_KNOWN: dict[tuple[Path, Path], _KnownFingerprint] = {}
"""By config folder and root, for the whole process: each start asks for settings, hooks, tools and skills."""
_GRANTS: dict[Path, tuple[str, Mapping[str, str]]] = {}
"""By file of grants: its stamp, and each folder's fingerprint."""
_THIS_RUN: dict[tuple[Path, Path], str] = {}
"""By file of grants and root: fingerprints that are trusted until this process ends, because nothing can be saved."""
_ALONE = threading.Lock()
MOST_NAMED = 6
_SETTLED = 3 * 10**9
"""Nanoseconds after which a change shows in a file's times; some file systems store only whole or even seconds."""


class _Start(threading.local):
    answers: dict[tuple[Path, Path], bool] | None = None
    """By file of grants and root: results since this thread entered ``asked_once``; None outside of it."""


_START = _Start()


@contextmanager
def asked_once() -> Generator[None]:
    """Within the block, check each folder only once in this thread.

    Use it while one consistent state is assembled, before anything else runs. Later checks, and other threads, see the
    state at their time.
    """
    if _START.answers is not None:
        yield
        return
    _START.answers = {}
    try:
        yield
    finally:
        _START.answers = None


class Trust:
    """Checks and grants trust; grants are in ``where.trusted``. Thread-safe.

    ``instructions`` returns the files of a project that would be told to models, for ``look``. Changes to them by the
    user need no approval.
    """

    def __init__(self, where: UserFolders, instructions: Callable[[Path], Sequence[str]] = lambda root: ()) -> None:
        self.path = where.trusted
        self._where = where
        self._records = WriteRecords(where.written)
        self._instructions = instructions
        self._own = where.config
        self._allowed = AllowedSettings(where)
        self._copies = TrustedCopies(where.vouched)

    def trusted(self, root: Path) -> bool:
        """Return whether ``root`` is trusted with its current content; False in doubt."""
        answers = _START.answers
        if answers is None:
            return self._holds(root)
        if (self.path, root) not in answers:
            answers[self.path, root] = self._holds(root)
        return answers[self.path, root]

    def _holds(self, root: Path) -> bool:
        granted = self._granted(root)
        if not granted:
            return False
        try:
            return granted == self._fingerprint(root)
        except (UsageError, OSError):
            return False

    def look(self, root: Path) -> TrustState:
        """Return the trust state of ``root``. Never raises; errors are in ``trouble``."""
        granted, warning = self._granted(root), _wide(root)
        state = "changed" if granted else "unknown"
        try:
            files = found_in(root, self._own)
            stamp = _stamp(file.path for file in files)
            contents = dict(_contents(files))
        except UsageError as error:
            return TrustState(root, state, warning=warning, trouble=error.with_hint)
        except OSError as error:
            text = f"{error.filename or root} can't be read: {error.strerror}."
            return TrustState(root, state, warning=warning, trouble=text)
        fingerprint = _whole(contents.items())
        self._remember(root, stamp, fingerprint)
        told = tuple(self._instructions(root))
        holds = (*([TrustedItems("context", told)] if told else []), *held(files, contents))
        written, told_now = self._written(root, files, contents)
        shown = tuple(Diff(one.name, before, now) for one, before, now in told_now)
        runs = tuple(one for one in written if one.runs)
        whole = TrustState(root, state, fingerprint, holds, warning=warning, links=links(files, root))
        if granted == fingerprint:
            # The user reviewed exactly this content. Files that instruct models are checked separately.
            return replace(whole, state="trusted", files=shown, written=tuple(one for one in written if not one.runs))
        counted = {name: content for name, content in contents.items() if content}
        changed, gone = differences(counted, self._copies.read(root, granted) if granted else {})
        rest = tuple(one for one in written if not one.runs)
        refused = self._refused(root) if any(file.kind == "settings" for file in files) else ()
        return replace(whole, files=(*changed, *shown), gone=gone, written=(*runs, *rest), refused=refused)

    def grant(self, seen: TrustState) -> None:
        """Trust a folder in the state that the user saw; later changes are not trusted. Files that tools wrote are
        accepted.

        Raises:
            UsageError: it contains more than a user could review, or can't be read.
            StorageError: the grant can't be saved.
        """
        if seen.trouble:
            raise UsageError(seen.trouble)
        if seen.written or not self._records.none(seen.root):
            accepted = [(FileKey("runs" if one.runs else "told", str(one.path)), one.digest) for one in seen.written]
            self._records.accept(seen.root, accepted)
        self._keep(seen)

    def vouch(self, seen: TrustState, own: Collection[Path] = ()) -> None:
        """Trust a folder without review, for a flag or command. ``own``: files that the user's command has just
        written.

        Raises:
            UsageError: a tool wrote one of the files; or as ``grant``. StorageError: as ``grant``.
        """
        if seen.trouble:
            raise UsageError(seen.trouble)
        unseen = [one for one in seen.written if one.runs and one.path not in own]
        if unseen:
            lines = "; ".join(one.line for one in unseen[:MOST_NAMED])
            more = f" and {len(unseen) - MOST_NAMED} more" if len(unseen) > MOST_NAMED else ""
            text = f"{seen.root} can't be trusted unseen: tools wrote files that decide what runs ({lines}{more})."
            raise UsageError(text, "Review them with `ba trust --show`, then run `ba trust` in a terminal.")
        self._keep(seen)

    def for_this_run(self, seen: TrustState) -> None:
        """Trust a folder until this process ends, if nothing can be saved. Call ``vouch`` first."""
        with _ALONE:
            _THIS_RUN[self.path, seen.root] = seen.fingerprint

    def _keep(self, seen: TrustState) -> None:
        entry = {"fingerprint": seen.fingerprint, "at": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}
        self._keep_copies(seen)
        with exclusive(self.path.parent):
            kept = load_mapping(self.path)
            kept[str(seen.root)] = entry
            save_whole(self.path, HEADER + yaml.safe_dump(kept, allow_unicode=True, sort_keys=False), mode=0o600)

    def asked(self, root: Path) -> Sequence[AskedSetting]:
        """Return what the settings of the project at ``root`` ask for, allowed or not. Never raises."""
        try:
            return load_settings({}, self._where, root, {}, trusted=True).asked
        except (BaError, OSError):
            return ()

    def _refused(self, root: Path) -> tuple[str, ...]:
        """Return problems of the project's settings that trust does not solve and about which the user is not asked."""
        try:
            loaded = load_settings({}, self._where, root, {}, trusted=True)
        except (BaError, OSError):
            return ()
        files = {str(path) for name, path in setting_files(self._where, root).items() if name.startswith("project")}
        asked = {allowing(each) for each in loaded.asked}
        lines = (
            str(problem).removeprefix(f"{root}/")
            for problem in loaded.warnings
            if problem.where in files and problem.cure not in asked
        )
        return tuple(lines)

    def allow(self, root: Path, asked: AskedSetting) -> None:
        """Allow this value for the project at ``root``.

        Raises:
            StorageError: as ``grant``.
        """
        self._allowed.add(root, asked)

    def revoke(self, root: Path) -> bool:
        """Remove the grant and the allowed values; return False if there was no grant.

        Raises:
            StorageError: as ``grant``.
        """
        self._allowed.drop(root)
        with _ALONE:
            _THIS_RUN.pop((self.path, root), None)
        with exclusive(self.path.parent):
            kept = load_mapping(self.path)
            if kept.pop(str(root), None) is None:
                return False
            save_whole(self.path, HEADER + yaml.safe_dump(kept, allow_unicode=True, sort_keys=False), mode=0o600)
        self._copies.drop(root)
        return True

    def _keep_copies(self, seen: TrustState) -> None:
        """Keep copies only if the folder is unchanged since the user saw it: the next difference is computed from
        them."""
        # Without copies, a later change is shown as whole files.
        with suppress(UsageError, OSError, StorageError):
            contents = {name: content for name, content in _contents(found_in(seen.root, self._own)) if content}
            if _whole(contents.items()) == seen.fingerprint:
                self._copies.keep(seen.root, seen.fingerprint, contents)

    def _written(
        self, root: Path, files: Sequence[TrustFile], contents: Mapping[str, bytes]
    ) -> tuple[tuple[ToolWrite, ...], list[tuple[ToolWrite, str | None, str]]]:
        """Return what tools wrote of the files of ``root``; and for instruction files, the texts before and now."""
        if not self._records.any():
            return (), []
        if self._records.of(root).open:
            recover(self._records, root, self._own)
        now = {
            FileKey("runs", str(file.path)): SeenContent(digest_of(contents[file.name], file.path)) for file in files
        }
        for path in self._records.instructions(root):
            now[FileKey("told", path)] = told(path)
        written: list[ToolWrite] = []
        texts: list[tuple[ToolWrite, str | None, str]] = []
        for each in self._records.listed(root, now):
            path, runs = Path(each.key.path), each.key.use == "runs"
            name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
            written.append(ToolWrite(path, name, each.by, each.at, runs, each.digest))
            if not runs:
                texts.append((written[-1], each.before.text, now[each.key].text or ""))
        return tuple(written), texts

    def _fingerprint(self, root: Path) -> str:
        """Return the fingerprint as ``look`` computes it, from memory while no file changed.

        Raises:
            UsageError: there are too many files. OSError: a file can't be read.
        """
        files = found_in(root, self._own)
        stamp = _stamp(file.path for file in files)
        with _ALONE:
            known = _KNOWN.get((self._own, root))
        if known and known.stamp == stamp:
            return known.fingerprint
        fingerprint = _whole(_contents(files))
        self._remember(root, stamp, fingerprint)
        return fingerprint

    def _remember(self, root: Path, stamp: str, fingerprint: str) -> None:
        if stamp:
            with _ALONE:
                _KNOWN[self._own, root] = _KnownFingerprint(stamp, fingerprint)

    def _granted(self, root: Path) -> str:
        with _ALONE:
            known, this_run = _GRANTS.get(self.path), _THIS_RUN.get((self.path, root))
        if this_run:
            return this_run
        try:
            stamp = _stamp([self.path])
        except OSError:
            return ""
        if known is None or known[0] != stamp:
            known = (stamp, _grants(self.path))
            if stamp:
                with _ALONE:
                    _GRANTS[self.path] = known
        return known[1].get(str(root), "")


def _grants(file: Path) -> Mapping[str, str]:
    """Return fingerprints by folder; empty if the file is unreliable."""
    document = read_document(file)
    entries: Mapping[str, Any] = document.data if document and not document.problems else {}
    return {
        root: str(cast("Mapping[str, Any]", entry).get("fingerprint", ""))
        for root, entry in entries.items()
        if isinstance(entry, dict)
    }


def _contents(files: Iterable[TrustFile]) -> Iterator[tuple[str, bytes]]:
    return ((file.name, file.content()) for file in files)


def _whole(contents: Iterable[tuple[str, bytes]]) -> str:
    """Return the fingerprint of all covered content: any other file, name or byte changes it."""
    whole = hashlib.sha256()
    for name, content in contents:
        if content:
            raw = os.fsencode(name)
            whole.update(len(raw).to_bytes(4, "big") + raw + hashlib.sha256(content).digest())
    return whole.hexdigest()


def _stamp(files: Iterable[Path]) -> str:
    """Return a stamp of the files; empty while a file could change without changing it.

    Raises:
        OSError: a file can't be read.
    """
    told: list[str] = []
    times: list[int] = []
    for path in files:
        # Opening a file makes a file server report its current state instead of a cached one.
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
        times += (status.st_mtime_ns, status.st_ctime_ns)
        told.append(
            f"{path} {status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        )
    settled = time.time_ns() - _SETTLED
    return "\n".join(told) or "nothing" if all(each < settled for each in times) else ""


def trust_folder(cwd: Path) -> str:
    """Trust the project of ``cwd`` with its current content, without review; see Trust.vouch.

    Returns a notice if the grant can't be saved. Raises UsageError, StorageError.
    """
    granted = Trust(places())
    seen = granted.look(project_root(cwd))
    try:
        granted.vouch(seen)
    except StorageError as error:
        why = error.__cause__
        if not isinstance(why, OSError):
            # The file must not be overwritten.
            raise
        # Without write records, no tool of ba can have written these files, so trust them for this run.
        granted.for_this_run(seen)
        reason = why.strerror or str(why)
        return f"{seen.root} is trusted for this run only: {granted.path.parent} can't be written ({reason})."
    return ""


def _wide(root: Path) -> str:
    """Return a warning about a folder that contains far more than one project; empty otherwise."""
    home = user_home()
    if root == home:
        return (
            "This is your home folder, not a project: ba could work in all of it. Start ba in a project folder instead."
        )
    if root == Path(root.anchor) or (home is not None and root in home.parents):
        return (
            f"{root} contains far more than one project: ba could work in all of it. Start ba in a project folder "
            "instead."
        )
    return ""
