"""The labelled traps, and what they may not grow worse than."""

from __future__ import annotations

from tests.eval.traps.cases import FOLDER, load
from tests.eval.traps.measure import measured

LATER = (FOLDER.parent / "second.yaml", FOLDER.parent / "third.yaml")


def test_traps_are_found_and_clean_cases_stay_quiet() -> None:
    cases = [each for path in (FOLDER / "forms.yaml", *LATER) for each in load(path)]
    # One in four, as all of them take a while; `python -m tests.eval.traps` runs the whole set.
    score = measured(cases[::4])
    assert score.passed, "\n".join(score.errors)
