"""Unsent input, which survives a crash of ba: the draft, the queued prompts, and the history of earlier prompts.

Drafts are stored in the user's state folder and belong to one session.

Each process has its own file and holds a lock next to it. The next process that opens a session takes over the files
of processes that have ended. Drafts of sessions that never started go to the history.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError
from ba_tui.core.messages import clean_text
from ba_tui.core.text.json_text import read_object
from ba_tui.core.values import frozen
from ba_tui.resources import folder_slug, open_regular, read_regular, save_whole
from ba_tui.shared_files import take_lock

FILE_LIMIT = 1 << 30
_LOCK, _KEPT = ".lock", ".json"


@frozen
class SavedInput:
    """``draft``: the text of the input; ``prompts``: sent, but not yet in the session's file, oldest first."""

    draft: str = ""
    prompts: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts in the order of sending."""
        return (*self.prompts, self.draft) if self.draft.strip() else self.prompts

    def __bool__(self) -> bool:
        return bool(self.draft.strip() or self.prompts)

    def __add__(self, other: SavedInput) -> SavedInput:
        drafts = [each.draft for each in (self, other) if each.draft.strip()]
        return SavedInput("\n\n".join(drafts), (*self.prompts, *other.prompts))


@frozen
class LeftBehind:
    """``own``: unsent input of the session; ``texts``: that of sessions in its folder that never started, by age."""

    own: SavedInput = SavedInput()
    texts: tuple[str, ...] = ()


@frozen
class _Orphan:
    """Files of a process that has ended; ``lock`` is held until they are taken over. ``own``: of the same session."""

    path: Path
    lock: int
    own: bool


class DraftStore:
    """Saves ``current``, the unsent input. ``save`` and ``take_over`` block on files: call them in a thread.

    ``session``: the id of the session; empty until it is known.
    """

    def __init__(self, state: Path, cwd: Path, session: str = "") -> None:
        self.current = SavedInput()
        self.session = session
        self.lost: tuple[str, ...] = ()
        """The input that could not be saved when the store was closed."""
        self._folder = state / "drafts"
        self._slug = folder_slug(cwd)
        self._name = f"{self._slug}.{session}.{uuid.uuid4().hex[:12]}"
        self._saved = SavedInput()
        self._lock: int | None = None
        self._writing = threading.Lock()
        self._closed = False

    def take_over(self, begun: Callable[[str], bool], shelve: Callable[[str], bool]) -> LeftBehind:
        """Return unsent input of ended processes; that of the session moves to the file of this process.

        ``begun``: whether there is a session with this id. ``shelve`` stores a text of a session that never started;
        it returns False when it can't.
        """
        own, texts, taken = SavedInput(), list[str](), list[_Orphan]()
        orphans = self._orphans(begun)
        for each in orphans:
            with suppress(OSError, ValueError, TypeError, KeyError):
                left = _read(each.path)
                if each.own:
                    own += left
                elif all(map(shelve, left.texts)):
                    texts += left.texts
                else:
                    continue
                taken.append(each)
        self.current = own + self.current
        # Input that this process could not save stays in the old file.
        if not self.save():
            taken = [each for each in taken if not each.own]
        for each in orphans:
            if each in taken:
                each.path.unlink(missing_ok=True)
                each.path.with_suffix(_LOCK).unlink(missing_ok=True)
            os.close(each.lock)
        return LeftBehind(own, tuple(texts))

    def _orphans(self, begun: Callable[[str], bool]) -> list[_Orphan]:
        """Return files of ended processes for this session, or for sessions in its folder that never started."""
        found: list[_Orphan] = []
        with suppress(OSError):
            for path in sorted(self._folder.glob(f"*{_LOCK}"), key=lambda path: path.stat().st_mtime):
                slug, _, rest = path.name.partition(".")
                session = rest.partition(".")[0] if rest.count(".") > 1 else ""
                own = bool(session) and session == self.session
                if path.name == self._name + _LOCK or not (own or (slug == self._slug and not begun(session))):
                    continue
                if (fd := _locked(path, os.O_RDWR)) is not None:
                    found.append(_Orphan(path.with_suffix(_KEPT), fd, own))
        return found

    def save(self) -> bool:
        """Save the unsent input if it changed; return False when it can't be written."""
        with self._writing, suppress(OSError, StorageError):
            left = self.current
            if left != self._saved and not self._closed:
                self._write(left)
                self._saved = left
            return True
        return False

    def close(self) -> None:
        """Save for the last time and release the lock, so that another process may take over."""
        if not self._closed:
            self.lost = () if self.save() else self.current.texts
        with self._writing:
            self._closed = True
            if self._lock is not None:
                with suppress(OSError):
                    if not self._saved:
                        self._path(_LOCK).unlink(missing_ok=True)
                os.close(self._lock)
                self._lock = None

    def _write(self, left: SavedInput) -> None:
        if not left:
            self._path(_KEPT).unlink(missing_ok=True)
            return
        if self._lock is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = _locked(self._path(_LOCK), os.O_RDWR | os.O_CREAT)
        kept = {"draft": clean_text(left.draft), "prompts": list(map(clean_text, left.prompts))}
        save_whole(self._path(_KEPT), json.dumps(kept, ensure_ascii=False), mode=0o600)

    def _path(self, suffix: str) -> Path:
        return self._folder / (self._name + suffix)


