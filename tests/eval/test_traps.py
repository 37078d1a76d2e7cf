"""The labelled traps, and what they may not grow worse than."""

from __future__ import annotations

from tests.eval.traps.cases import FOLDER, load
from tests.eval.traps.measure import measured


def test_traps_are_found_and_clean_cases_stay_quiet() -> None:
    cases = load(FOLDER / "forms.yaml")
    # One in three, as all of them take a while; `python -m tests.eval.traps` runs the whole set.
    score = measured(cases[::3])
    assert score.passed, "\n".join(score.errors)
