"""The labelled figures: labels agree with their own cases, and the judging reaches its bars."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.figures.cases import handwritten, load, problems
from tests.eval.figures.scoring import bars, confusion, judged

SHARE = Path(__file__).parents[3] / "shared" / "data" / "figures" / "share.jsonl"


def test_labels_agree_with_their_own_cases():
    cases = handwritten()
    assert len(cases) > 80
    assert [problem for case in cases for problem in problems(case)] == []


def test_handwritten_cases_are_judged_no_worse_than_before():
    scored = judged(handwritten())
    found, right, accidental, alarms, apart = (bar.value for bar in bars(scored))
    assert found >= 0.88, confusion(scored)
    assert right >= 0.85, confusion(scored)
    assert accidental >= 0.7
    assert alarms <= 0.2
    assert apart >= 0.99


@pytest.mark.outside
def test_the_public_share_reaches_its_bars():
    if not SHARE.exists():
        pytest.skip("the labelled figures lie beside the checkout, and are absent here")
    scored = judged(load(SHARE))
    assert [bar for bar in bars(scored) if not bar.met] == []
