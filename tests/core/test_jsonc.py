"""JSON with comments: what stands in strings stays, and errors name the place in the file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.text.json_text import read_jsonc

_VALUES = st.recursive(
    st.none() | st.integers() | st.text('ab/*\\",]} \n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a/*"\\,}'), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, // one\n "b": [1, 2,], /* two\n lines */ }', {"a": 1, "b": [1, 2]}),
        ('{"url": "https://x/*y*/", "c": ",}"}', {"url": "https://x/*y*/", "c": ",}"}),
        ('{"a": 1, ' + "/" * 500 + '\n"b": 2}', {"a": 1, "b": 2}),
        ('{"a": 1, ' + "/* x */ " * 200 + '"b": 2}', {"a": 1, "b": 2}),
        ('\ufeff["\\"//", 1 , // last\n]', ['"//', 1]),
    ],
)
def test_comments_and_trailing_commas_are_skipped(text: str, value: object) -> None:
    assert read_jsonc(text) == value


@given(_VALUES)
def test_plain_json_stays_what_it_is(value: object) -> None:
    assert read_jsonc(json.dumps(value)) == value


@pytest.mark.parametrize("text", ["", "{", "[1,,2]", "/* open", "{'a': 1}"])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        read_jsonc(text)


def test_an_error_names_its_line() -> None:
    with pytest.raises(ValueError, match="line 3"):
        read_jsonc('{\n// a comment\n"a" 1}')
