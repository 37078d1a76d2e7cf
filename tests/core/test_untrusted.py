"""Text from outside never reaches a terminal as control; what a reader can see stays."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.text.ansi import PLAIN, Ink, inked_lines
from ba_tui.core.text.untrusted import hidden_in, paintable

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
INVISIBLE = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\ufeff\U000e0000-\U000e007f]")
NASTY = st.text(
    st.one_of(
        st.sampled_from("\x1b\x9b\x9d\x90\x07\x08\x7f\r\n\t[]P;?\\m\u202e\u200b\u200d\ufe0f\U000e0061aé中"),
        st.characters(),
    )
)


@given(NASTY, NASTY)
def test_no_control_survives_even_cut_in_two(first: str, second: str) -> None:
    for text in (paintable(first + second), paintable(first) + paintable(second), paintable(first, reveal=True)):
        assert not CONTROLS.search(text)
    assert not INVISIBLE.search(paintable(first, reveal=True))
    assert "\n" not in paintable(first + second, newlines=False)


@given(NASTY)
def test_painting_twice_changes_nothing(text: str) -> None:
    once = paintable(text)
    assert paintable(once) == once


@given(NASTY)
def test_command_output_holds_no_control(text: str) -> None:
    for line in inked_lines(text):
        for words, _ in line:
            assert not CONTROLS.search(words)


@given(st.text(st.characters(codec="latin-1", categories=["L", "N", "P", "S", "Zs"])))
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert paintable(text.replace("\u00ad", "")) == text.replace("\u00ad", "")


def test_whole_sequences_go_and_their_words_stay() -> None:
    assert paintable("\x1b]0;pwned\x07safe \x1b[31mred\x1b[0m \x1bP1$q\x1b\\end") == "safe red end"
    assert paintable("\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\") == "text"
    assert paintable("a\x1b]52;unfinished\nnext line") == "a52;unfinished\nnext line"
    assert paintable("bell\x07 back\x08 del\x7f c1\x85") == "bell␇ back␈ del␡ c1\ufffd"


def test_line_ends() -> None:
    assert paintable("one\r\ntwo\rthree") == "one\ntwo␍three"
    assert paintable("one\ntwo\tthree", newlines=False) == "one␤two three"


def test_hidden_characters_are_shown_where_a_person_decides() -> None:
    assert paintable("rm \u202egpj.exe", reveal=True) == "rm ‹U+202E›gpj.exe"
    assert paintable("ok\U000e0069", reveal=True) == "ok‹U+E0069›"
    assert paintable("rm\u00a0-rf", reveal=True) == "rm‹U+00A0›-rf"
    assert paintable("a\u200bb\u202ec\U000e0069d") == "abcd"


def test_emoji_and_scripts_that_need_joiners_are_kept() -> None:
    family = "👩\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 न\u094dष می\u200cخواهم"
    assert paintable(family) == family
    england = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    assert paintable(f"go {england}!") == f"go {england}!"


@pytest.mark.parametrize("mark", "\u0301\u0e49\u0e31\u0651\u05b8\u093c\u0f74\u0ec8\u17d2\ua67c\U0001e944")
def test_piled_up_marks_are_cut(mark: str) -> None:
    assert len(paintable("e" + mark * 500)) == 9
    assert len(paintable("e" + mark * 500, reveal=True)) == 9


@pytest.mark.parametrize("words", ["ที่นี่มีน้ำ", "ﷺ مُحَمَّدٌ", "בְּרֵאשִׁית", "नमस्ते दुनिया", "བཀྲ་ཤིས", "សួស្តី", "tiếng Việt", "เก็บน้ำแข็ง"])
def test_marks_that_words_need_are_kept(words: str) -> None:
    assert paintable(words) == words


def test_time_grows_with_length_only() -> None:
    for text in ("\x1b]a" * 60_000, "\x9d\x90" * 60_000, "\x1bP" + "x" * 200_000, "\x1b[" + "1;" * 100_000):
        assert not CONTROLS.search(paintable(text))


def test_lines_that_are_erased_without_end_take_no_longer() -> None:
    for erase in ("\x1b[1K", "\x1b[2K", "\x1b[2Kz", "\rz\x1b[2K"):
        (line,) = inked_lines("x" * 30_000 + erase * 30_000)
        assert "".join(words for words, _ in line).startswith("x" * 30_000), "what can't be played is shown as it came"
    assert inked_lines("working\x1b[2K\r" * 500 + "done") == [[("done", PLAIN)]]


def test_progress_lines_end_as_a_terminal_leaves_them() -> None:
    assert inked_lines("10%\r100%\r\x1b[Kdone\nab\bc\n") == [[("done", PLAIN)], [("ac", PLAIN)]]


def test_colours_are_kept_and_nothing_is_concealed() -> None:
    red, both = Ink(fg=1, bold=True), Ink(fg=(1, 2, 3), bg=200)
    assert inked_lines("\x1b[1;31mbad\x1b[0m ok") == [[("bad", red), (" ok", PLAIN)]]
    assert inked_lines("\x1b[38;2;1;2;3;48;5;200mx") == [[("x", both)]]
    assert inked_lines("\x1b[8mhidden\x1b[5m\x1b[38;9mx") == [[("hidden", PLAIN), ("x", PLAIN)]]
    assert inked_lines("\x1b[32mone\ntwo") == [[("one", Ink(fg=2))], [("two", Ink(fg=2))]]


@pytest.mark.outside
def test_every_known_payload(outside_data: Path) -> None:
    for line in (outside_data / "escape_payloads.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        payload = bytes.fromhex(case["payload_hex"]).decode()
        assert hidden_in(payload) or not CONTROLS.search(payload), line
        assert "\n" not in paintable(payload, newlines=False), line
        for at in range(len(payload) + 1):
            assert not CONTROLS.search(paintable(payload[:at]) + paintable(payload[at:])), line
        assert not INVISIBLE.search(paintable(payload, reveal=True)), line
        assert not any(CONTROLS.search(words) for inked in inked_lines(payload) for words, _ in inked), line


def test_an_approval_shows_the_words_within_a_sequence():
    shown = paintable("echo \x1b]0; rm -rf ~; \x07", reveal=True)
    assert "rm -rf ~" in shown
    assert "\x1b" not in shown
