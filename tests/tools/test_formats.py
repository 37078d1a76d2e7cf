"""Shortened text: never longer than it may be, cut at line ends, and what is left out counted right."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ba_tui.core.results import Kind, failure
from ba_tui.tools.formats import BRIEF_ERROR, BRIEF_FACTS, FORMATS, ROOM, failed, head_and_tail, shortened

KINDS: list[Kind] = ["text", "json", "table", "listing", "hits"]
REST = "; whole: read_artifact data/0123456789abcdef0123456789abcdef"
LEFT = re.compile(r"\[… (?:([\d,]+) lines?, )?([\d,]+) characters? left out(.*) …\]\n")


@example("aaaaaaaaa\n" + "\n" * 60 + "a" * 40, 90, 0.9, "")
@given(
    st.lists(st.text("ab", max_size=40), max_size=80).map("\n".join),
    st.integers(0, 900),
    st.sampled_from([0.5, 0.9]),
    st.sampled_from(["", REST]),
)
def test_head_and_tail(text: str, room: int, share: float, rest: str) -> None:
    short = head_and_tail(text, room, rest, share=share)
    assert len(short) <= max(room, 0)
    if len(text) <= room:
        assert short == text
        return
    found = LEFT.search(short)
    if found is None:
        assert short == f"[… {len(text):,} characters …]"[:room]
        return
    assert found[3] == rest
    tail = short[found.end() :]
    assert text.endswith(tail)
    until = len(text) - len(tail)
    since = until - int(found[2].replace(",", ""))
    head, left = text[:since], text[since:until]
    # The note begins a line, so that a head which ends within one gets a line end.
    assert short[: found.start()] == head + "\n" * bool(head and not head.endswith("\n"))
    if found[1]:
        assert int(found[1].replace(",", "")) == len(left.splitlines())
        assert head.endswith("\n")
        assert not tail or left.endswith("\n")


def test_long_text_is_cut_where_lines_end() -> None:
    text = "".join(f"line {number}\n" for number in range(10_000))
    short = shortened(text, "text", "standard", REST)
    found = LEFT.search(short)
    assert found
    kept = short[: found.start()].splitlines() + short[found.end() :].splitlines()
    assert all(re.fullmatch(r"line \d+", line) for line in kept)
    assert len(kept) + int(found[1].replace(",", "")) == 10_000
    assert (kept[0], kept[-1]) == ("line 0", "line 9999")
    assert len(short) > ROOM["standard"] - 400


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["brief", "standard", "full"])
def test_what_fits_is_left_as_it_is(kind: Kind, level: Any) -> None:
    text = "x" * ROOM[level]
    assert shortened(text, kind, level, REST) == text


def test_brief_text() -> None:
    text = "first line of a log\n" + "noise\n" * 5_000 + "12 passed in 3 s\n"
    brief = shortened(text, "text", "brief", REST)
    facts = f"5,002 lines, {len(text):,} characters: “first line of a log” … “12 passed in 3 s”"
    assert brief == f"{facts}\n[{REST.removeprefix('; ')}]"
    noted = shortened(f"{text}[exit code 1]", "text", "brief", "")
    assert noted.endswith("“first line of a log” … “12 passed in 3 s [exit code 1]”")


@pytest.mark.parametrize(
    ("kind", "text", "facts"),
    [
        ("listing", "".join(f"f{number}.py\n" for number in range(300)), "Found 300 entries; first: f0.py"),
        ("hits", "".join(f"f{number % 5}.py:{number}:x\n" for number in range(60)), "Found 60 lines in 5 files"),
        ("table", "a,b\n" + "".join(f"{number},x\n" for number in range(90)), "Found 90 rows, 2 columns: a, b"),
        ("json", json.dumps([{"id": number} for number in range(80)]), "Found an array of 80 items; keys: id"),
    ],
)
def test_brief_facts(kind: Kind, text: str, facts: str) -> None:
    brief = shortened(text, kind, "brief", REST)
    assert brief.startswith(facts)
    assert brief.endswith(f"[{REST.removeprefix('; ')}]")
    assert len(brief) <= BRIEF_FACTS + len(REST) + 10


def test_standard_json_shows_whole_items_and_the_count() -> None:
    items = [{"id": number, "text": "x" * 90} for number in range(1_000)]
    short = shortened(json.dumps(items), "json", "standard", REST)
    head, *lines, note = short.splitlines()
    assert head == f"An array of 1,000 items, the first {len(lines):,}:"
    assert [json.loads(line) for line in lines] == items[: len(lines)]
    assert len(lines) > 200
    assert note == f"[{REST.removeprefix('; ')}]"
    assert len(short) <= ROOM["standard"]


def test_standard_json_objects_show_every_key() -> None:
    value = {"total": 5, "items": list(range(20_000)), "note": "n" * 50_000, "deep": {"a": "x" * 20_000}}
    short = shortened(json.dumps(value), "json", "standard", REST)
    assert short.startswith('An object of 4 keys:\n"total": 5\n')
    for fact in ("array of 20,000 items", "50,000 characters in all", "object of 1 key"):
        assert fact in short
    assert len(short) <= ROOM["standard"]


def test_rows_keep_more_of_the_beginning() -> None:
    text = "a,b\n" + "".join(f"{number},x\n" for number in range(20_000))
    short = shortened(text, "table", "standard", "")
    assert short.startswith("a,b\n0,x\n")
    assert short.endswith("19999,x\n")
    assert re.search(r"\[… [\d,]+ rows, [\d,]+ characters left out …\]", short)
    assert short.index("left out") > ROOM["standard"] * 0.8


@given(
    st.text(min_size=1, max_size=200).map(lambda text: text * 400)
    | st.text('{}[]",:|-\n\t1a', max_size=500).map(lambda text: text * 200),
    st.sampled_from(KINDS),
    st.sampled_from(["", REST]),
)
def test_no_text_of_any_kind_is_longer_than_its_room(text: str, kind: Kind, rest: str) -> None:
    assert len(shortened(text, kind, "standard", rest)) <= ROOM["standard"]
    assert len(shortened(text, kind, "full", rest)) <= ROOM["full"]
    assert len(shortened(text, kind, "brief", rest)) <= BRIEF_FACTS + 20 + len(rest)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
        lambda deep: st.lists(deep) | st.dictionaries(st.text(), deep),
    ),
    st.integers(150, 400),
)
def test_json_of_any_shape(value: Any, room: int) -> None:
    text = json.dumps(value)
    if len(text) > room:
        assert len(FORMATS["json"](text, "standard", room, "")) <= room


def test_json_nested_without_end() -> None:
    for text in ("[" * 50_000 + "]" * 50_000, "[" * 900 + "]" * 900 + " " * 40_000):
        assert len(shortened(text, "json", "standard", REST)) <= ROOM["standard"]
        assert shortened(text, "json", "brief", REST)


def test_a_failure_keeps_what_to_do() -> None:
    wording = failure("timeout", "It took 2 s.").text
    text = f"{wording}\nOutput so far (partial):\n{'noise' * 20_000}\nlast words"
    brief = failed(text, "brief", REST, wording)
    assert "Error Message: It took 2 s.\nSuggestion: Try again" in brief
    assert "last words" in brief
    assert REST.removeprefix("; ") in brief
    assert len(brief) < 600
    standard = failed(text, "standard", REST, wording)
    assert standard.startswith("Operation failed.")
    assert standard.endswith("last words")
    assert len(standard) <= ROOM["standard"]
    assert failed("short", "brief", "", "short") == "short"


@given(st.text(max_size=50).map(lambda text: text * 100), st.text(max_size=50).map(lambda text: text * 100))
def test_a_brief_failure_is_bounded(message: str, output: str) -> None:
    wording = failure("execution_error", message).text
    assert len(failed(f"{wording}\n{output}", "brief", REST, wording)) <= BRIEF_ERROR + ROOM["brief"] + len(REST) + 100


@pytest.mark.parametrize("kind", ["text", "listing"])
def test_brief_tells_the_size_of_all_that_was_printed(kind: Kind) -> None:
    printed = "".join(f"line {number} of it all\n" for number in range(50_000))
    cut = head_and_tail(printed, 20_000)
    brief = shortened(cut, kind, "brief", REST)
    assert "50,000" in brief
    if kind == "text":
        assert f"50,000 lines, {len(printed):,} characters" in brief
