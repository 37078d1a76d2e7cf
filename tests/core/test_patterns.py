"""Regular expressions that are compiled late: like any other from the first use on."""

from __future__ import annotations

import re

import pytest

from ba_tui.core.text.patterns import regex


def test_works_as_a_compiled_one() -> None:
    digits = regex(r"(?P<n>\d+)", re.ASCII)
    assert [found["n"] for found in digits.finditer("1 22 ٣")] == ["1", "22"]
    assert digits.sub("#", "a1b2") == "a#b#"
    assert digits.groups == 1
    assert digits.pattern == r"(?P<n>\d+)"
    assert regex(rb"a+").fullmatch(b"aaa")


def test_a_mistake_shows_at_the_first_use() -> None:
    broken = regex("(")
    with pytest.raises(re.error):
        broken.search("x")
