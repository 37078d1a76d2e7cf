"""The keys of this machine in a team: those of a lead with its list of members, or the one that a lead issued; and the
bus that the settings choose.

Private keys are in the keyring, else in ``keys.yaml``; a member's token may be in an environment variable. Only ``ba
team invite`` prints them, and they are never logged.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.bus import AcceptedResults, MemoryAccepted, MemoryBus, MessageBus
from ba_tui.features.teams.engine.messages import BusLimits, Redact
from ba_tui.features.teams.engine.over_redis.bus import RedisBus, Tell
from ba_tui.features.teams.engine.over_redis.server import RedisServer
from ba_tui.features.teams.engine.over_redis.signing import (
    Identity,
    MemberRole,
    Signer,
    Spent,
    identity_in,
    identity_of_lead,
    invited,
    new_key,
    token_of,
)
from ba_tui.features.teams.engine.over_redis.state import RedisAccepted, RedisItems
from ba_tui.features.teams.engine.shared_context import Item, Items, MemoryItems
from ba_tui.resources import UserFolders, exclusive, open_places, save_whole
from ba_tui.settings.keys import read_key, save_key
from ba_tui.settings.sections.agents import TeamSettings

LEAD, MEMBER, TOKEN_VARIABLE = "team-lead", "team-member", "BA_TEAM_TOKEN"
"""Names of the entries in the keyring or ``keys.yaml``, and the environment variable with a member's token."""
SHARED, SHARED_VARIABLE = "team-secret", "BA_TEAM_SECRET"
"""Where older versions stored the secret that all members shared."""
JOIN = "On the lead run `ba team invite NAME`, here run `ba team join`. See ba guide workers."


@frozen
class InvitedMember:
    """A member that the lead invited. ``revoked``: keys issued before that time are refused."""

    name: str
    role: MemberRole
    at: float
    revoked: float = 0.0

    @property
    def gone(self) -> bool:
        """Return whether its membership is revoked."""
        return self.revoked >= self.at


@frozen
class MemberList:
    """The members that the lead of this machine knows, by name. ``at``: time of the last change."""

    members: Mapping[str, InvitedMember] = field(default_factory=dict[str, InvitedMember])
    at: float = 0.0

    @property
    def revoked(self) -> dict[str, float]:
        """Return the names of revoked members, and until when their certificates were revoked."""
        return {each.name: each.revoked for each in self.members.values() if each.revoked}


class Membership:
    """The membership of this machine in a team. Blocks."""

    def __init__(self, where: UserFolders) -> None:
        self._where = where

    @property
    def _file(self) -> Path:
        return self._where.state / "team" / "members.json"

    def lead_key(self) -> str:
        """Return the private key of the lead; empty on a machine without one. Raises StorageError."""
        found = read_key(LEAD, None, self._where)
        return found.value if found else ""

    def given(self) -> Identity | None:
        """Return the identity that a lead issued to this machine. Raises StorageError, and UsageError for a broken
        token.
        """
        found = read_key(MEMBER, TOKEN_VARIABLE, self._where)
        return identity_in(found.value) if found else None

    def as_lead(self) -> Identity:
        """Return the identity with which a lead signs. The key is made on first use.

        Raises:
            UsageError: this machine is a worker of a team, or was set up by an older ba. StorageError.
        """
        given, key = self.given(), self.lead_key()
        if given and given.member.leads:
            return given
        if given and not key:
            text = f"This machine is the worker {given.member.name} of a team, and only a lead gives tasks."
            raise UsageError(text, f"On the lead run `ba team invite {given.member.name} --lead`, here `ba team join`.")
        if not key:
            self._check_shared("Other machines: run `ba team invite NAME` here and `ba team join` there.")
            key = self._new_lead()
        return identity_of_lead(key)

    def as_worker(self, host: str) -> Identity:
        """Return the identity with which a worker of this machine signs. A lead's machine needs no invitation.

        Raises:
            UsageError: this machine joined no team. StorageError.
        """
        if given := self.given():
            return given
        if key := self.lead_key():
            name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in host).strip("-")
            return invited(key, (name or "here")[:60])
        self._check_shared(JOIN)
        raise UsageError("This machine has not joined a team.", JOIN)

    def invite(self, name: str, role: MemberRole) -> str:
        """Return the token with which a machine joins as ``name``. An earlier key of that name is revoked. Raises
        UsageError, StorageError.
        """
        lead = self._lead()
        with exclusive(self._where.config):
            identity = invited(lead, name, role)
            roster, at = self.roster(), identity.member.at
            known = roster.members.get(name)
            before = max(known.at, known.revoked) if known else 0.0
            members = {**roster.members, name: InvitedMember(name, role, at, before)}
            self._save(MemberList(members, time.time()))
        return token_of(identity)

    def join(self, token: str) -> tuple[Identity, str]:
        """Store a token; return its identity and where it is stored. Raises UsageError, StorageError."""
        identity = identity_in(token)
        return identity, save_key(MEMBER, token.strip(), self._where)

    def revoke(self, name: str) -> MemberList:
        """Refuse messages signed by ``name`` with any present key. Raises UsageError, StorageError."""
        if not self.lead_key():
            raise UsageError("This machine is no lead: it has invited nobody.", "Run it on the machine of the lead.")
        with exclusive(self._where.config):
            roster = self.roster()
            known = roster.members.get(name)
            if known is None:
                names = ", ".join(roster.members) or "none"
                raise UsageError(f"The lead has no member {name!r}.", f"Members: {names}.")
            now = time.time()
            changed = MemberList({**roster.members, name: InvitedMember(name, known.role, known.at, now)}, now)
            self._save(changed)
        return changed

    def rotate(self) -> MemberList:
        """Give the lead a new key, which ends all memberships; return the former members."""
        if not self.lead_key():
            raise UsageError("This machine has no key of a lead.", "`ba team invite NAME` makes one.")
        with exclusive(self._where.config):
            before = self.roster()
            self._save(MemberList(at=time.time()))
        self._new_lead()
        return before

    def roster(self) -> MemberList:
        """Return the members that were invited here. Raises StorageError for a damaged list."""
        try:
            told = cast("dict[str, Any]", json.loads(self._file.read_bytes()))
            members = [InvitedMember(**each) for each in cast("list[dict[str, Any]]", told["members"])]
            return MemberList({each.name: each for each in members}, float(told["at"]))
        except FileNotFoundError:
            return MemberList()
        except (OSError, ValueError, KeyError, TypeError) as error:
            hint = "Remove it and run `ba team rotate`: then invite each member again."
            raise StorageError(f"{self._file} can't be read, so revoked members are not known.", hint) from error

    def _lead(self) -> str:
        """Return the private key of the lead, made on first use."""
        if (given := self.given()) and not self.lead_key():
            text = f"This machine is the member {given.member.name} of another lead's team."
            raise UsageError(text, "Invite members on the machine of that lead.")
        return self.lead_key() or self._new_lead()

    def _new_lead(self) -> str:
        key = new_key()
        save_key(LEAD, key, self._where)
        return key

    def _check_shared(self, what_to_do: str) -> None:
        """Raise UsageError if an older version left the secret that all members shared."""
        if found := read_key(SHARED, SHARED_VARIABLE, self._where):
            text = f"The team secret in {found.source} is no longer used: each member has a key of its own."
            raise UsageError(text, f"Remove the secret. {what_to_do}")

    def _save(self, roster: MemberList) -> None:
        members = [asdict(each) for each in roster.members.values()]
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        save_whole(self._file, json.dumps({"members": members, "at": roster.at}), mode=0o600)


