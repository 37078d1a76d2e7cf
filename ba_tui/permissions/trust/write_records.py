"""The record of files that tools, commands and servers wrote and that the user has not accepted yet."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core import instruction_names
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.permissions.trust.files import PARTS, shown_content
from ba_tui.resources import exclusive, folder_slug, read_regular, save_whole

log = logging.getLogger(__name__)
WrittenUse: TypeAlias = Literal["runs", "told"]
"""The use of a file: programs run or obey it, or it instructs models."""
LARGEST = 50_000_000
MOST_AFTER = 8
"""Digests kept per file, to recognise copies of it in other folders."""
MOST_BY = 200
MOST_OF_FILE = 100_000
"""Maximum bytes of an instruction file whose text is kept."""
MOST_TEXT = 1_000_000
"""Maximum characters of instruction files in one record, kept to show differences."""
UNKNOWN = "an unknown tool (ba's record of this folder can't be read)"
KILLED = "a tool of a session that ended without closing"
NOW = ".now"


@frozen
class FileKey:
    """A file and its use. ``path`` is absolute, with links not followed."""

    use: WrittenUse
    path: str

    def __str__(self) -> str:
        return f"{self.use} {self.path}"


@frozen
class SeenContent:
    """A digest, empty for a missing file, and the text of an instruction file."""

    digest: str
    text: str | None = None


@frozen
class WrittenFile:
    """A file that ``by`` wrote at ``at``. ``before``: the user's last state; ``after``: digests of states that tools
    wrote; ``digest``: the current state, if compared."""

    key: FileKey
    by: str
    at: str
    before: SeenContent
    after: tuple[str, ...] = ()
    digest: str = ""


Contents: TypeAlias = Mapping[FileKey, SeenContent]
ABSENT = SeenContent("")


def digest_of(content: bytes, path: str | Path) -> str:
    """Return the digest of a file's content and the target of its links; empty for empty content."""
    real = os.path.realpath(path)
    link = b"" if real == os.path.normpath(path) else os.fsencode(real)
    return hashlib.sha256(content + b"\0" + link).hexdigest() if content else ""


@dataclass(slots=True)
class Record:
    """One workspace: its open sessions, the state after the last tools ended, and what tools wrote."""

    root: str
    roots: tuple[str, ...] = ()
    """The folders that its open sessions work in."""
    open: dict[str, str] = field(default_factory=dict[str, str])
    """Per session, the process as ``PID START``."""
    known: dict[FileKey, SeenContent] = field(default_factory=dict[FileKey, SeenContent])
    written: dict[FileKey, WrittenFile] = field(default_factory=dict[FileKey, WrittenFile])
    broken: bool = False

    def covers(self, path: str) -> bool:
        """Return whether an open session may have changed the file at ``path``."""
        return any(_below(path, root) for root in (self.root, *self.roots))

    @property
    def after(self) -> Iterator[tuple[str, WrittenFile]]:
        return ((digest, each) for each in self.written.values() for digest in each.after if digest)

    def differing(self, now: Contents) -> Iterator[tuple[FileKey, SeenContent]]:
        """Yield files that differ from the known state, with their current content."""
        for key, seen in now.items():
            if self.known.get(key, ABSENT).digest != seen.digest:
                yield key, seen
        for key, seen in self.known.items():
            if key not in now and seen.digest and not os.path.lexists(key.path):
                yield key, ABSENT

    def add(self, found: Iterable[tuple[FileKey, SeenContent]], by: str) -> None:
        """List files as written by ``by``."""
        at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        for key, seen in found:
            old = self.written.get(key)
            before = old.before if old else self.known.get(key, ABSENT)
            new = seen.digest not in {"", before.digest}
            after = (*(old.after if old else ()), *([seen.digest] if new else ()))
            self.written[key] = WrittenFile(key, one_line(by, MOST_BY), at, before, after[-MOST_AFTER:])


