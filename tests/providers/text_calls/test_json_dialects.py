"""JSON as models write it: what is read, what is refused, and that nothing is made up."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.providers.text_calls.json_dialects import JsonDecoder, UnfinishedValue

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(st.characters(codec="utf-8"), max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abcxyz_", min_size=1, max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text("abcxyz_", min_size=1, max_size=5), PLAIN, max_size=4)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}),
        ('{"a": 1, "b": [1, 2,],}', {"a": 1, "b": [1, 2]}),
        ("{'a': 'it is', 'b': True, 'c': None}", {"a": "it is", "b": True, "c": None}),
        ("{'a': 'it\\'s', 'b': \"x\"}", {"a": "it's", "b": "x"}),
        ("{'a': '''x\ny'''}", {"a": "x\ny"}),
        ('{"a": True, "b": None}', {"a": True, "b": None}),
        ('{a: "b", c_d: 1}', {"a": "b", "c_d": 1}),
        ("{“a”: “b c”}", {"a": "b c"}),
        ('{"a": 1, // one\n "b": 2 /* two */}', {"a": 1, "b": 2}),
        ('{"url": "http://x/y", # where\n "n": 1}', {"url": "http://x/y", "n": 1}),
        ('{"pattern": "\\d+\\.\\w"}', {"pattern": "\\d+\\.\\w"}),
        ('{"say": "he said "hi" again"}', {"say": 'he said "hi" again'}),
        ('{"a": {"b": "c"}', {"a": {"b": "c"}}),
        ('{"a": ["b", "c"', {"a": ["b", "c"]}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ('{"n": 1e3,}', {"n": 1000.0}),
        ('{"emoji": "🎉", "k": "中文",}', {"emoji": "🎉", "k": "中文"}),
    ],
)
def test_a_dialect_is_read(written: str, meant: Any) -> None:
    assert JsonDecoder().value(written) == (meant, len(written))


@pytest.mark.parametrize(
    "written",
    ['{"a": "b', '{"a": 12', '{"a": "b",', '{"a":', '{"a"', "{", '{"a": {"b": "c', "{'a': 'b"],
)
def test_what_breaks_off_is_refused(written: str) -> None:
    with pytest.raises(UnfinishedValue):
        JsonDecoder().value(written)


@pytest.mark.parametrize(
    "written", ["{'text': 'don't do it'}", '{"a": "echo "hi""}', '{"a"}', '{"a": {"b"}}', "", "words", "{{{{"]
)
def test_what_can_be_read_in_two_ways_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        JsonDecoder().value(written)


def test_the_end_of_a_value_is_found_before_other_words() -> None:
    text = 'x {"a": "}"} and {"b": 1,} more'
    assert JsonDecoder().value(text, 2) == ({"a": "}"}, 12)
    assert JsonDecoder().value(text, 17) == ({"b": 1}, 26)


@given(OBJECTS)
def test_what_any_writer_of_json_writes_is_read_as_it_was(value: dict[str, Any]) -> None:
    for indent in (None, 2):
        for ascii_only in (True, False):
            written = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
            assert JsonDecoder().value(f"{written} and so on")[0] == value


@settings(max_examples=60)
@given(OBJECTS)
def test_what_python_prints_is_read_as_it_was_or_refused(value: dict[str, Any]) -> None:
    try:
        assert JsonDecoder().value(repr(value))[0] == value
    except ValueError:
        assert "\\" in repr(value) or '"' in repr(value)


@settings(max_examples=60)
@given(OBJECTS, st.integers(1, 30))
def test_a_text_that_was_cut_is_never_read_as_something_else(value: dict[str, Any], lost: int) -> None:
    written = json.dumps(value)
    try:
        found = JsonDecoder().value(written[:-lost])[0]
    except ValueError:
        return
    # Only brackets were missing, or whole members at the end of an object that was closed all the same.
    assert json.dumps(found)[: len(written) - lost].rstrip("}]") == written[:-lost].rstrip("}]")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('Here it is:\n{"text": "a } b"}\nThat is all.', {"text": "a } b"}),
        ("```json\n[1, 2]\n```", [1, 2]),
        ("```\n7\n```", 7),
        ('{"a": 1}, {"a": 2}', [{"a": 1}, {"a": 2}]),
    ],
)
def test_an_answer_that_is_json_is_found_in_it(written: str, meant: Any) -> None:
    assert JsonDecoder().whole(written) == meant


def test_words_alone_are_no_json() -> None:
    with pytest.raises(ValueError, match="no JSON"):
        JsonDecoder().whole("What is the temperature?")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ['{"a":', '{"a": "b, ', "{'a': ", "(", "/*", '{"k": v, '])
def test_no_text_of_a_million_characters_holds_it_up(piece: str) -> None:
    """How long it takes is measured by tests.bench."""
    for read in (JsonDecoder().value, JsonDecoder().whole):
        with suppress(ValueError):
            read('{"a": "' + piece * (1_000_000 // len(piece)))
