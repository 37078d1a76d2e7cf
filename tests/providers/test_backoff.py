"""The waits between attempts: bounded, spread, and never shorter than was asked for."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.providers.pipeline import Backoff


def test_the_bound_doubles_up_to_the_longest() -> None:
    backoff = Backoff(attempts=9, first=1, longest=10)
    assert [backoff.wait(attempt, 1.0) for attempt in range(1, 9)] == [1, 2, 4, 8, 10, 10, 10, 10]


def test_after_the_last_attempt_there_is_no_wait() -> None:
    assert Backoff(attempts=3).wait(2, 0.5) is not None
    assert Backoff(attempts=3).wait(3, 0.5) is None


@settings(deadline=None)
@given(attempt=st.integers(1, 500), chance=st.floats(0, 1, exclude_max=True), asked=st.floats(0, 120))
def test_a_wait_is_within_its_bounds(attempt: int, chance: float, asked: float) -> None:
    backoff = Backoff(attempts=1000)
    free, told = backoff.wait(attempt, chance), backoff.wait(attempt, chance, asked)
    assert free is not None
    assert told is not None
    assert 0 <= free <= backoff.longest
    assert asked <= told <= asked + 1


def test_a_wait_that_is_too_long_is_not_taken() -> None:
    patient = Backoff(patience=60)
    assert [patient.wait(1, 0.0, asked) for asked in (0, 60, 60.5)] == [0, 60, None]
    assert Backoff(attempts=2, patience=60).wait(2, 0.0, 1) is None
