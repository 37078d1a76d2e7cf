"""The labelled traps, and what they may not grow worse than."""

from __future__ import annotations

import pytest

from tests.eval.traps.cases import FOLDER, load
from tests.eval.traps.measure import measured

LATER = (FOLDER.parent / "second.yaml", FOLDER.parent / "third.yaml")


PARTS = 16
"""Each case opens an engine, which takes most of the time; parts run side by side."""


@pytest.mark.parametrize("part", range(PARTS))
def test_traps_are_found_and_clean_cases_stay_quiet(part: int) -> None:
    cases = [each for path in (FOLDER / "forms.yaml", *LATER) for each in load(path)]
    # One in four, as all of them take a while; `python -m tests.eval.traps` runs the whole set. The bounds of the whole
    # set hold for each part, which allows no trap to be missed.
    score = measured(cases[::4][part::PARTS])
    assert score.cases
    assert score.passed, "\n".join(score.errors)
