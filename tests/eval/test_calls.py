"""The reading of calls keeps to its bars on what models have really written."""

from __future__ import annotations

import pytest

from tests.eval.calls.scoring import BAR_SECONDS, CASES, Figures, cases, judge


@pytest.mark.outside
@pytest.mark.skipif(not CASES.exists(), reason=f"{CASES.name} does not lie beside the checkout")
def test_replies_of_real_models_are_read_right() -> None:
    figures = Figures()
    for case in cases(CASES):
        figures.add(judge(case))
    for score in (figures.calling, figures.refusing, figures.core):
        assert score.of
        assert score.right >= 0.95 * score.of
    assert figures.invented == 0
    assert figures.slowest < BAR_SECONDS