class WriteRecords:
    """All records of a user, in ``folder``. Thread-safe; all methods block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, tuple[tuple[int, ...], Record]] = {}

    def file(self, root: Path) -> Path:
        return self.folder / f"{folder_slug(root)}.json"

    def none(self, root: Path) -> bool:
        """Return whether ba has no record of ``root``, so that no tool ever ran there."""
        return not os.path.lexists(self.file(root))

    def any(self) -> bool:
        """Return whether a record of any workspace exists."""
        try:
            return any(name.endswith(".json") for name in os.listdir(self.folder))  # noqa: PTH208 - names only
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True

    def instructions(self, root: Path) -> list[str]:
        """Return the paths of instruction files that records name and ``root`` would load, and of those at its root."""
        named = {
            key.path
            for record in self.all()
            for key in (*record.written, *record.known)
            if key.use == "told" and (_below(key.path, str(root)) or not _below(key.path, record.root))
        }
        at_root = {str(root / name) for name in (*instruction_names.NAMES, *instruction_names.LOADED)}
        return sorted(path for path in named | at_root if os.path.lexists(path))

    def of(self, root: Path) -> Record:
        """Return the record of ``root``; ``broken`` if it can't be read."""
        record = self._load(self.file(root))
        return Record(str(root), broken=record is not None) if record is None or record.broken else record

    def all(self) -> list[Record]:
        """Return every readable record."""
        try:
            names = sorted(name for name in os.listdir(self.folder) if name.endswith(".json"))  # noqa: PTH208 - names only
        except OSError:
            return []
        return [record for name in names if (record := self._load(self.folder / name))]

    @contextmanager
    def changing(self, root: Path) -> Generator[Record]:
        """Yield the record of ``root``, and save it at the end of the block if it has changed.

        Raises:
            StorageError: it can't be saved.
        """
        file = self.file(root)
        with exclusive(self.folder):
            record = self.of(root)
            record = replace(record, open={**record.open}, known={**record.known}, written={**record.written})
            before = _encoded(record)
            yield record
            if not (record.open or record.written or record.broken):
                with suppress(FileNotFoundError):
                    file.unlink()
            elif (after := _encoded(record)) != before or record.broken:
                record.broken = False
                save_whole(file, after, mode=0o600)

    def listed(self, root: Path, now: Contents, mine: str = "") -> tuple[WrittenFile, ...]:
        """Return which of ``now``, files of ``root``, count as written by tools, and files that tools deleted.

        While a session is open, every difference from its known state counts; ``mine`` is one in which nothing runs.
        """
        records, own = self.all(), self.of(root)
        copies = {digest: each for record in records for digest, each in record.after}
        found: dict[FileKey, WrittenFile] = {}
        for record in (*(each for each in records if each.root != str(root)), own):
            opened = [token for token in record.open if token != mine]
            by = self.running(record) if opened else ""
            for key, seen in now.items():
                entry = record.written.get(key)
                if entry and seen.digest != entry.before.digest:
                    found[key] = replace(entry, digest=seen.digest)
                elif opened and record.covers(key.path) and record.known.get(key, ABSENT).digest != seen.digest:
                    found.setdefault(key, _entry(key, by, record.known.get(key, ABSENT), seen.digest))
            for key in {*record.written, *(record.known if opened else ())}:
                entry = record.written.get(key)
                before = entry.before if entry else record.known.get(key, ABSENT)
                if key not in now and before.digest and _counts(key, root) and not os.path.lexists(key.path):
                    found.setdefault(key, entry or _entry(key, by, before))
        for key, seen in now.items():
            if seen.digest and key not in found and (copied := copies.get(seen.digest)):
                found[key] = replace(copied, key=key, before=ABSENT, digest=seen.digest)
            elif own.broken and seen.digest:
                found[key] = _entry(key, UNKNOWN, ABSENT, seen.digest)
        return tuple(found[key] for key in sorted(found, key=str))

    def accept(self, root: Path, seen: Sequence[tuple[FileKey, str]]) -> None:
        """Accept files with these digests: they are no longer listed.

        Raises:
            StorageError: that can't be saved.
        """
        digests = {digest for _, digest in seen if digest}
        roots = {record.root for record in self.all() if not record.broken} | {str(root)}
        for each in roots:
            if self.none(Path(each)):
                continue
            with self.changing(Path(each)) as record:
                for key, digest in seen:
                    record.written.pop(key, None)
                    if key in record.known or (record.open and record.covers(key.path)):
                        record.known[key] = SeenContent(digest)
                record.written = {
                    key: replace(one, after=tuple(digest for digest in one.after if digest not in digests))
                    for key, one in record.written.items()
                }
                record.broken = False

    def running(self, record: Record) -> str:
        """Return what ran last in the open sessions of a record."""
        said = [_text(self.now(Path(record.root), token)) for token in record.open]
        return " or ".join(dict.fromkeys(filter(None, said))) or KILLED

    def now(self, root: Path, token: str) -> Path:
        """Return the file that names what runs in a session."""
        return self.folder / f"{folder_slug(root)}.{token}{NOW}"

    def _load(self, file: Path) -> Record | None:
        try:
            status = file.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return Record("/", broken=True)
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        known = self._read.get(file.name)
        if known and known[0] == stamp:
            return known[1]
        try:
            record = _decoded(json.loads(read_regular(file, LARGEST)))
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            log.warning("the record %s can't be read: %s", file, error)
            record = Record("/", broken=True)
        self._read[file.name] = (stamp, record)
        return record


