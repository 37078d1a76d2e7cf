"""The library of sessions: lists, makes, opens, copies, renames, deletes and exports them."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import BaError, SessionNotFound, StorageError, UsageError
from ba_tui.core.events import Titled
from ba_tui.core.messages import clean_text
from ba_tui.core.ports.sessions import ImportedSession, Outline, SavedRequest, SessionInfo
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.sessions import journal
from ba_tui.sessions.artifacts import FOLDER, NAME, NOTE, Artifacts
from ba_tui.sessions.foreign import one_line, redacted
from ba_tui.sessions.journal import JournalFile, Lock, make_private, unreadable
from ba_tui.sessions.records import (
    FILE,
    HEADER,
    OURS,
    Header,
    emptied,
    ends_turn,
    forwards,
    is_record,
    loads,
    read_header,
    starts_turn,
)
from ba_tui.sessions.requests import request_body, response_body, saved_requests
from ba_tui.sessions.timeline import turn_starts

if TYPE_CHECKING:
    from ba_tui.sessions.fulltext import FullText, SessionMatch
    from ba_tui.sessions.index import Digest, SessionIndex, Stamp


Make = Callable[[SessionInfo, JournalFile], Conversation]
Slug = Callable[[Path], str]
Redact = Callable[[str], str]

_TITLE_LENGTH = 200
_PLACES = 100
"""Number of found sessions for which the place is looked up."""
_ID_PART = regex(r"[0-9a-f-]{3,}")


@frozen
class LibraryHabits:
    """``redact`` removes known secrets from exports. ``attended``: a user follows the sessions."""

    redact: Redact = str
    attended: bool = True


_USUAL = LibraryHabits()


class SessionLibrary:
    """Sessions below ``root``; those of ``cwd`` belong to the current folder. ``make`` creates a conversation."""

    def __init__(self, root: Path, cwd: Path, slug: Slug, make: Make, habits: LibraryHabits = _USUAL) -> None:
        self._root = root
        self._cwd = cwd
        self._slug = slug
        self._make = make
        self._redact = habits.redact
        self._attended = habits.attended
        self._open: WeakValueDictionary[str, JournalFile] = WeakValueDictionary()

    @cached_property
    def _index(self) -> SessionIndex:
        from ba_tui.sessions.index import SessionIndex  # noqa: PLC0415 - a session that is begun needs no list of others

        return SessionIndex(self._root.parent / "index.sqlite", self._root)

    @cached_property
    def _text(self) -> FullText:
        from ba_tui.sessions.fulltext import FullText  # noqa: PLC0415 - see _index

        return FullText(self._root.parent / "search.sqlite", self._root)

    def sessions(self, *, everywhere: bool = False) -> Sequence[SessionInfo]:
        found = self._found(everywhere=everywhere)
        if everywhere and found:
            self._index.keep(found)
            self._text.keep(found)
        self._text.tidy()
        return self._infos(found)

    def search(self, text: str, *, everywhere: bool = False) -> Sequence[SessionInfo]:
        """Return sessions that contain every word of ``text`` in messages, calls or results, newest first, with the
        place."""
        found = self._found(everywhere=everywhere)
        terms = clean_text(text).split()
        if not found or not terms:
            return self._infos(found)
        self._text.update(found)
        matches = self._matching(found, terms, deep=True)
        keys = {key.partition("/")[2]: key for key in found}
        places = self._text.places([keys[info.id] for info in matches[:_PLACES]], terms)
        return [replace(info, found=self._shown(places.get(keys[info.id]))) for info in matches]

    def find(self, key: str, *, unattended: bool = True) -> SessionInfo:
        """Return a session by its id, an unambiguous part of it, or words.

        Words are searched in titles and prompts first, and in this folder's sessions first. ``unattended``: words may
        also find sessions that only ``ba -p`` wrote.
        """
        keys = self._keys(key)
        if len(keys) == 1:
            return self._info(keys[0])
        terms = clean_text(key).split()
        for deep in (False, True) if terms else ():
            for everywhere in (False, True):
                found = self._found(everywhere=everywhere)
                if deep:
                    self._text.update(found)
                matches = self._matching(found, terms, deep=deep)
                if chosen := next((info for info in matches if unattended or not info.unattended), None):
                    return chosen
        raise _not_one(key, keys)

    def _matching(self, found: Mapping[str, Stamp], terms: Sequence[str], *, deep: bool) -> list[SessionInfo]:
        """Return sessions that contain every word, newest first; ``deep``: anywhere, not only in title and prompts."""
        self._index.digests(found)
        matches = set(found)
        for term in terms:
            matches &= self._index.matching([term]) | (self._text.matching(term) if deep else set())
        return self._infos({key: found[key] for key in matches})

    def _shown(self, place: SessionMatch | None) -> str:
        return one_line(self._redact(redacted(place.text))) if place else ""

    def create(self) -> Conversation:
        """Create a session. Nothing is written before the first turn."""
        now = time.time()
        header = Header(self._new_id(now), str(self._cwd), now, unattended=not self._attended, note_key=_new_key())
        journal = JournalFile(self._root / self._slug(self._cwd) / header.id, header)
        conversation = self._make(SessionInfo(header.id, "", self._cwd, now, now), journal)
        journal.header = replace(header, model=conversation.model)
        self._open[header.id] = journal
        return conversation

    def open(self, id: str) -> Conversation:
        key = self._key(id)
        journal = self._open[key.partition("/")[2]] = JournalFile.open(self._root / key)
        if self._attended:
            journal.attend()
        try:
            return self._make(_opened(self._info(key), journal, ""), journal)
        except BaseException:
            with contextlib.suppress(BaError):
                journal.close()
            raise

    def view(self, id: str) -> Conversation:
        """Open a session read-only; the conversation's ``read_only`` names the writer."""
        key = self._key(id)
        info = self._info(key)
        journal = JournalFile.peek(self._root / key, running=bool(info.locked_by))
        return self._make(_opened(info, journal, info.locked_by or "another process"), journal)

    def fork(self, id: str, upto: int | None = None) -> SessionInfo:
        key = self._key(id)
        source = self._root / key
        info = self._info(key)
        target = source.parent / self._new_id(time.time())
        header = Header(
            target.name, "", time.time(), parent=source.name, unattended=not self._attended, note_key=_new_key()
        )
        self._peek(key, info)
        copy_turns(source, header, upto, running=bool(info.locked_by))
        journal = JournalFile.open(target)
        try:
            journal.append(Titled(f"{info.title} (fork)"))
        finally:
            journal.close()
        return self._info(f"{source.parent.name}/{target.name}")

    def rename(self, id: str, title: str) -> None:
        title = " ".join(clean_text(title).split())[:_TITLE_LENGTH]
        if not title:
            raise UsageError("The title is empty.", "Give the session a few words.")
        journal = JournalFile.open(self._root / self._key(id))
        try:
            journal.append(Titled(title))
            journal.sync()
        finally:
            journal.close()

    def delete(self, id: str) -> None:
        """Delete a session. Raises SessionLocked while a process has it open."""
        key = self._key(id)
        folder = self._root / key
        try:
            held = Lock.acquire(folder)
            try:
                shutil.rmtree(folder)
            finally:
                held.release()
        except OSError as error:
            hint = f"Check the rights of {folder}."
            raise StorageError(f"Session {folder.name} cannot be deleted: {error.strerror or error}.", hint) from error
        self._index.forget(key)
        self._text.forget(key)

    def take_in(self, path: Path, *, own_folder: bool = False) -> ImportedSession:
        """See core.services.Library."""
        from ba_tui.sessions.imports.transcripts import journal_entries, read_transcript  # noqa: PLC0415 - for imports alone

        taken = read_transcript(path)
        source = one_line(taken.source)
        self._refuse_twice(source)
        # The recorded folder becomes the workspace only if the user chooses it.
        cwd = Path(taken.cwd).resolve() if own_folder and taken.cwd and Path(taken.cwd).is_dir() else self._cwd
        now = time.time()
        header = Header(self._new_id(now), str(cwd), taken.created or now, source=source, note_key=_new_key())
        folder = self._root / self._slug(cwd) / header.id
        journal = JournalFile(folder, header)
        try:
            for event in journal_entries(taken, Artifacts(folder / FOLDER)):
                journal.append(event)
            journal.sync()
        except BaError:
            # Don't leave half a session behind.
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            journal.close()
        # Opening the session closes an unfinished turn.
        JournalFile.open(folder, questions=False).close()
        info = self._info(f"{folder.parent.name}/{folder.name}")
        return ImportedSession(info, source, (*taken.remarks, *_elsewhere(taken.cwd, cwd, own_folder=own_folder)))

    def _refuse_twice(self, source: str) -> None:
        for key in self._found(everywhere=True):
            with contextlib.suppress(OSError):
                header = read_header(self._root / key / FILE)
                if header and header.source == source and not header.parent:
                    raise UsageError(f"{source} was imported before, as {header.id}.", "Delete that session first.")

    def outline(self, id: str) -> Outline:
        from ba_tui.sessions.exports.document import Survey  # noqa: PLC0415 - for one command alone

        key = self._key(id)
        return Survey(self._peek(key, self._info(key))).outline(lambda text: self._redact(redacted(text)))

    def requests(self, id: str) -> Sequence[SavedRequest]:
        return list(saved_requests(self._root / self._key(id)))

    def request(self, id: str, number: int, *, response: bool = False) -> bytes:
        return (response_body if response else request_body)(self._root / self._key(id), number)

    def export(self, id: str, format: str, *, with_secrets: bool = False, for_model: bool = False) -> Iterator[str]:
        from ba_tui.sessions.exports.transcripts import SaidToModels, exporter  # noqa: PLC0415 - for exports alone

        write = exporter(format, self._redact, with_secrets=with_secrets)
        journal = self._open.get(id)
        if journal and journal.unsaved:
            # The file lacks entries that are in memory.
            info = journal.info()
        else:
            key = self._key(id)
            info = self._info(key)
            journal = self._peek(key, info)
        events = journal.entries() if format == "jsonl" else journal
        return write(info, SaidToModels(events) if for_model else events)

    def _peek(self, key: str, info: SessionInfo) -> JournalFile:
        return JournalFile.peek(self._root / key, running=bool(info.locked_by))

    def _found(self, *, everywhere: bool) -> dict[str, Stamp]:
        """Return every session on disk with the size and time of its file."""
        here = self._slug(self._cwd)
        folders = self._all() if everywhere else {here: _listed(self._root / here)}
        found: dict[str, Stamp] = {}
        for folder, names in folders.items():
            for name in names:
                with contextlib.suppress(OSError):
                    stat = (file := self._root / folder / name / FILE).stat()
                    if stat.st_size or (emptied(file) and not journal.owner(file.parent)):
                        found[f"{folder}/{name}"] = (stat.st_size, stat.st_mtime_ns)
        return found

    def _all(self) -> dict[str, Sequence[str]]:
        """Return the names in each folder; unreadable folders are skipped. Raises StorageError."""
        found: dict[str, Sequence[str]] = {}
        for folder in _listed(self._root):
            with contextlib.suppress(StorageError):
                found[folder] = _listed(self._root / folder)
        return found

    def _infos(self, found: Mapping[str, Stamp]) -> list[SessionInfo]:
        digests = self._index.digests(found) if found else {}
        now = time.time()
        infos = [self._described(key, entry, entry.used(found[key][1] / 1e9, now)) for key, entry in digests.items()]
        return sorted(infos, key=lambda info: (info.updated, info.id), reverse=True)

    def _info(self, key: str) -> SessionInfo:
        try:
            stat = (self._root / key / FILE).stat()
        except OSError as error:
            raise unreadable(self._root / key, error) from error
        for info in self._infos({key: (stat.st_size, stat.st_mtime_ns)}):
            return info
        raise unreadable(self._root / key, OSError("the log says more, ba doctor names its file"))

    def _described(self, key: str, entry: Digest, used: float) -> SessionInfo:
        folder = self._root / key
        locked_by = journal.owner(folder)
        return SessionInfo(
            id=folder.name,
            title=entry.title,
            cwd=Path(os.fsdecode(entry.cwd)) if entry.cwd else self._cwd,
            created=entry.created,
            updated=used,
            turns=entry.turns,
            cost=entry.cost,
            model=entry.model,
            preview=entry.preview,
            locked_by=locked_by,
            unattended=entry.unattended,
            left_open=not locked_by and journal.left_open(folder),
        )

    def _key(self, id: str) -> str:
        keys = self._keys(id)
        if len(keys) != 1:
            raise _not_one(id, keys)
        return keys[0]

    def _keys(self, id: str) -> list[str]:
        """Return the session with this id, otherwise all whose id begins with it, otherwise all whose id ends with
        it."""
        keys = [f"{folder}/{name}" for folder, names in self._all().items() for name in names]
        ids = {key: key.partition("/")[2] for key in keys}
        if exact := [key for key in keys if ids[key] == id]:
            return exact[:1]
        if not _ID_PART.fullmatch(id):
            return []
        return [key for key in keys if ids[key].startswith(id)] or [key for key in keys if ids[key].endswith(id)]

    def _new_id(self, now: float) -> str:
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
        while True:
            id = f"{stamp}-{secrets.token_hex(2)}"
            try:
                taken = self._keys(id)
            except StorageError:
                # The first write reports the error.
                return id
            if not taken:
                return id