def limits_of(settings: TeamSettings) -> BusLimits:
    return BusLimits(settings.max_message_mb, settings.max_waiting, settings.lease, settings.deliveries)


def open_bus(settings: TeamSettings, redact: Redact, tell: Tell) -> MessageBus:
    """Return the bus of a lead: over the server ``team.bus_url``, or in memory without one. It is not connected yet.
    ``redact`` removes secrets from outgoing messages; ``tell`` shows lines to the user. Blocks.

    Raises:
        UsageError: the address is wrong, this machine may not lead, or the package for Redis is missing. StorageError:
        the keys or the list of members can't be read.
    """
    if settings.bus_url is None:
        return MemoryBus(limits_of(settings))
    member = Membership(where := open_places())
    identity, roster = member.as_lead(), member.roster()
    # An invited lead learns revocations from the server, and must not forget them.
    spent = None if identity.member.key == identity.lead else Spent(spent_file(where, identity.lead))
    signing = Signer(identity, {**roster.revoked, **(spent.revoked() if spent else {})})
    return RedisBus(RedisServer(settings.bus_url), signing, limits_of(settings), redact, tell, spent)


def open_worker_bus(settings: TeamSettings, host: str, redact: Redact, tell: Tell) -> RedisBus:
    """Return the bus of a worker on the machine ``host``. See ``open_bus``.

    Raises:
        UsageError: the address is wrong, this machine joined no team, or the package for Redis is missing.
        StorageError: its keys can't be read.
    """
    assert settings.bus_url is not None
    where = open_places()
    identity = Membership(where).as_worker(host)
    spent = Spent(spent_file(where, identity.lead))
    signing = Signer(identity, spent.revoked())
    return RedisBus(RedisServer(settings.bus_url), signing, limits_of(settings), redact, tell, spent)


def spent_file(where: UserFolders, lead: str) -> Path:
    """Return the file that records the messages of one lead's team that workers of this machine processed."""
    return where.state / "team" / f"handled-{hashlib.sha256(lead.encode()).hexdigest()[:16]}.db"


def items_of(bus: MessageBus, team: str, before: Sequence[Item] = ()) -> Items:
    """Return the store of a team's shared items, which is where its bus is. ``before``: items of an earlier run in
    memory.
    """
    return RedisItems(bus, team) if isinstance(bus, RedisBus) else MemoryItems(before)


def accepted_of(bus: MessageBus) -> AcceptedResults:
    """Return the record of accepted results."""
    return RedisAccepted(bus) if isinstance(bus, RedisBus) else MemoryAccepted()
