"""When two texts say the same."""

from __future__ import annotations

import pytest

from ba_tui.features.memory.engine.terms import Sameness, compare, fingerprint

PAIRS = [
    ("The deadline is Monday.", "the  deadline is monday", Sameness.EQUAL),
    ("Tests are run with nox", "With nox the tests are run", Sameness.REWORDED),
    ("Limit is 50 requests per second per key", "Limit is 60 requests per second per key", Sameness.NUMBERS),
    ("I never eat meat at home", "I eat meat at home", Sameness.DIFFERENT),
    ("prefers tabs over spaces in code", "prefers spaces over tabs in code", Sameness.DIFFERENT),
    ("The deadline for reports is Monday", "The deadline for reports is Friday", Sameness.DIFFERENT),
    ("报表用千元作单位", "报表不用千元作单位", Sameness.DIFFERENT),
    ("", "", Sameness.EQUAL),
    ("", "something", Sameness.DIFFERENT),
    ("\0", "\ud800", Sameness.DIFFERENT),
]


@pytest.mark.parametrize(("one", "other", "expected"), PAIRS)
def test_two_texts_are_compared_in_either_order(one: str, other: str, expected: Sameness):
    assert compare(one, other) is expected
    assert compare(other, one) is expected


def test_only_equal_texts_share_a_fingerprint():
    assert [fingerprint(one) == fingerprint(other) for one, other, _ in PAIRS] == [
        expected is Sameness.EQUAL for _, _, expected in PAIRS
    ]
