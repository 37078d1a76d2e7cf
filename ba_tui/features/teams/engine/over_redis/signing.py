"""Signed texts of a team. Each member has a key; the lead's key signs which member has which.

A worker knows its own private key and the public key of its lead: nothing that could sign for others. Pure.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.bus import PASSING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MemberRole: TypeAlias = Literal["lead", "worker"]
MARK = "ba2"
TOKEN = "ba-team-"  # noqa: S105 - what a token begins with
NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a member may be called."""
_WORKER = regex(r"[^@]+@.+-\d+-[0-9a-f]{4}")
"""The name of a worker process: its role, the member that runs it, and numbers of its own."""
SKEW = 120.0
"""Seconds by which clocks may differ."""
WINDOW = 3_600.0
"""Seconds for which a message is accepted after it was signed; a task, after its deadline."""
LONGEST = 86_400.0
"""Seconds for which a task is accepted at most."""
KNOWN_CERTIFICATES = 1_000
INVITE = "On the lead run `ba team invite NAME`, here run `ba team join`. See ba guide workers."


class Unsigned(UsageError):
    """A text that no member of this team signed, or one that its signer may not send. ``about``: who, or what, in a
    word."""

    kind = "unsigned"

    def __init__(self, message: str, hint: str = "", about: str = "") -> None:
        super().__init__(message, hint)
        self.about = about or type(self).__name__


class OtherLead(Unsigned):
    """Signed under the key of another lead."""


class NotAllowed(Unsigned):
    """Signed by a member that may not send this."""


class WrongTime(Unsigned):
    """Signed too long ago, or by a clock that is ahead."""


class Revoked(StorageError):
    """The lead revoked the member that this process is."""


@frozen
class Member:
    """Who signed: ``role`` says whether it may give tasks; ``at``: when the lead signed its key."""

    name: str
    role: MemberRole
    key: str
    at: float

    @property
    def leads(self) -> bool:
        """Whether it may give tasks and speak for the members of its process."""
        return self.role == "lead"

    def speaks_for(self, sender: str) -> bool:
        """Return whether a message may name ``sender``. A worker has names of the form ROLE@MEMBER-PID-XXXX; a lead
        has all others."""
        if self.leads:
            return not _WORKER.fullmatch(sender)
        _, _, process = sender.partition("@")
        return bool(_WORKER.fullmatch(sender)) and process.rsplit("-", 2)[0] == self.name


@frozen
class Identity:
    """What one process signs with. ``lead``: the public key of the team's lead; ``certificate``: what that key signed
    about this member."""

    member: Member
    lead: str
    certificate: str
    private: str = field(repr=False)


@frozen
class Opened:
    """A text whose signature is right. ``at``: when it was signed, in seconds since the epoch."""

    text: str
    signer: Member
    at: float


def new_key() -> str:
    """Return a new private key as text."""
    return _text(secrets.token_bytes(32))


def public_key(private: str) -> str:
    """Return the public key that belongs to a private one. Raises UsageError when it is none."""
    return _text(_private(private).public_key().public_bytes_raw())


def certified(lead: str, name: str, role: MemberRole, key: str, at: float) -> str:
    """Return the certificate by which the private key ``lead`` says that the public ``key`` is that of a member."""
    held = _text(json.dumps({"name": name, "role": role, "key": key, "at": at}).encode())
    return f"{held}.{_text(_private(lead).sign(_bound('certificate', held)))}"


def identity_of_lead(lead: str) -> Identity:
    """Return what the owner of the private key ``lead`` signs with."""
    key = public_key(lead)
    certificate = certified(lead, "lead", "lead", key, 0.0)
    return Identity(Member("lead", "lead", key, 0.0), key, certificate, lead)


def invited(lead: str, name: str, role: MemberRole = "worker", at: float | None = None) -> Identity:
    """Return the identity of a new member, signed by the private key ``lead``. Raises UsageError for a wrong name."""
    if not NAME.fullmatch(name) or name == "lead":
        raise UsageError(
            f"A member can't be called {name!r}.", "Use letters, digits, dots and dashes, at most 64; not lead."
        )
    private, at = new_key(), time.time() if at is None else at
    certificate = certified(lead, name, role, public_key(private), at)
    return Identity(Member(name, role, public_key(private), at), public_key(lead), certificate, private)


