"""When to try again, and how long to wait before: pure values, with chance handed in.

Who tries, and what counts as passing, is decided elsewhere.
"""

from __future__ import annotations

from ba_tui.core.values import frozen


@frozen
class Backoff:
    """Exponential waits with full jitter, in seconds: anywhere between nothing and a bound that doubles.

    ``attempts`` counts the first one. A wait that was asked for (``retry_after``) is kept to, up to ``patience``.
    """

    attempts: int = 6
    first: float = 1.0
    longest: float = 30.0
    patience: float = 120.0

    def wait(self, attempt: int, chance: float, asked: float | None = None) -> float | None:
        """Seconds to wait after the failure of ``attempt`` (from 1); None when it is not worth another.

        ``chance`` in [0, 1) spreads those who failed at the same moment.
        """
        if attempt >= self.attempts or (asked is not None and asked > self.patience):
            return None
        spread = chance * min(self.longest, self.first * 2 ** (attempt - 1))
        # Everybody who was told the same time would come back at once: a little is added, never taken.
        return spread if asked is None else asked + min(spread, 1.0)
