"""Signed texts of a team. Each member has a key; the lead's key certifies which member has which.

A worker knows only its own private key and the public key of its lead, so it can't sign for others. Pure.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.teamwork import AgentMessage
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.bus import PASSING, REMEMBERED, Delivery
from ba_tui.features.teams.engine.messages import BusLimits, encoded
from ba_tui.features.teams.engine.over_redis.server import PREFIX

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


MemberRole: TypeAlias = Literal["lead", "worker"]
MARK = "ba2"
TOKEN = "ba-team-"  # noqa: S105 - what a token begins with
NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Valid names of members."""
_WORKER = regex(r"[^@]+@.+-\d+-[0-9a-f]{4}")
"""The name of a worker process: role, member that runs it, and its own numbers."""
SKEW = 120.0
"""Tolerated clock difference in seconds."""
WINDOW = 3_600.0
"""Seconds for which a message is accepted after signing; for a task, after its deadline."""
LONGEST = 86_400.0
"""Maximum seconds for which a task is accepted."""
KNOWN_CERTIFICATES = 1_000
INVITE = "On the lead run `ba team invite NAME`, here run `ba team join`. See ba guide workers."


class UnsignedText(UsageError):
    """A text that no member of this team signed, or that its signer may not send. ``about``: the signer or the subject,
    in a word.
    """

    kind = "unsigned"

    def __init__(self, message: str, hint: str = "", about: str = "") -> None:
        super().__init__(message, hint)
        self.about = about or type(self).__name__


class OtherLead(UnsignedText):
    """Signed under the key of another lead."""


class NotAllowed(UnsignedText):
    """Signed by a member that may not send this."""


class WrongTime(UnsignedText):
    """Signed too long ago, or by a clock that is ahead."""


class MembershipRevoked(StorageError):
    """The lead revoked this process's membership."""


@frozen
class CertifiedMember:
    """A signer: ``role`` says whether it may assign tasks; ``at``: when the lead signed its key."""

    name: str
    role: MemberRole
    key: str
    at: float

    @property
    def leads(self) -> bool:
        """Return whether it may assign tasks and speak for the members of its process."""
        return self.role == "lead"

    def speaks_for(self, sender: str) -> bool:
        """Return whether it may send messages as ``sender``. Names of a worker have the form ROLE@MEMBER-PID-XXXX; all
        others belong to the lead.
        """
        if self.leads:
            return not _WORKER.fullmatch(sender)
        _, _, process = sender.partition("@")
        return bool(_WORKER.fullmatch(sender)) and process.rsplit("-", 2)[0] == self.name


@frozen
class Identity:
    """The keys with which one process signs. ``lead``: the public key of the team's lead; ``certificate``: the lead's
    signed statement about this member.
    """

    member: CertifiedMember
    lead: str
    certificate: str
    private: str = field(repr=False)


@frozen
class OpenedText:
    """A text with a valid signature. ``at``: when it was signed, in seconds since the epoch."""

    text: str
    signer: CertifiedMember
    at: float


def new_key() -> str:
    """Return a new private key as text."""
    return _text(secrets.token_bytes(32))


def public_key(private: str) -> str:
    """Return the public key of a private one. Raises UsageError for an invalid key."""
    return _text(_private(private).public_key().public_bytes_raw())


def certified(lead: str, name: str, role: MemberRole, key: str, at: float) -> str:
    """Return a certificate, signed by the private key ``lead``, that the public ``key`` belongs to a member."""
    held = _text(json.dumps({"name": name, "role": role, "key": key, "at": at}).encode())
    return f"{held}.{_text(_private(lead).sign(_bound('certificate', held)))}"


def identity_of_lead(lead: str) -> Identity:
    """Return the identity of the owner of the private key ``lead``."""
    key = public_key(lead)
    certificate = certified(lead, "lead", "lead", key, 0.0)
    return Identity(CertifiedMember("lead", "lead", key, 0.0), key, certificate, lead)


def invited(lead: str, name: str, role: MemberRole = "worker", at: float | None = None) -> Identity:
    """Return the identity of a new member, signed by the private key ``lead``. Raises UsageError for a wrong name."""
    if not NAME.fullmatch(name) or name == "lead":
        raise UsageError(
            f"A member can't be called {name!r}.", "Use letters, digits, dots and dashes, at most 64; not lead."
        )
    private, at = new_key(), time.time() if at is None else at
    certificate = certified(lead, name, role, public_key(private), at)
    return Identity(CertifiedMember(name, role, public_key(private), at), public_key(lead), certificate, private)


