"""What the person wrote and has not sent: the draft, and the prompts that wait. It outlives ba, however that ends.

It is kept whole, in the person's state folder, and belongs to a session: nobody gets it who opens another one.

Each process has a file of its own and holds a lock beside it. What processes that are gone left of a session, the next
one that opens it takes over. What they left of sessions that never began can't be opened: that goes to the history.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError
from ba_tui.core.messages import clean_text
from ba_tui.core.values import frozen
from ba_tui.resources import folder_slug, read_regular, save_whole

FILE_LIMIT = 1 << 30
_LOCK, _KEPT = ".lock", ".json"


@frozen
class SavedInput:
    """``draft``: what stands in the input; ``prompts``: sent, but not yet in the session's file, oldest first."""

    draft: str = ""
    prompts: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text, in the order in which they were to be sent."""
        return (*self.prompts, self.draft) if self.draft.strip() else self.prompts

    def __bool__(self) -> bool:
        return bool(self.draft.strip() or self.prompts)

    def __add__(self, other: SavedInput) -> SavedInput:
        drafts = [each.draft for each in (self, other) if each.draft.strip()]
        return SavedInput("\n\n".join(drafts), (*self.prompts, *other.prompts))


@frozen
class LeftBehind:
    """``own`` was left of the session itself; ``texts`` of sessions in its folder that never began, oldest first."""

    own: SavedInput = SavedInput()
    texts: tuple[str, ...] = ()


@frozen
class _Orphan:
    """Files of a process that is gone; ``lock`` is held until they are taken over. ``own``: of the same session."""

    path: Path
    lock: int
    own: bool


class DraftStore:
    """``current`` is what is to be kept; ``save`` and ``take_over`` are file work and meant for a thread.

    ``session``: the id of the one that it belongs to; empty before that is known.
    """

    def __init__(self, state: Path, cwd: Path, session: str = "") -> None:
        self.current = SavedInput()
        self.session = session
        self.lost: tuple[str, ...] = ()
        """What could not be kept when it was closed."""
        self._folder = state / "drafts"
        self._slug = folder_slug(cwd)
        self._name = f"{self._slug}.{session}.{uuid.uuid4().hex[:12]}"
        self._saved = SavedInput()
        self._lock: int | None = None
        self._writing = threading.Lock()
        self._closed = False

    def take_over(self, begun: Callable[[str], bool], shelve: Callable[[str], bool]) -> LeftBehind:
        """Return what was left; what is the session's own is in the file of this process from now on.

        ``begun``: whether there is a session with this id. ``shelve`` writes a text of one that never began to where
        the person finds it, and returns False when it can't.
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
        # What this process could not write down stays where it is.
        if not self.save():
            taken = [each for each in taken if not each.own]
        for each in orphans:
            if each in taken:
                each.path.unlink(missing_ok=True)
                each.path.with_suffix(_LOCK).unlink(missing_ok=True)
            os.close(each.lock)
        return LeftBehind(own, tuple(texts))

    def _orphans(self, begun: Callable[[str], bool]) -> list[_Orphan]:
        """What processes that are gone left of this session, or in its folder of one that never began."""
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
        """Write down what is left to send, if that changed; False when it can't be written."""
        with self._writing, suppress(OSError, StorageError):
            left = self.current
            if left != self._saved and not self._closed:
                self._write(left)
                self._saved = left
            return True
        return False

    def close(self) -> None:
        """Save for the last time; another process may take it over from now on."""
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
    """The descriptor of ``path``, locked; None when another process holds it. Where there are no locks nobody does."""
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except OSError:
        pass
    return fd


def _read(path: Path) -> SavedInput:
    """Raises OSError, ValueError, TypeError, KeyError for what can't be read; a file that is gone holds nothing."""
    try:
        kept = cast("dict[str, Any]", json.loads(read_regular(path, FILE_LIMIT)))
    except FileNotFoundError:
        return SavedInput()
    return SavedInput(str(kept["draft"]), tuple(str(each) for each in kept["prompts"]))
