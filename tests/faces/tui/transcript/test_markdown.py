"""Markdown as lines: what they show, what they copy, and that cutting a stream anywhere changes neither."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from ba_tui.core.text.cells import clip, clip_middle, hard_cuts
from ba_tui.faces.tui.transcript.lines import PaintedLine, copied, cuts
from ba_tui.faces.tui.transcript.markdown import Chunks, painted
from ba_tui.faces.tui.transcript.palette import Palette

SOURCE = """\
# Title

Some **bold *both* text**, `code` and a [link](http://x.example/y).
A second line.

- one
- two that is long enough to be wrapped somewhere in the middle of it
  - nested
- [ ] open
- [x] done

1. first
2. second

> quoted
> words

| Name | Value |
|------|------:|
| a    |     1 |

```python
def f():
\treturn "s"
```

<b>html</b>

---

The end.
"""


def page(source: str, width: int = 40, step: int = 0) -> list[PaintedLine]:
    chunks = Chunks()
    for at in range(0, len(source), step or len(source) or 1):
        chunks.feed(source[at : at + (step or len(source))])
    chunks.finish()
    lines: list[PaintedLine] = []
    for chunk in chunks.done:
        made = painted(chunk, width, Palette(), chunks.definitions)
        lines += [PaintedLine(), *made] if chunk.spaced and lines and made else made
    return lines


def shown(lines: list[PaintedLine]) -> list[str]:
    return ["".join(segment.text for segment in (*line.gutter, *line.segments)).rstrip() for line in lines]


def copy(lines: list[PaintedLine]) -> str:
    return copied([(line, 0, len(line.text)) for line in lines])


def test_every_construct_is_shown() -> None:
    assert shown(page(SOURCE)) == [
        "Title",
        "",
        "Some bold both text, code and a link.",
        "A second line.",
        "",
        "• one",
        "• two that is long enough to be wrapped",
        "  somewhere in the middle of it",
        "  ◦ nested",
        "☐ open",
        "☑ done",
        "",
        "1. first",
        "2. second",
        "",
        "▎ quoted",
        "▎ words",
        "",
        "Name │ Value",
        "─────┼──────",
        "a    │     1",
        "",
        " python",
        " def f():",
        '     return "s"',
        "",
        "<b>html</b>",
        "",
        "─" * 40,
        "",
        "The end.",
    ]


def test_copying_all_gives_the_source() -> None:
    for width in (20, 40, 90):
        assert copy(page(SOURCE, width)) == SOURCE.rstrip()


@pytest.mark.parametrize("step", [1, 2, 3, 7, 16, 100])
def test_a_stream_cut_anywhere_ends_the_same(step: int) -> None:
    assert shown(page(SOURCE, 40, step)) == shown(page(SOURCE, 40))


def test_part_of_a_paragraph_copies_its_words_without_soft_line_ends() -> None:
    lines = page("alpha beta gamma delta **epsilon** zeta eta", 14)
    assert copied([(lines[0], 6, len(lines[0].text)), (lines[1], 0, 5)]) == "beta gamma"


def test_code_copies_without_its_fence_unless_the_whole_block_is_taken() -> None:
    lines = page("```py\nif x:\n\ty = 1\n```\n")
    assert copy(lines[1:]) == "if x:\n\ty = 1"
    assert copy(lines) == "```py\nif x:\n\ty = 1\n```"


def test_an_open_code_block_is_painted_line_by_line() -> None:
    chunks = Chunks()
    chunks.feed("```python\n" + "x = 1\n" * 1_000)
    assert len(chunks.done) >= 19
    assert chunks.open is not None
    assert len(chunks.open.text) < 400
    assert [chunk.spaced for chunk in chunks.done[:3]] == [True, False, False]


def test_long_lists_and_paragraphs_are_cut_and_go_on_without_a_gap() -> None:
    numbered = "".join(f"{number}. item {number} with some words\n" for number in range(1, 400))
    lines = shown(page(numbered, 60))
    assert lines == [f"{number}. item {number} with some words" for number in range(1, 400)]
    words = "word " * 20_000
    assert " ".join(shown(page(words, 60))).split() == words.split()


def test_links_that_lie_show_where_they_go() -> None:
    assert shown(page("[paypal.com](http://evil.example/x)", 80)) == ["paypal.com (http://evil.example/x)"]
    for odd in (
        "https://a.example@b.example/",
        "https://xn--80ak6aa92e.com/",
        "http://0x7f000001/x",
        "http://10.0.0.1",
    ):
        assert shown(page(f"[the docs]({odd})", 80)) == [f"the docs ({odd})"]
    assert shown(page("[the docs](https://2020.example/x)", 80)) == ["the docs"]
    assert shown(page("[docs](file:///etc/passwd)", 80))[0].startswith("[docs]") or "file:" in copy(
        page("[docs](file:///etc/passwd)", 80)
    )
    line = page("[notes](http://x.example/y)", 80)[0]
    assert line.text == "notes"
    assert any(segment.style and segment.style.link == "http://x.example/y" for segment in line.segments)
    assert not any(segment.style and segment.style.link for segment in page("[x](ftp://x.example)", 80)[0].segments)


def test_a_link_finds_its_address_below_and_only_an_address_is_taken_for_one() -> None:
    source = "[r][1] and [^1]\n\n> [1] quoted\n\n[1]: http://x.example\n\n[^1]: The note.\n[note]: some words here\n"
    lines = ["r and [^1]", "", "▎ 1 quoted", "", "[^1]: The note.", "[note]: some words here"]
    assert shown(page(source, 80)) == lines


def test_a_fence_that_is_never_closed_ends_with_the_text() -> None:
    chunks = Chunks()
    chunks.feed("```py\nx = 1")
    for _ in range(3):
        chunks.finish()
    assert [chunk.text for chunk in chunks.done] == ["x = 1"]


def test_html_entities_bring_no_controls() -> None:
    text = " ".join(shown(page("a &#x202e; b &#27;[31m `&#7;` <i>x</i>", 80)))
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "<i>x</i>" in text


def test_narrow_tables_wrap() -> None:
    source = "| Name | Words |\n|--|--|\n| a | one two three four five |\n"
    assert all(cell_len(line) <= 20 for line in shown(page(source, 20)))


def test_a_table_that_is_too_wide_keeps_its_first_columns_and_counts_the_others() -> None:
    heads = "|".join(f"column{at}" for at in range(8))
    source = f"|{heads}|\n|{'--|' * 8}\n|{'value|' * 8}\n"
    lines = page(source, 32)
    assert shown(lines) == [
        "column0 │ column1 │ column2 │ …",
        "────────┼─────────┼─────────┼─",
        "value   │ value   │ value   │ …",
        "… 5 more columns on the right:…",
    ]
    whole = lines[0].table
    assert whole is not None
    assert whole.columns == tuple(f"column{at}" for at in range(8))
    assert whole.rows == (("value",) * 8,)
    assert copied([(line, 0, len(line.text)) for line in lines]).startswith(source.strip()), "copies whole rows"
    assert all(line.table is None for line in page(source, 100))


@pytest.mark.parametrize("figure", ["1,234,567.89", "2026-11-23T10:00", "−12.5 %"])
def test_no_figure_in_a_table_is_broken(figure: str) -> None:
    words = "some words that are longer than the screen is wide"
    source = f"| What | Amount | Why |\n|--|--:|--|\n| {words} | {figure} | {words} |\n"
    for width in range(24, 70):
        amounts = {line.text.split("│")[1].strip() for line in page(source, width) if line.text.count("│") > 1}
        assert amounts <= {"Amount", figure, "", "…", *figure.split()}, width


@given(st.text(st.sampled_from("ab *_`#>-|\n\t[]()!~<&;1.中👍🏽\u200de\u0301"), max_size=120), st.integers(8, 40))
def test_no_line_is_wider_than_it_may_be(source: str, width: int) -> None:
    for line in page(source, width):
        assert cell_len("".join(segment.text for segment in line.segments)) <= max(width, 8)


@given(st.text(st.sampled_from("ab c中文，。👍🏽é한글\u200d❤\ufe0f\u3000"), max_size=60), st.integers(2, 20))
@example("\u200d\u200da글", 2)
@example("\u200d。a。", 2)
@example("中\u3000中", 5)
def test_cuts_fit_and_lose_only_spaces(text: str, width: int) -> None:
    places = cuts(text, width)
    assert all(cell_len(text[start:end]) <= width for start, end in places)
    assert "".join("".join(text[start:end] for start, end in places).split()) == "".join(text.split())
    assert "".join(text[start:end] for start, end in hard_cuts(text, width)) == text
    assert cell_len(clip(text, width)) <= width
    assert cell_len(clip_middle(text, width)) <= width


def test_cjk_wraps_between_characters_but_not_before_a_full_stop() -> None:
    text = "你好世界。再见"
    assert [text[start:end] for start, end in cuts(text, 8)] == ["你好世", "界。再见"]


@pytest.mark.outside
def test_widths_agree_with_the_terminal(outside_data: Path) -> None:
    for line in (outside_data / "width_cases.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["wcwidth"] < 0:
            continue
        assert cell_len(case["s"]) == case["wcwidth"], case
        cell = case["s"].replace("|", "\\|")
        row = page(f"| {cell} | x |\n|--|--|\n", 200)[0]
        assert cell_len(row.text.rsplit(" │ ", 1)[0]) == case["wcwidth"], case


ENDLESS = {
    "one line": "word " * 20_000,
    "one word": "w" * 100_000,
    "a line of code": "```\n" + "x" * 100_000,
    "lines of code": "```\n" + ("x" * 500 + "\n") * 200,
    "indented code": "    code\n" * 10_000,
    "blank lines": "word" + "\n \n" * 50_000,
    "a fence in a list": "- x\n  ```\n" + "  y = 1\n" * 10_000,
    "a table": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 10_000,
}


@pytest.mark.parametrize("step", [0, 70_000, 1_000])
@pytest.mark.parametrize("kind", ENDLESS)
def test_no_piece_of_an_endless_block_grows_beyond_what_can_be_painted(kind: str, step: int) -> None:
    chunks, source = Chunks(), ENDLESS[kind]
    for at in range(0, len(source), step or len(source)):
        chunks.feed(source[at : at + (step or len(source))])
        assert len(chunks.open.text if chunks.open else "") < 20_000
    chunks.finish()
    assert max(len(chunk.text) for chunk in chunks.done) < 20_000
    kept = "".join(chunk.opens + chunk.text for chunk in chunks.done)
    assert len("".join(kept.split())) == len("".join(source.split()))