def token_of(identity: Identity) -> str:
    """Return the identity as one word that can be copied to the member's machine. It is secret."""
    held = {"lead": identity.lead, "certificate": identity.certificate, "key": identity.private}
    return TOKEN + _text(json.dumps(held, separators=(",", ":")).encode())


def identity_in(token: str) -> Identity:
    """Return the identity in a token. Raises UsageError, whose message does not show the token."""
    try:
        held = cast("dict[str, Any]", json.loads(_bytes(token.strip().removeprefix(TOKEN))))
        lead, certificate, private = (str(held[name]) for name in ("lead", "certificate", "key"))
        member = member_in(certificate, _public(lead))
        if public_key(private) != member.key:
            raise ValueError
    except (ValueError, KeyError, TypeError, UnsignedText) as error:
        hint = "Copy all of it. `ba team invite NAME` on the lead makes a new one."
        raise UsageError("This is no token of a team.", hint) from error
    return Identity(member, lead, certificate, private)


def member_in(certificate: str, lead: Ed25519PublicKey) -> CertifiedMember:
    """Return the member that a certificate names. Raises OtherLead when ``lead`` did not sign it."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - only teams on a server need it

    held, _, signature = certificate.partition(".")
    try:
        lead.verify(_bytes(signature), _bound("certificate", held))
        told = cast("dict[str, Any]", json.loads(_bytes(held)))
        role: MemberRole = "lead" if told["role"] == "lead" else "worker"
        return CertifiedMember(str(told["name"]), role, str(told["key"]), float(told["at"]))
    except (InvalidSignature, ValueError, KeyError, TypeError) as error:
        text = "It is signed under the key of another lead: of another team, or from before that key was changed."
        raise OtherLead(text, INVITE) from error


class Signer:
    """Signs as ``identity`` and reads what other members of its team signed.

    ``revoked``: names of members, and until when their certificates were revoked.
    """

    def __init__(
        self, identity: Identity, revoked: Mapping[str, float] | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.identity = identity
        self._private = _private(identity.private)
        self._lead = _public(identity.lead)
        self.revoked = dict(revoked or {})
        self._clock = clock
        self._known: OrderedDict[str, tuple[CertifiedMember, Ed25519PublicKey]] = OrderedDict()

    def seal(self, place: str, text: str) -> str:
        """Return ``text`` with its signature in front. The signature is valid only for ``place``, so a copy of a
        message in another topic is refused.
        """
        head = f"{self.identity.certificate} {int(self._clock() * 1000)}"
        return f"{MARK} {head} {_text(self._private.sign(_bound(place, head, text)))} {text}"

    def open(self, place: str, sealed: str) -> OpenedText:
        """Return what a member sealed for ``place``. Raises Unsigned."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - see member_in

        mark, _, rest = sealed.partition(" ")
        parts = rest.split(" ", 3)
        if mark != MARK or len(parts) != 4:
            raise UnsignedText("It is not signed by a member of this team.", INVITE)
        certificate, at, signature, text = parts
        member, key = self._member(certificate)
        try:
            key.verify(_bytes(signature), _bound(place, f"{certificate} {at}", text))
            signed = int(at) / 1000
        except (InvalidSignature, ValueError) as error:
            why = f"It names the member {member.name}, and the signature is wrong: it was changed or copied."
            raise UnsignedText(why, about=f"signature of {member.name}") from error
        if self._is_revoked(member):
            hint = f"To let it in again: `ba team invite {member.name}` on the lead."
            raise NotAllowed(f"The lead revoked the member {member.name}.", hint, f"revoked {member.name}")
        return OpenedText(text, member, signed)

    def admit(self, topic: str, message: AgentMessage, opened: OpenedText) -> None:
        """Check that the signer of ``message`` may send it, now and under that name. Raises NotAllowed, WrongTime."""
        member, sender = opened.signer, one_line(message.sender, 100)
        if not member.speaks_for(message.sender):
            text = f"The member {member.name} sent it in the name of {sender}."
            raise NotAllowed(text, f"Revoke the member if that is no mistake: ba team revoke {member.name}", text)
        if message.type == "task_request" and not member.leads:
            text = f"The member {member.name} gave a task; only a lead may."
            raise NotAllowed(text, f"Revoke the member if that is no mistake: ba team revoke {member.name}", text)
        age = self._clock() - opened.at
        longest = SKEW if topic in PASSING else WINDOW
        if message.type == "task_request":
            deadline = message.content.get("deadline")
            left = deadline - opened.at if isinstance(deadline, int | float) and deadline else 0.0
            longest += min(max(left, 0.0), LONGEST)
        if age < -SKEW:
            text = f"The clock of {sender} is {-age:,.0f} s ahead of the clock of this machine."
            raise WrongTime(text, "Set both clocks, for instance with NTP.", f"clock of {member.name}")
        if age > longest:
            text = f"{sender} signed it {age:,.0f} s ago: it was held back or replayed, or a clock is wrong."
            raise WrongTime(text, "If it was new, set the clocks of both machines.", f"clock of {member.name}")

    def learn(self, revoked: Mapping[str, float]) -> bool:
        """Add revoked members; return whether any is new. Members are never removed: an old list changes nothing."""
        new = {name: at for name, at in revoked.items() if at > self.revoked.get(name, float("-inf"))}
        self.revoked |= new
        return bool(new)

    def check_own(self) -> None:
        """Raise MembershipRevoked if this process's membership was revoked: messages that it takes would be lost."""
        member = self.identity.member
        if self._is_revoked(member):
            text = f"The lead revoked the member {member.name}, which this machine is."
            raise MembershipRevoked(
                text, f"To let it in again: `ba team invite {member.name}` on the lead, `ba team join` here."
            )

    def _is_revoked(self, member: CertifiedMember) -> bool:
        return member.at <= self.revoked.get(member.name, float("-inf"))

    def _member(self, certificate: str) -> tuple[CertifiedMember, Ed25519PublicKey]:
        if (known := self._known.get(certificate)) is None:
            member = member_in(certificate, self._lead)
            known = self._known[certificate] = (member, _public(member.key))
            while len(self._known) > KNOWN_CERTIFICATES:
                self._known.popitem(last=False)
        return known


