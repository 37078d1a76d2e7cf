"""Ports of memory: entries across sessions, and working memory of tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from ba_tui.core.events import MemoryLine
from ba_tui.core.values import frozen

if TYPE_CHECKING:
    # The memory helper loads this module and has no turns.
    from ba_tui.core.turn import Branch

Kind: TypeAlias = Literal["fact", "preference", "summary", "outcome", "turn"]
"""``turn``: one utterance of a conversation, which has neighbours; all other kinds are independent."""
Origin: TypeAlias = Literal["person", "assistant", "tool", "import"]
Scope: TypeAlias = Literal["project", "global"]
Step: TypeAlias = Literal["vectors", "words", "recent"]
"""How memory was searched. Each step is the fallback of the one before."""

KINDS: tuple[Kind, ...] = get_args(Kind)
ORIGINS: tuple[Origin, ...] = get_args(Origin)


@frozen
class Entry:
    """A memory. Times are seconds since 1970; 0 if unknown."""

    id: str
    text: str
    kind: Kind = "fact"
    subject: str = ""
    """Subject of the fact (``person``, ``repository``). A newer entry with the same subject and ``attribute``
    supersedes it."""
    attribute: str = ""
    """Attribute of the subject (``editor``, ``fiscal year``); without one an entry supersedes nothing."""
    project: str = ""
    """Slug of the project; empty for global entries."""
    session: str = ""
    sequence: int = 0
    """Position within the session."""
    speaker: str = ""
    origin: Origin = "person"
    source: str = ""
    """Id of the message that the entry comes from."""
    at: float = 0.0
    """When it was said or stored."""
    valid_from: float = 0.0
    importance: float = 0.5
    """From 0 to 1."""
    pinned: bool = False
    """Pinned entries are never evicted and never expire; pinned preferences go with every request."""
    model: str = ""
    """The embedding model of its vector; empty without a vector."""
    supersedes: str = ""
    """Id of the older entry that this one replaces."""
    superseded_by: str = ""
    used: int = 0
    """How many requests it was sent with."""
    last_used: float = 0.0
    server: str = ""
    """The team server and its project, for texts from there (``memory.example.org, project sales``); empty for local
    texts."""


@frozen
class RecalledEntry:
    """An entry that a search found. A ``score`` of 1 or more means relevant."""

    entry: Entry
    score: float
    why: str = ""
    """Reasons for the match, for people: shared words, meaning, a name, a date."""


@frozen
class Recollection:
    """Entries that a search found, best first, and the search step. ``why``: the reason for a fallback, if any."""

    found: tuple[RecalledEntry, ...] = ()
    step: Step = "vectors"
    why: str = ""


@frozen
class Draft:
    """An entry to be stored."""

    text: str
    kind: Kind = "fact"
    scope: Scope = "project"
    subject: str = ""
    attribute: str = ""
    origin: Origin = "person"
    source: str = ""
    importance: float = 0.5
    pinned: bool = False


@frozen
class StoreResult:
    """The outcome of storing a draft."""

    entry: Entry
    outcome: Literal["new", "known", "replaces"]
    """``known``: an equal entry existed, which ``entry`` is; ``replaces``: it supersedes ``older``."""
    older: Entry | None = None


@frozen
class Proposal:
    """A statement of the user that may be worth storing. It is stored only if the user accepts it."""

    id: str
    draft: Draft
    older: Entry | None = None
    """The entry that it would supersede."""


@frozen
class MemoryState:
    """State of memory. ``off``: why it is off in this session (a setting, a private session); empty while on."""

    off: str = ""
    entries: int = 0
    size: int = 0
    """Bytes on disk."""
    step: Step = "words"
    """How the newest search ran."""
    why: str = ""
    """Why the search did not use vectors, for people."""
    indexed: tuple[int, int] | None = None
    """Number of entries with a vector, and of all entries; None if all have one."""
    skipped: int = 0
    """Unreadable lines of the log; they are kept."""
    newer: str = ""
    """A sentence about data that a newer ba wrote and this one cannot read."""


class Memory(Protocol):
    """The memory of a session. Methods raise BaError with a one-line message: MemoryOff, SecretRefused for a text with
    a secret, StorageError if nothing could be written."""

    async def state(self) -> MemoryState: ...

    async def remember(self, draft: Draft) -> StoreResult:
        """Store an entry. It supersedes an older one with the same subject and attribute; both stay in the log. For a
        draft without them (``# text``), rules derive kind, subject and attribute from its words."""
        ...

    async def undo(self, ids: Collection[str]) -> None:
        """Undo the changes that a MemoryChanged event of this run reported for these ids: delete what was stored,
        restore what was deleted. Raises UsageError for other ids."""
        ...

    async def edit(self, id: str, text: str) -> Entry:
        """Change the text of an entry."""
        ...

    async def pin(self, id: str, *, pinned: bool) -> Entry: ...

    async def promote(self, id: str) -> Entry:
        """Make an entry of the project global. The caller must have asked the user."""
        ...

    async def forget(self, ids: Collection[str]) -> int:
        """Delete entries from the log, the indexes and the vectors; returns how many."""
        ...

    async def restore(self, entries: Sequence[Entry]) -> None:
        """Store these entries unchanged, to undo a deletion or a superseding."""
        ...

    async def find(self, text: str, *, limit: int = 20, scope: Scope | None = None) -> Recollection:
        """Search for the user: without a threshold, and with superseded entries."""
        ...

    async def listed(self, *, scope: Scope | None = None, offset: int = 0, limit: int = 200) -> Sequence[Entry]:
        """Return entries, pinned ones first, then newest first."""
        ...

    async def history(self, id: str) -> Sequence[Entry]:
        """Return an entry and those that it superseded, newest first."""
        ...

    def used(self) -> Sequence[RecalledEntry]:
        """Return the entries sent with the newest prompt."""
        ...

    def proposals(self) -> Sequence[Proposal]: ...

    async def accept(self, id: str) -> StoreResult:
        """Store a proposal."""
        ...

    def dismiss(self, id: str) -> None:
        """Discard a proposal; its text is not proposed again in this session."""
        ...


def line_of(entry: Entry, *, why: str = "", older: str = "") -> MemoryLine:
    """Return ``entry`` in the form used in events."""
    return MemoryLine(entry.id, entry.text, entry.kind, entry.at, why, older)


class WorkingMemory(Protocol):
    """Keys and JSON values of one task or of the session, cleared when the task ends. Methods raise UsageError for
    values that are not JSON or too large, StorageError if a server does not answer."""

    async def get(self, key: str, default: Any = None) -> Any: ...

    async def set(self, key: str, value: Any) -> None: ...

    async def update(self, values: Mapping[str, Any]) -> None:
        """Set several keys in one change."""
        ...

    async def clear(self) -> None: ...

    async def to_dict(self) -> dict[str, Any]:
        """Return a copy of all values."""
        ...


class TaskMemory(Protocol):
    """Memory for features that run tasks: entries across sessions, and values of one task."""

    @property
    def memory(self) -> Memory: ...

    def off(self) -> str:
        """Return why nothing is stored or recalled; empty while memory is on."""
        ...

    def working(self, branch: Branch, task: str) -> AbstractAsyncContextManager[WorkingMemory]:
        """Return the working memory of ``task``."""
        ...
