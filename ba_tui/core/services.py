"""What faces are given: a Library to find conversations in, and what surrounds them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import SessionLocked, SessionNotFound
from ba_tui.core.events import Notice
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.core.ports.sessions import Imported, Outline, SavedRequest, SessionInfo
from ba_tui.core.ports.settings import SettingsForm
from ba_tui.core.ports.setup import Catalogue, Setup
from ba_tui.core.ports.trust import Trusting
from ba_tui.core.start import Start
from ba_tui.core.values import frozen


class Library(Protocol):
    """Sessions on disk. Every ``id`` may be shortened as long as it stays unambiguous."""

    def sessions(self, *, everywhere: bool = False) -> Sequence[SessionInfo]:
        """Newest first; those of this folder, or of all folders."""
        ...

    def search(self, text: str, *, everywhere: bool = False) -> Sequence[SessionInfo]: ...

    def find(self, key: str, *, unattended: bool = True) -> SessionInfo:
        """By id, part of an id, or words, which may find sessions of ``ba -p`` as well. Raises SessionNotFound."""
        ...

    def create(self) -> Conversation:
        """Nothing is on disk before the first event."""
        ...

    def open(self, id: str) -> Conversation:
        """Raises SessionLocked, SessionNotFound, NewerSchema, StorageError."""
        ...

    def view(self, id: str) -> Conversation:
        """The session for reading, also while another process writes it. Raises as ``open``, but SessionLocked."""
        ...

    def fork(self, id: str, upto: int | None = None) -> SessionInfo:
        """A new session with the first ``upto`` turns of another (all of them by default)."""
        ...

    def rename(self, id: str, title: str) -> None: ...

    def delete(self, id: str) -> None: ...

    def outline(self, id: str) -> Outline:
        """Reads all of it: call it off the loop."""
        ...

    def requests(self, id: str) -> Sequence[SavedRequest]:
        """What the session sent to models, oldest first."""
        ...

    def request(self, id: str, number: int, *, response: bool = False) -> bytes:
        """One request, or its response, byte for byte. Raises UsageError when there is none, StorageError."""
        ...

    def export(self, id: str, format: str, *, with_secrets: bool = False, for_model: bool = False) -> Iterator[str]:
        """``md``, ``html``, ``json``, ``jsonl`` or ``workflow``, in pieces: a session may be of any size. Reading them
        takes as long as a disk does. ``for_model``: without commands of the person's own. Raises UsageError for another
        format.
        """
        ...

    def take_in(self, path: Path, *, own_folder: bool = False) -> Imported:
        """A session with the conversation of a file that another program or another ba wrote. It opens in this folder,
        or, with ``own_folder``, in the one that the file names. Raises UsageError, StorageError, NewerSchema."""
        ...


Upkeep = Callable[[], Coroutine[None, None, None]]


@frozen
class Services:
    """All that a face is given. ``notices``: what start-up has to say (unknown settings, files not loaded)."""

    library: Library
    catalogue: Catalogue
    setup: Setup
    notices: Sequence[Notice] = ()
    output_format: str = "text"
    upkeep: Upkeep | None = None
    """Work to be done now and then while a face is open; ends when cancelled."""
    tidy: Callable[[], object] | None = None
    """The same once, for a run that ends. Blocks for seconds at most."""
    trust: Trusting | None = None
    """Asked before the first prompt in a folder; None where nobody need be asked."""
    notify: str = "bell"
    """How a person who looks elsewhere is called: ``bell``, ``osc9``, ``osc777`` or ``off``."""
    settings: SettingsForm | None = None
    checks: Callable[[], Iterator[CheckResult]] | None = None
    """The doctor's findings, each as soon as it is known. Takes seconds: iterate it in a thread."""
    with_folders: Callable[[Sequence[Path]], Services] | None = None
    """The same made anew, with more folders to work in. Raises BaError."""
    max_turns: int | None = None
    """Turns of the person that one call of ba answers; None: all of them."""


Connect = Callable[[], Services]


def open_or_view(library: Library, id: str) -> Conversation:
    """The session, for reading alone when another process writes it. Raises as Library.view."""
    try:
        return library.open(id)
    except SessionLocked:
        return library.view(id)


def begin(library: Library, start: Start, *, view: bool = False) -> Conversation:
    """The conversation that ``start`` names, or a new one. ``view``: one that another process writes can be read.

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
