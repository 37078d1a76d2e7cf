"""How much is asked of a provider within a minute: a token bucket for requests, and one for their tokens.

Waiting, and saying so, is retrying's business.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ba_tui.core.messages import Usage
from ba_tui.core.values import frozen
from ba_tui.settings import ModelProfile

MINUTE = 60.0


class Bucket:
    """``size`` may be taken within a minute, and comes back evenly. More may be taken than is left: then the next one
    waits for what is owed."""

    def __init__(self, size: int, clock: Callable[[], float]) -> None:
        self._size = size
        self._clock = clock
        self._left = float(size)
        self._at = clock()

    def wait(self, least: float) -> float:
        """Seconds until ``least`` is left; 0 when it is."""
        now = self._clock()
        self._left = min(self._size, self._left + (now - self._at) * self._size / MINUTE)
        self._at = now
        return max(0.0, (least - self._left) * MINUTE / self._size)

    def take(self, amount: float) -> None:
        self._left -= amount


@frozen
class Wait:
    """``seconds`` to wait, and which limit asks for it."""

    seconds: float
    reason: str


class RateLimit:
    """The limits of one provider; None of them: nothing waits."""

    def __init__(self, name: str, profile: ModelProfile, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._profile = profile
        self._requests = Bucket(profile.requests_per_minute, clock) if profile.requests_per_minute else None
        self._tokens = Bucket(profile.tokens_per_minute, clock) if profile.tokens_per_minute else None

    def next(self) -> Wait | None:
        """How long the next request has to wait; None: it may go, and is counted."""
        requests = self._requests.wait(1) if self._requests else 0.0
        tokens = self._tokens.wait(1) if self._tokens else 0.0
        if wait := max(requests, tokens):
            most, what = self._profile.tokens_per_minute, "tokens"
            if requests >= tokens:
                most, what = self._profile.requests_per_minute, "requests"
            return Wait(wait, f"{self._name} is limited to {most:,} {what} a minute in the settings.")
        if self._requests:
            self._requests.take(1)
        return None

    def used(self, usage: Usage | None) -> None:
        """An answer came, which used so much."""
        if usage and self._tokens:
            self._tokens.take(usage.prompt + usage.output)


class RateLimits:
    """One limit for each provider, shared by all that ask it in this process."""

    def __init__(self) -> None:
        self._limits: dict[str, RateLimit] = {}

    def of(self, name: str, profile: ModelProfile) -> RateLimit:
        if name not in self._limits:
            self._limits[name] = RateLimit(name, profile)
        return self._limits[name]
