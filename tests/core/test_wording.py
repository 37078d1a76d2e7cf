"""Words for slips, counts and sizes."""

from __future__ import annotations

import pytest

from ba_tui.core.text.wording import byte_size, clipped, count, did_you_mean, nearest, one_line, sentence, suggestion


def test_a_slip_is_answered_with_the_nearest_name_else_with_all() -> None:
    known = ["enabled", "tags"]
    assert nearest("enabld", known) == "enabled"
    assert nearest("xyz", known) == ""
    assert did_you_mean("enabld", known) == "; did you mean 'enabled'?"
    assert did_you_mean("xyz", known) == ""
    assert suggestion("tag", known) == "did you mean 'tags'?"
    assert suggestion("xyz", known) == "known are enabled, tags"
    assert suggestion("xyz", [], "it has") == "it has none"


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1.0 KB"),
        (999_949, "999.9 KB"),
        (999_950, "1.0 MB"),
        (3_400_000, "3.4 MB"),
        (1_500_000_000, "1.5 GB"),
    ],
)
def test_sizes_are_said_in_the_unit_that_fits(size: int, words: str) -> None:
    assert byte_size(size) == words


def test_counts_agree_with_their_noun() -> None:
    assert [count(1, "line"), count(1_234, "line"), count(2, "entry"), count(0, "key")] == [
        "1 line",
        "1,234 lines",
        "2 entries",
        "0 keys",
    ]


def test_long_texts_keep_to_their_limit() -> None:
    assert (clipped("abcdef", 6), clipped("abcdefg", 6)) == ("abcdef", "abcde…")
    assert one_line(" a\n b  c", 9) == "a b c"


def test_a_sentence_ends_once() -> None:
    assert [sentence(text) for text in ("It broke", "It broke.", "did you mean 'x'?")] == [
        "It broke.",
        "It broke.",
        "did you mean 'x'?",
    ]
