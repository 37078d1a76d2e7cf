"""Signs what a team writes to its server, with a secret that only its members have. Pure."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import replace

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.core.text.patterns import regex
from ba_tui.team.wire import BusLimits, encoded

_SIGNED = regex(r"[0-9a-f]{64} ")
SIGNATURE = 65
"""Characters in front of what is signed."""
SHORTEST = 16
"""Characters of a secret: a shorter one could be guessed from a message that is signed with it."""
HINT = "Set the same secret on both machines. See ba guide workers."


class Unsigned(UsageError):
    """A message without the signature of this team's secret."""

    kind = "unsigned"


class NoSecret(StorageError):
    """The members sign, and this process has no secret."""


class Seals:
    """Signed bodies of messages, and what is refused without a signature; ``tell`` says lines to the person."""

    def __init__(self, signing: Signing, limits: BusLimits, tell: Callable[[str], object]) -> None:
        self._signing = signing
        self._limits = limits
        self._tell = tell
        self._counts: dict[str, int] = {}
        self.refused = 0

    def body(self, topic: str, message: AgentMessage) -> str:
        """The message as it goes to ``topic``. Raises UsageError: see ``encoded``."""
        # The sender's own count is signed: the server gives the other one.
        self._counts[message.sender] = own = self._counts.get(message.sender, 0) + 1
        return self._signing.seal(topic, encoded(replace(message, sequence=own), self._limits))

    def refuse(self, topic: str) -> None:
        """Count a message that is not signed by the team, and say so the first time."""
        self.refused += 1
        if self.refused == 1:
            self._tell(f"Refused a message in {topic}: it is not signed with this team's secret. {HINT}")

    def close(self) -> None:
        """Say how many were refused."""
        if self.refused > 1:
            self._tell(f"{self.refused} messages without the team's signature were refused.")


class Signing:
    """``secret`` is shared by all members; empty: nothing is signed, and signed messages can't be used. It is never
    shown.

    Raises:
        UsageError: the secret is too short.
    """

    def __init__(self, secret: str = "") -> None:
        if secret and len(secret) < SHORTEST:
            hint = "Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
            raise UsageError(f"The secret of the team has fewer than {SHORTEST} characters.", hint)
        self._secret = secret.encode()

    @property
    def signs(self) -> bool:
        """Whether there is a secret."""
        return bool(self._secret)

    def seal(self, place: str, text: str) -> str:
        """``text`` with its signature in front, which holds for ``place`` alone: a message that somebody copies to
        another topic has a wrong one."""
        return f"{self._digest(place, text)} {text}" if self._secret else text

    def open(self, place: str, text: str) -> str:
        """What was sealed for ``place``.

        Raises:
            Unsigned: it has no signature, or a wrong one. NoSecret: there is one, and no secret here.
        """
        signed = _SIGNED.match(text) is not None
        if not self._secret:
            if signed:
                raise NoSecret("The members of this team sign their messages, and no secret is set here.", HINT)
            return text
        if signed and hmac.compare_digest(text[: SIGNATURE - 1], self._digest(place, text[SIGNATURE:])):
            return text[SIGNATURE:]
        raise Unsigned("It is not signed with the secret of this team.", HINT)

    def _digest(self, place: str, text: str) -> str:
        held = f"{place}\n{text}".encode("utf-8", "surrogatepass")
        return hmac.new(self._secret, held, "sha256").hexdigest()