def told(path: str | Path) -> SeenContent:
    """Return an instruction file's current content."""
    try:
        raw = read_regular(Path(path), instruction_names.LARGEST)
    except OSError:
        return ABSENT
    return SeenContent(digest_of(raw, path), shown_content(raw) if len(raw) <= MOST_OF_FILE else None)


def alive(process: str) -> bool:
    """Return whether a process of ``Record.open`` still runs."""
    pid, _, start = process.partition(" ")
    return pid.isdigit() and _started(int(pid)) == start


def this_process() -> str:
    return f"{os.getpid()} {_started(os.getpid())}"


def _started(pid: int) -> str:
    """Return the start time of a process in system units; ``there`` if unknown, empty if there is no such process."""
    try:
        return read_regular(Path(f"/proc/{pid}/stat"), 4_096).rpartition(b") ")[2].split()[19].decode()
    except (OSError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        return "there"
    return "there"


def _entry(key: FileKey, by: str, before: SeenContent, digest: str = "") -> WrittenFile:
    return WrittenFile(key, by, "", before, (), digest)


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root.rstrip('/')}/")


def _counts(key: FileKey, root: Path) -> bool:
    """Return whether a deleted file was one that ``root`` runs."""
    if key.use != "runs" or not _below(key.path, str(root)):
        return False
    name = key.path[len(str(root)) :].lstrip("/")
    return any(name == part or name.startswith(f"{part}/") for parts in PARTS.values() for part in parts)


def _text(file: Path) -> str:
    try:
        return read_regular(file, 4_096).decode("utf-8", "replace")
    except OSError:
        return ""


def _encoded(record: Record) -> str:
    left = MOST_TEXT

    def content(seen: SeenContent) -> Mapping[str, Any]:
        nonlocal left
        kept = seen.text is not None and len(seen.text) <= left
        left -= len(seen.text or "") if kept else 0
        return {"digest": seen.digest, "text": seen.text} if kept else {"digest": seen.digest}

    written = {
        str(key): {"by": each.by, "at": each.at, "before": content(each.before), "after": list(each.after)}
        for key, each in record.written.items()
    }
    known = {str(key): content(seen) for key, seen in record.known.items()} if record.open else {}
    return json.dumps(
        {"root": record.root, "roots": record.roots, "open": record.open, "written": written, "known": known}
    )


def _decoded(data: Any) -> Record:
    """Parse a record. Raises KeyError, TypeError, ValueError if it is invalid."""
    written = {_key(text): _written(_key(text), each) for text, each in data["written"].items()}
    known = {_key(text): _seen(each) for text, each in data["known"].items()}
    opened = {str(token): str(process) for token, process in data["open"].items()}
    return Record(str(data["root"]), tuple(map(str, data["roots"])), opened, known, written)


def _written(key: FileKey, data: Mapping[str, Any]) -> WrittenFile:
    return WrittenFile(key, str(data["by"]), str(data["at"]), _seen(data["before"]), tuple(map(str, data["after"])))


def _seen(data: Mapping[str, Any]) -> SeenContent:
    text = data.get("text")
    return SeenContent(str(data["digest"]), text if isinstance(text, str) else None)


def _key(text: str) -> FileKey:
    use, _, path = text.partition(" ")
    if use not in {"runs", "told"}:
        raise ValueError(text)
    return FileKey(cast("WrittenUse", use), path)
