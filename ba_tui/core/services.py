"""The services that assembly gives to faces: the library of sessions, setup, trust, settings."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import SessionLocked, SessionNotFound
from ba_tui.core.events import Notice
from ba_tui.core.ports.contributions import CheckResult
from ba_tui.core.ports.permissions import FolderTrust
from ba_tui.core.ports.sessions import ImportedSession, Outline, SavedRequest, SessionInfo
from ba_tui.core.ports.settings import ModelCatalogue, SettingsForm, Setup
from ba_tui.core.start import Start
from ba_tui.core.values import frozen


class Library(Protocol):
    """Sessions on disk. Every ``id`` may be shortened to an unambiguous prefix."""

    def sessions(self, *, everywhere: bool = False) -> Sequence[SessionInfo]:
        """Return sessions of this folder, or of all folders, newest first."""
        ...

    def search(self, text: str, *, everywhere: bool = False) -> Sequence[SessionInfo]: ...

    def find(self, key: str, *, unattended: bool = True) -> SessionInfo:
        """Return a session by id, prefix of an id, or words; words may also find sessions of ``ba -p``. Raises
        SessionNotFound."""
        ...

    def create(self) -> Conversation:
        """Return a new conversation. Its file is created with the first event."""
        ...

    def open(self, id: str) -> Conversation:
        """Return a session for writing. Raises SessionLocked, SessionNotFound, NewerSchema, StorageError."""
        ...

    def view(self, id: str) -> Conversation:
        """Return a session for reading, even while another process writes it. Raises as ``open``, except
        SessionLocked."""
        ...

    def fork(self, id: str, upto: int | None = None) -> SessionInfo:
        """Create a session with the first ``upto`` turns of another (default: all)."""
        ...

    def rename(self, id: str, title: str) -> None: ...

    def delete(self, id: str) -> None: ...

    def outline(self, id: str) -> Outline:
        """Return the turns and the usage of a session. Reads all of it: call it off the event loop."""
        ...

    def requests(self, id: str) -> Sequence[SavedRequest]:
        """Return the recorded model requests of the session, oldest first."""
        ...

    def request(self, id: str, number: int, *, response: bool = False) -> bytes:
        """Return one request, or its response, byte for byte. Raises UsageError if it is missing, StorageError."""
        ...

    def export(self, id: str, format: str, *, with_secrets: bool = False, for_model: bool = False) -> Iterator[str]:
        """Yield a session as ``md``, ``html``, ``json``, ``jsonl`` or ``workflow``, in pieces: sessions may be of any
        size. Reading may block on the disk. ``for_model`` leaves out the user's own commands. Raises UsageError for
        another format."""
        ...

    def take_in(self, path: Path, *, own_folder: bool = False) -> ImportedSession:
        """Create a session from a file of another program or another ba. It opens in this folder, or, with
        ``own_folder``, in the one named in the file. Raises UsageError, StorageError, NewerSchema."""
        ...


Upkeep = Callable[[], Coroutine[None, None, None]]


@frozen
class Services:
    """Everything that a face gets. ``notices``: messages of the start (unknown settings, files not loaded)."""

    library: Library
    catalogue: ModelCatalogue
    setup: Setup
    notices: Sequence[Notice] = ()
    output_format: str = "text"
    upkeep: Upkeep | None = None
    """Periodic maintenance while a face is open; ends when cancelled."""
    tidy: Callable[[], object] | None = None
    """One run of the maintenance, at the end of a process. Blocks for seconds at most."""
    trust: FolderTrust | None = None
    """Folder trust, asked before the first prompt in a folder; None if no question is needed."""
    notify: str = "bell"
    """How to call a user who looks elsewhere: ``bell``, ``osc9``, ``osc777`` or ``off``."""
    settings: SettingsForm | None = None
    checks: Callable[[], Iterator[CheckResult]] | None = None
    """Yields the doctor's findings as they become known. Takes seconds: iterate it in a thread."""
    with_folders: Callable[[Sequence[Path]], Services] | None = None
    """Returns new services with additional working folders. Raises BaError."""
    max_turns: int | None = None
    """Maximum number of the user's turns in one run of ba; None for no limit."""


Connect = Callable[[], Services]


def open_or_view(library: Library, id: str) -> Conversation:
    """Open a session, read-only if another process writes it. Raises as Library.view."""
    try:
        return library.open(id)
    except SessionLocked:
        return library.view(id)


def begin(library: Library, start: Start, *, view: bool = False) -> Conversation:
    """Return the conversation that ``start`` names, or a new one. ``view`` allows one that another process writes.

    Raises:
        SessionNotFound, SessionLocked, NewerSchema, StorageError: as Library.open does.
    """
    if start.resume is None:
        return library.create()
    if start.resume == "last":
        sessions = library.sessions()
        chosen = next((info for info in sessions if start.all or not info.unattended), None)
        if chosen is None:
            hint = "ba -c --all continues the newest session of ba -p." if sessions else "Start one: ba."
            raise SessionNotFound("No session was saved in this folder yet.", hint)
        info = chosen
    else:
        info = library.find(start.resume, unattended=start.all)
    id = library.fork(info.id).id if start.fork else info.id
    return open_or_view(library, id) if view else library.open(id)