def _locked(path: Path, flags: int) -> int | None:
    """Return a locked descriptor of ``path``; None when another process holds the lock. Locks may be unsupported."""
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with suppress(OSError):
        if not take_lock(fd):
            os.close(fd)
            return None
    return fd


def _read(path: Path) -> SavedInput:
    """Read a file; a missing one is empty. Raises OSError, ValueError, TypeError or KeyError for an unreadable one."""
    try:
        kept = cast("dict[str, Any]", json.loads(read_regular(path, FILE_LIMIT)))
    except FileNotFoundError:
        return SavedInput()
    return SavedInput(str(kept["draft"]), tuple(str(each) for each in kept["prompts"]))


# The history has rights 0600. Its methods block on files; when the folder is read-only, prompts are only remembered.

KEPT = 1_000
HISTORY_LIMIT = 20_000_000
"""Most bytes of prompts in the file; a longer prompt is remembered for this run only."""


class PromptHistory:
    """The history of prompts, oldest first. ``load`` fills ``entries``; ``add`` appends to memory and file."""

    def __init__(self, state: Path) -> None:
        self._file = state / "history.jsonl"
        self.entries: list[str] = []

    def load(self) -> None:
        """Read the file, and shorten it when it has grown."""
        with suppress(OSError), open_regular(self._file) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - HISTORY_LIMIT))
            # ``_text`` drops a first line that is cut.
            lines = file.read(HISTORY_LIMIT).decode("utf-8", "replace").splitlines()
            loaded = [text for line in lines if (text := _text(line))]
            self.entries = loaded[-KEPT:] + self.entries
            if len(lines) > 2 * KEPT or size > HISTORY_LIMIT:
                with suppress(StorageError):
                    save_whole(self._file, "".join(map(_line, self.entries)), mode=0o600)

    def remember(self, text: str) -> bool:
        """Remember ``text`` for this run; return False when the file already ends with it."""
        if not text.strip() or (self.entries and self.entries[-1] == text):
            return False
        self.entries.append(text)
        return True

    def shelve(self, text: str) -> bool:
        """Remember ``text`` for this run and in the file; return False when it can't be written."""
        return not self.remember(text) or self.append(text)

    def append(self, text: str) -> bool:
        """Add one prompt to the file; False when it can't be written."""
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
            with open(os.open(self._file, flags, 0o600), "a", encoding="utf-8") as file:
                file.write(_line(text))
            return True
        return False

    def search(self, words: str, limit: int = 50) -> Iterator[str]:
        """Yield prompts that contain all of ``words``, newest first, without duplicates."""
        wanted = words.casefold().split()
        seen: set[str] = set()
        for text in reversed(self.entries):
            folded = text.casefold()
            if text not in seen and all(word in folded for word in wanted):
                seen.add(text)
                yield text
                if len(seen) >= limit:
                    return


def _line(text: str) -> str:
    return json.dumps({"text": clean_text(text)}, ensure_ascii=False) + "\n"


def _text(line: str) -> str:
    """Return the prompt in a line; empty for a torn or foreign line."""
    return str((read_object(line) or {}).get("text", ""))
