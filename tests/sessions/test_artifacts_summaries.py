"""What stored data is made of, in one line: counted, bounded, and plain about what was not looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.results import Kind
from ba_tui.sessions.artifacts import Artifacts


@pytest.fixture
def shelf(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path / "session" / "data")


@pytest.mark.parametrize(
    ("data", "kind", "facts"),
    [
        ("one\n\nlast line\n", "text", ["text, 15 bytes", "3 lines", "begins “one”", "ends “last line”"]),
        ('[{"a": 1, "b": "x"}, {"a": 5.5}]', "json",
         ["an array of 2 items", "keys: a, b", "a 1 to 5.5", 'first: {"a": 1, "b": "x"}']),
        ('{"items": [1, 2], "name": "n"}', "json", ["an object of 2 keys", "items (array of 2)", "name (string)"]),
        ('{"a": 1}\n{"a": 3}\n', "json", ["JSON lines, 2 records", "a 1 to 3"]),
        ("3", "json", ["number 3"]),
        ("not JSON", "json", ["1 line", "begins “not JSON”"]),
        ("a,b\n1,x\n-2,y\n", "table", ["2 rows, 2 columns: a, b", "first row: 1, x", "ranges: a -2 to 1"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", "table", ["1 row, 2 columns: a, b"]),
        ("a/\nb.py\n", "listing", ["2 entries", "first: a/"]),
        ("a.py:1:x\na.py:2:y\nb.py:9:z\n", "hits", ["3 lines in 2 files", "first: a.py:1:x"]),
    ],
)  # fmt: skip
def test_summaries_say_what_is_there(shelf: Artifacts, data: str, kind: Kind, facts: list[str]) -> None:
    summary = shelf.store(data, kind=kind).summary
    assert [fact for fact in facts if fact not in summary] == [], summary
    assert "\n" not in summary


def test_summaries_of_large_files_look_at_a_part_and_say_so(shelf: Artifacts) -> None:
    rows = "".join(f"{number},{number % 5}\n" for number in range(400_000))
    table = shelf.store(f"id,rest\n{rows}", kind="table").summary
    assert "400,000 rows, 2 columns: id, rest" in table
    assert "in the first" in table
    lines = shelf.store("".join(f'{{"n": {number}}}\n' for number in range(200_000)), kind="json").summary
    assert "JSON lines, 200,000 records" in lines
    assert "seen in the first" in lines
    array = shelf.store(json.dumps([{"n": number} for number in range(300_000)]), kind="json").summary
    assert 'keys of the first item: n; first: {"n": 0}' in array


@given(
    st.text(max_size=300) | st.text('{}[]",:|-\n\t1a', max_size=300),
    st.sampled_from(["text", "json", "table", "listing", "hits"]),
)
def test_any_data_has_a_bounded_summary(tmp_path_factory: pytest.TempPathFactory, text: str, kind: Kind) -> None:
    shelf = Artifacts(tmp_path_factory.mktemp("any") / "data")
    made = shelf.store(text, kind=kind)
    assert 0 < len(made.summary) < 800
    assert "\n" not in made.summary


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 50_000, "-" * 100_000 + "x", "|" + "-" * 100_000 + "x", "1" * 10_000]
)
@pytest.mark.parametrize("kind", ["json", "table", "hits"])
def test_hostile_data_is_summed_up_too(shelf: Artifacts, text: str, kind: Kind) -> None:
    assert shelf.store(text, kind=kind).summary
