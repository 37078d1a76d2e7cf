"""What programs print, made safe: nothing of a terminal is left, nothing readable is lost, floods keep both ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.processes.terminal_text import GAP, Capture, coloured, lines_cut, open_sequence, plain, shortened, unescaped

PIECES = st.lists(
    st.sampled_from(
        ["\x1b[31m", "\x1b[0m", "\x1b]0;t\x07", "\x1b]8;;x", "\x1bP", "\x9b1m", "\r", "\r\n", "\b", "a\n", "é"]
    )
    | st.text(max_size=5)
).map("".join)


@given(PIECES)
def test_no_control_is_left(text: str) -> None:
    for made in (plain(text), unescaped(text)):
        assert not any(char < " " and char not in "\t\n" for char in made)
        assert not any("\x7f" <= char <= "\x9f" for char in made)
    assert "\x1b" not in coloured(text).replace("\x1b[31m", "").replace("\x1b[0m", "")


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_ordinary_text_stays(text: str) -> None:
    assert plain(text) == unescaped(text) == coloured(text) == text


def test_progress_shows_its_last_state() -> None:
    assert plain("10%\r50%\r100%\ndone\r\n") == "100%\ndone\n"
    assert unescaped("a\rb") == "a␍b"


def test_an_unfinished_title_swallows_nothing() -> None:
    assert plain("\x1b]0;never ends, but readable\nnext") == "0;never ends, but readable\nnext"


@pytest.mark.parametrize(
    ("text", "at"), [("abc", 3), ("abc\x1b", 3), ("abc\x1b[3", 3), ("abc\x1b[31m", 8), ("abc\x1b]0;tit", 3), ("", 0)]
)
def test_a_sequence_that_is_cut_waits_for_its_rest(text: str, at: int) -> None:
    assert open_sequence(text) == at


@given(st.lists(st.text("ab", max_size=30)).map("\n".join), st.integers(120, 400))
def test_shortening_keeps_both_ends(text: str, limit: int) -> None:
    short = shortened(text, limit)
    if len(text) <= limit:
        assert short == text
        return
    assert len(short) <= limit
    head, tail = short.split(" left out …]\n")
    assert text.startswith(head[: head.rindex("[…")].rstrip("\n"))
    assert text.endswith(tail)


def test_what_is_cut_twice_is_counted_once_and_whole() -> None:
    capture = Capture()
    for number in range(100_000):
        capture.feed(f"line {number}\n".encode())
    once = capture.text()
    twice = shortened(once, 20_000)
    for text in (once, twice):
        assert text.count("line ") + lines_cut(text) == 100_000, "no line is counted twice or forgotten"
    assert len(GAP.findall(twice)) == 1


@given(st.lists(st.binary(max_size=200), max_size=30))
def test_a_small_capture_is_whole(pieces: list[bytes]) -> None:
    capture = Capture()
    for piece in pieces:
        capture.feed(piece)
    assert capture.text() == coloured(b"".join(pieces).decode("utf-8", "replace"))


def test_a_flood_keeps_head_and_tail() -> None:
    capture = Capture()
    for number in range(200_000):
        capture.feed(f"line {number}\n".encode())
    text = capture.text()
    assert len(text) < Capture.HEAD + Capture.TAIL + 100
    assert text.startswith("line 0\n")
    assert text.endswith("line 199999\n")
    assert all(line.startswith(("line ", "[… ")) or not line for line in text.split("\n"))


@pytest.mark.outside
def test_hostile_payloads(outside_data: Path) -> None:
    for line in (outside_data / "escape_payloads.jsonl").read_text("utf-8").splitlines():
        for value in json.loads(line).values():
            if isinstance(value, str):
                assert "\x1b" not in plain(value)
                assert "\x1b" not in unescaped(value)