def _new_key() -> str:
    """Return a key for notes: see Header.note_key."""
    return secrets.token_hex(6)


def _opened(info: SessionInfo, journal: JournalFile, locked_by: str) -> SessionInfo:
    """Return ``info`` for a conversation. The model in the header of an imported session was the file's choice."""
    imported = bool(journal.header.source)
    model = "" if imported and info.model == journal.header.model else info.model
    return replace(info, locked_by=locked_by, imported=imported, model=model)


def _elsewhere(origin: str, cwd: Path, *, own_folder: bool) -> Sequence[str]:
    """Return a remark about a session from another folder than the one in which it opens."""
    if not origin or origin == str(cwd) or (own_folder and Path(origin).resolve() == cwd):
        return ()
    hint = (
        f"That folder does not exist here: it opens in {cwd}."
        if own_folder or not Path(origin).is_dir()
        else (f"It opens in {cwd}; --own-folders makes it open there.")
    )
    return (f"Held in {one_line(origin)}. {hint}",)


def _listed(folder: Path) -> Sequence[str]:
    """Return the folders in ``folder``; empty if it does not exist. Raises StorageError."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return ()
    except OSError as error:
        why = error.strerror or error
        raise StorageError(f"The sessions in {folder} can't be read: {why}.", "Check its rights.") from error


def _not_one(id: str, keys: Sequence[str]) -> SessionNotFound:
    if not keys:
        return SessionNotFound(f"There is no session “{id}”.", "See ba sessions list --all.")
    names = ", ".join(key.partition("/")[2] for key in keys[-3:])
    more = ", …" if len(keys) > 3 else ""
    return SessionNotFound(f"“{id}” fits {len(keys)} sessions: {names}{more}.", "Type more of the id.")


ATTACHED = "attachments"
"""The folder for copies of files that came with prompts."""


def copy_turns(source: Path, copy: Header, upto: int | None, *, running: bool) -> None:
    """Copy the session in ``source`` to a new one next to it, up to turn number ``upto``. ``copy``: its header.

    Lines are copied unchanged, so that nothing unknown is lost. ``running``: another process writes the session, so
    that an unfinished last turn is left out.
    """
    target = source.parent / copy.id
    try:
        header = read_header(source / FILE) or Header(source.name, "", time.time())
        OURS.check(header.schema_version, source.name)
        lines = partial(_lines, source / FILE, (source / FILE).stat().st_size)
        chosen = islice(lines(), _first_turns(lines, upto, running=running))
    except OSError as error:
        raise unreadable(source, error) from error
    copied = replace(
        copy, cwd=header.cwd, model=header.model, source=header.source, schema_version=header.schema_version
    )
    try:
        _share(_results(source / FOLDER), target / FOLDER)
        _share([path for path in (source / ATTACHED).glob("*") if not path.is_symlink()], target / ATTACHED)
        _write(target, chain((copied.line(),), chosen))
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        hint = "Check the space and the rights there; the original is as it was."
        raise StorageError(f"The copy cannot be written to {target}: {error.strerror or error}.", hint) from error


def _lines(path: Path, size: int) -> Iterator[bytes]:
    """Yield the lines after the header that begin in the first ``size`` bytes; a torn last one is completed or left
    out."""
    for index, line in enumerate(forwards(path, size)):
        if index == 0 and (loads(line) or {}).get("type") == HEADER:
            continue
        if line.endswith(b"\n"):
            yield line
        elif is_record(line):
            yield line + b"\n"


def _first_turns(lines: Callable[[], Iterator[bytes]], upto: int | None, *, running: bool) -> int:
    """Return how many lines to copy. Lines are read again instead of kept in memory: there may be many."""
    count, begun, open_ = 0, 0, False
    for count, line in enumerate(lines(), 1):
        if starts_turn(line):
            begun, open_ = count - 1, True
        elif ends_turn(line):
            open_ = False
    if running and open_:
        count = begun
    starts = turn_starts(islice(lines(), count))
    if not starts:
        raise UsageError("This session has no finished turn to copy.", "Fork it when its first answer is there.")
    if upto is None:
        return count
    if not 1 <= upto <= len(starts):
        turns = "1 turn" if len(starts) == 1 else f"{len(starts)} turns"
        raise UsageError(f"This session has {turns}, not {upto}.", f"Give a number from 1 to {len(starts)}.")
    return starts[upto] if upto < len(starts) else count


def _results(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if NAME.fullmatch(path.name.removesuffix(NOTE)) and not path.is_symlink()]


def _share(found: Sequence[Path], target: Path) -> None:
    """Link stored files into the copy, so that its references work. They never change, so a hard link suffices."""
    if found:
        make_private(target)
    for path in found:
        # Skip files that are being cleaned up.
        with contextlib.suppress(FileNotFoundError):
            try:
                os.link(path, target / path.name)
            except OSError:
                shutil.copyfile(path, target / path.name)
                (target / path.name).chmod(0o600)


def _write(target: Path, lines: Iterable[bytes]) -> None:
    """Write the copy atomically: the file gets its name when it is complete."""
    make_private(target)
    unfinished = target / f"{FILE}.new"
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(target / FILE)