def _bound(*parts: str) -> bytes:
    """Encode the parts unambiguously: different lists of parts give different bytes."""
    return b"".join(b"%d:%s" % (len(part), part) for part in (each.encode("utf-8", "surrogatepass") for each in parts))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    """Raises ValueError."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _private(text: str) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - see member_in

    try:
        return Ed25519PrivateKey.from_private_bytes(_bytes(text))
    except ValueError as error:
        raise UsageError("The key of this team is damaged.", INVITE) from error


def _public(text: str) -> Ed25519PublicKey:
    """Raises ValueError."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - see member_in

    return Ed25519PublicKey.from_public_bytes(_bytes(text))


MOST = 50_000
"""Number of messages that are remembered. Beyond that the oldest are forgotten, and messages of that age are refused.
"""
_TABLES = """
CREATE TABLE IF NOT EXISTS spent (id TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS spent_at ON spent (at);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_OLDEST, _REVOKED = "forgotten", "revoked"


class Spent:
    """A record of processed messages that survives restarts, so that a replayed message is refused. One file for all
    members of a machine; ``path`` None: in memory. Thread-safe. Blocks.

    Redis can't store this record: anyone who can write to the server could also delete from it.
    """

    def __init__(self, path: Path | None, most: int = MOST) -> None:
        self._path = path
        self._most = most
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None

    def has(self, id: str, at: float) -> bool:
        """Return whether the message was processed, or is too old to know. Raises StorageError."""
        rows = self._asked("SELECT 1 FROM spent WHERE id = ?", (id,))
        return bool(rows) or at <= float(self._fact(_OLDEST) or 0.0)

    def add(self, id: str, at: float) -> None:
        """Record a message that was signed at ``at``. Raises StorageError."""
        self._asked("INSERT OR IGNORE INTO spent VALUES (?, ?)", (id, at))
        ((count,),) = self._asked("SELECT COUNT(*) FROM spent")
        if int(str(count)) > self._most:
            few = max(1, self._most // 10)
            ((last,),) = self._asked("SELECT MAX(at) FROM (SELECT at FROM spent ORDER BY at LIMIT ?)", (few,))
            self._keep(_OLDEST, str(last))
            self._asked("DELETE FROM spent WHERE at <= ?", (last,))

    def revoked(self) -> dict[str, float]:
        """Return the revoked members that this machine knows, with the time of revocation. Raises StorageError."""
        return read_revoked(self._fact(_REVOKED))

    def keep_revoked(self, revoked: Mapping[str, float]) -> None:
        """Raises StorageError."""
        self._keep(_REVOKED, json.dumps(dict(revoked)))

    def close(self) -> None:
        with self._lock:
            if self._open:
                self._open.close()
                self._open = None

    def _fact(self, name: str) -> str:
        rows = self._asked("SELECT value FROM facts WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else ""

    def _keep(self, name: str, value: str) -> None:
        self._asked("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def _asked(self, statement: str, values: Iterable[object] = ()) -> list[tuple[object, ...]]:
        try:
            with self._lock:
                return self._connection().execute(statement, tuple(values)).fetchall()  # type: ignore[arg-type]
        except (sqlite3.Error, OSError) as error:
            text = f"{self._path or 'The list of handled messages'} can't be used: {error}."
            hint = "Stop the workers of this machine, remove the file, and wait an hour before you start them again."
            raise StorageError(text, hint) from error

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            if self._path:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._path.touch(mode=0o600)
            made = sqlite3.connect(
                str(self._path or ":memory:"), timeout=5.0, isolation_level=None, check_same_thread=False
            )
            made.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {_TABLES}")
            self._open = made
        return self._open


def read_revoked(text: str) -> dict[str, float]:
    """Return the revoked members in a list; empty for an invalid list."""
    with suppress(ValueError, TypeError, AttributeError):
        told = cast("dict[str, Any]", json.loads(text or "{}"))
        return {str(name): float(at) for name, at in told.items()}
    return {}


REVOKED = f"{PREFIX}revoked"
"""The topic where the lead publishes revoked members."""
LOOK = 10.0
"""Seconds between two reads of that list."""
MOST_TOLD = 20
"""Maximum refusals that are reported one by one; all are counted."""


class RepeatedMessage(UnsignedText):
    """A message that was processed here before."""


class Seals:
    """Signs outgoing messages and refuses forged, late, repeated or revoked ones. ``tell`` shows lines to the user;
    ``spent`` records processed messages across restarts.
    """

    def __init__(
        self, signing: Signer, limits: BusLimits, tell: Callable[[str], object], spent: Spent | None = None
    ) -> None:
        self._signing = signing
        self._limits = limits
        self._tell = tell
        self._spent = spent
        self._counts: dict[str, int] = {}
        self._taken: OrderedDict[str, tuple[str, float]] = OrderedDict()
        """The entry on the server, and the time of signing, of what was handed out and is not handled yet."""
        self._told: set[str] = set()
        self._looked = float("-inf")
        self.refused = 0

    def body(self, topic: str, message: AgentMessage) -> str:
        """Return the signed message for ``topic``. Raises UsageError: see ``encoded``."""
        # The sender's own counter is signed; the server assigns the other one.
        self._counts[message.sender] = own = self._counts.get(message.sender, 0) + 1
        return self._signing.seal(topic, encoded(replace(message, sequence=own), self._limits))

    def refuse(self, topic: str, error: UnsignedText) -> None:
        """Count a refused message, and report its reason once."""
        self.refused += 1
        if error.about not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(error.about)
            self._tell(f"Refused a message in {topic}: {error.with_hint}")

    async def repeated(self, delivery: Delivery, group: str, opened: OpenedText) -> RepeatedMessage | None:
        """Return why a delivery is refused that was processed here before or is in progress; None for a new one. The
        server may deliver one entry again, which is not a repetition.
        """
        if delivery.topic in PASSING:
            return None
        key, entry = _key(delivery, group), delivery.token.partition(" ")[0]
        taken = self._taken.get(key)
        if (taken and taken[0] != entry) or (self._spent and await asyncio.to_thread(self._spent.has, key, opened.at)):
            text = f"{delivery.message.sender} sent it before, and it was taken here: it was repeated or replayed."
            return RepeatedMessage(text)
        self._taken[key] = (entry, opened.at)
        while len(self._taken) > REMEMBERED:
            self._taken.popitem(last=False)
        return None

    async def handled(self, delivery: Delivery, group: str) -> None:
        """Record that a delivery was processed. Raises StorageError."""
        taken = self._taken.pop(key := _key(delivery, group), None)
        if taken and self._spent:
            await asyncio.to_thread(self._spent.add, key, taken[1])

    def looks(self, now: float) -> bool:
        """Return whether the list of revoked members should be read again."""
        due = now - self._looked >= LOOK
        self._looked = now if due else self._looked
        return due

    async def learn(self, sealed: str) -> None:
        """Take over a published list of revoked members if the lead itself signed it. Raises StorageError."""
        if not sealed:
            return
        try:
            opened = self._signing.open(REVOKED, sealed)
        except UnsignedText as error:
            self.refuse(REVOKED, error)
            return
        own = opened.signer.key == self._signing.identity.lead
        if own and self._signing.learn(read_revoked(opened.text)) and self._spent:
            await asyncio.to_thread(self._spent.keep_revoked, self._signing.revoked)

    def close(self) -> None:
        """Report the number of refused messages."""
        if self.refused > 1:
            self._tell(f"{self.refused} messages were refused.")
        if self._spent:
            self._spent.close()


def _key(delivery: Delivery, group: str) -> str:
    return f"{delivery.topic} {group} {delivery.message.id}"
