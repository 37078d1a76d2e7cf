"""Memory across sessions as faces and tools see it: entries, what a search finds, and what waits for a yes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, Protocol, TypeAlias, get_args

from ba_tui.core.text.memories import MemoryLine
from ba_tui.core.values import frozen

Kind: TypeAlias = Literal["fact", "preference", "summary", "outcome", "turn"]
"""``turn``: one utterance of a conversation, which has neighbours; all others stand for themselves."""
Origin: TypeAlias = Literal["person", "assistant", "tool", "import"]
Scope: TypeAlias = Literal["project", "global"]
Step: TypeAlias = Literal["vectors", "words", "recent"]
"""How memory was searched. Each is the fallback of the one before."""

KINDS: tuple[Kind, ...] = get_args(Kind)
ORIGINS: tuple[Origin, ...] = get_args(Origin)


@frozen
class Entry:
    """One memory. Times are seconds since 1970; 0 stands for an unknown time."""

    id: str
    text: str
    kind: Kind = "fact"
    subject: str = ""
    """Whom or what the fact is about (``person``, ``repository``); with ``attribute`` the key that supersedes."""
    attribute: str = ""
    """What is said about the subject (``editor``, ``fiscal year``); without it an entry supersedes nothing."""
    project: str = ""
    """Slug of the project; empty for global entries."""
    session: str = ""
    sequence: int = 0
    """Place within the session."""
    speaker: str = ""
    origin: Origin = "person"
    source: str = ""
    """Id of the message that the entry was taken from."""
    at: float = 0.0
    """When it was said or stored."""
    valid_from: float = 0.0
    importance: float = 0.5
    """From 0 to 1."""
    pinned: bool = False
    """Pinned entries are never evicted and never expire; pinned preferences are injected always."""
    model: str = ""
    """The embedding model its vector was made with; empty for none yet."""
    supersedes: str = ""
    """Id of the older entry that this one replaces."""
    superseded_by: str = ""
    used: int = 0
    """How many requests it was injected into."""
    last_used: float = 0.0
    server: str = ""
    """The team server and the project there whose text this is (``memory.example.org, project sales``); empty for
    texts of this machine."""


@frozen
class Recalled:
    """An entry that a search found. From a ``score`` of 1 on it counts as relevant."""

    entry: Entry
    score: float
    why: str = ""
    """What spoke for it, for people: words it shares with the request, its meaning, a name, a date."""


@frozen
class Recollection:
    """What a search found, best first, and by which step. ``why``: why a step down was needed; else empty."""

    found: tuple[Recalled, ...] = ()
    step: Step = "vectors"
    why: str = ""


@frozen
class Draft:
    """An entry that is to be stored."""

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
class Stored:
    """What became of a draft."""

    entry: Entry
    outcome: Literal["new", "known", "replaces"]
    """``known``: the same was stored already, and ``entry`` is that; ``replaces``: ``older`` is superseded by it."""
    older: Entry | None = None


@frozen
class Proposal:
    """Something the person said that may be worth storing. Nothing is stored before they accept it."""

    id: str
    draft: Draft
    older: Entry | None = None
    """The entry that it would supersede."""


@frozen
class MemoryState:
    """How memory stands. ``off``: why it is off in this session (a setting, a private one); empty while it is on."""

    off: str = ""
    entries: int = 0
    size: int = 0
    """Bytes on the disk."""
    step: Step = "words"
    """How the newest search was made."""
    why: str = ""
    """Why not by vectors, for people."""
    indexed: tuple[int, int] | None = None
    """Entries that have a vector, and all; None when all have."""
    skipped: int = 0
    """Lines of the log that could not be read; they are kept aside."""
    newer: str = ""
    """What of it a newer ba wrote, which this one does not read; a sentence for people."""


class Memory(Protocol):
    """The memory of a session. Its methods raise BaError, whose words are one line for people: MemoryOff, a text with a
    secret (SecretRefused), StorageError when nothing could be written.
    """

    async def state(self) -> MemoryState: ...

    async def remember(self, draft: Draft) -> Stored:
        """Store an entry. A newer one on the same subject and attribute supersedes the older; both stay. Of a draft
        without them (``# text``), kind, subject and attribute follow from its words where rules tell them.
        """
        ...

    async def undo(self, ids: Collection[str]) -> None:
        """Take back what a MemoryChanged of this run says of these ids: forget what was stored, store again what was
        forgotten. Raises UsageError for what this run did not change.
        """
        ...

    async def edit(self, id: str, text: str) -> Entry:
        """Change the text of an entry."""
        ...

    async def pin(self, id: str, *, pinned: bool) -> Entry: ...

    async def promote(self, id: str) -> Entry:
        """Make an entry of the project global. The caller has asked the person."""
        ...

    async def forget(self, ids: Collection[str]) -> int:
        """Remove entries from the log, the indexes and the vectors; returns how many there were."""
        ...

    async def restore(self, entries: Sequence[Entry]) -> None:
        """Take back a forgetting, or the superseding of an older entry, by storing these as they were."""
        ...

    async def find(self, text: str, *, limit: int = 20, scope: Scope | None = None) -> Recollection:
        """Search for the person: no threshold, superseded entries too."""
        ...

    async def listed(self, *, scope: Scope | None = None, offset: int = 0, limit: int = 200) -> Sequence[Entry]:
        """Entries, newest first, pinned ones before all others."""
        ...

    async def history(self, id: str) -> Sequence[Entry]:
        """An entry and those it superseded, newest first."""
        ...

    def used(self) -> Sequence[Recalled]:
        """The entries that went with the newest prompt."""
        ...

    def proposals(self) -> Sequence[Proposal]: ...

    async def accept(self, id: str) -> Stored:
        """Store a proposal."""
        ...

    def dismiss(self, id: str) -> None:
        """Drop a proposal; the same text is not proposed again in this session."""
        ...


def line_of(entry: Entry, *, why: str = "", older: str = "") -> MemoryLine:
    """Return ``entry`` as events hold it."""
    return MemoryLine(entry.id, entry.text, entry.kind, entry.at, why, older)