def token_of(identity: Identity) -> str:
    """Return the identity as one word, to carry it to the member's machine. It is secret."""
    held = {"lead": identity.lead, "certificate": identity.certificate, "key": identity.private}
    return TOKEN + _text(json.dumps(held, separators=(",", ":")).encode())


def identity_in(token: str) -> Identity:
    """Return the identity that a token holds. Raises UsageError, whose words do not show the token."""
    try:
        held = cast("dict[str, Any]", json.loads(_bytes(token.strip().removeprefix(TOKEN))))
        lead, certificate, private = (str(held[name]) for name in ("lead", "certificate", "key"))
        member = member_in(certificate, _public(lead))
        if public_key(private) != member.key:
            raise ValueError
    except (ValueError, KeyError, TypeError, Unsigned) as error:
        hint = "Copy all of it. `ba team invite NAME` on the lead makes a new one."
        raise UsageError("This is no token of a team.", hint) from error
    return Identity(member, lead, certificate, private)


def member_in(certificate: str, lead: Ed25519PublicKey) -> Member:
    """Return the member that a certificate names. Raises OtherLead when ``lead`` did not sign it."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - only teams on a server need it

    held, _, signature = certificate.partition(".")
    try:
        lead.verify(_bytes(signature), _bound("certificate", held))
        told = cast("dict[str, Any]", json.loads(_bytes(held)))
        role: MemberRole = "lead" if told["role"] == "lead" else "worker"
        return Member(str(told["name"]), role, str(told["key"]), float(told["at"]))
    except (InvalidSignature, ValueError, KeyError, TypeError) as error:
        text = "It is signed under the key of another lead: of another team, or from before that key was changed."
        raise OtherLead(text, INVITE) from error


class Signing:
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
        self._known: OrderedDict[str, tuple[Member, Ed25519PublicKey]] = OrderedDict()

    def seal(self, place: str, text: str) -> str:
        """Return ``text`` with its signature in front, which is valid for ``place`` alone: a copy of a message in
        another topic is refused."""
        head = f"{self.identity.certificate} {int(self._clock() * 1000)}"
        return f"{MARK} {head} {_text(self._private.sign(_bound(place, head, text)))} {text}"

    def open(self, place: str, sealed: str) -> Opened:
        """Return what a member sealed for ``place``. Raises Unsigned."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - see member_in

        mark, _, rest = sealed.partition(" ")
        parts = rest.split(" ", 3)
        if mark != MARK or len(parts) != 4:
            raise Unsigned("It is not signed by a member of this team.", INVITE)
        certificate, at, signature, text = parts
        member, key = self._member(certificate)
        try:
            key.verify(_bytes(signature), _bound(place, f"{certificate} {at}", text))
            signed = int(at) / 1000
        except (InvalidSignature, ValueError) as error:
            why = f"It names the member {member.name}, and the signature is wrong: it was changed or copied."
            raise Unsigned(why, about=f"signature of {member.name}") from error
        if self._is_revoked(member):
            hint = f"To let it in again: `ba team invite {member.name}` on the lead."
            raise NotAllowed(f"The lead revoked the member {member.name}.", hint, f"revoked {member.name}")
        return Opened(text, member, signed)

    def admit(self, topic: str, message: AgentMessage, opened: Opened) -> None:
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
        """Add revoked members; returns whether any is new. None is ever taken off: an old list changes nothing."""
        new = {name: at for name, at in revoked.items() if at > self.revoked.get(name, float("-inf"))}
        self.revoked |= new
        return bool(new)

    def check_own(self) -> None:
        """Raises Revoked where this process is no member any more: what it took would be lost."""
        member = self.identity.member
        if self._is_revoked(member):
            text = f"The lead revoked the member {member.name}, which this machine is."
            raise Revoked(text, f"To let it in again: `ba team invite {member.name}` on the lead, `ba team join` here.")

    def _is_revoked(self, member: Member) -> bool:
        return member.at <= self.revoked.get(member.name, float("-inf"))

    def _member(self, certificate: str) -> tuple[Member, Ed25519PublicKey]:
        if (known := self._known.get(certificate)) is None:
            member = member_in(certificate, self._lead)
            known = self._known[certificate] = (member, _public(member.key))
            while len(self._known) > KNOWN_CERTIFICATES:
                self._known.popitem(last=False)
        return known


def _bound(*parts: str) -> bytes:
    """The parts as bytes, so that no two lists of parts have the same."""
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
