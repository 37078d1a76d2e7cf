"""``ba guide``: pages printed, found by topic and by words, and completed by the shell.

What the pages say is judged in tests/house/test_guide.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ba_tui.cli.guide import complete_topics
from ba_tui.guide import Guide, flowed
from tests.bench.terminal import Terminal
from tests.program import Program


@pytest.fixture
def ba(tmp_path: Path) -> Program:
    return Program(tmp_path, tmp_path)


def test_alone_it_lists_every_topic_by_chapter(ba: Program) -> None:
    printed = ba.here("guide").stdout
    assert [page.topic for page in Guide().pages if f"\n  {page.topic} " not in printed] == []
    assert printed.index("Start\n") < printed.index("  install ") < printed.index("\nWork\n") < printed.index("  undo ")


def test_a_page_that_is_piped_is_its_markdown_without_comments(ba: Program) -> None:
    done = ba.here("guide", "analysis")
    assert done.returncode == 0
    assert done.stdout.startswith("# Analyse data\n")
    assert "<!--" not in done.stdout
    assert "\x1b" not in done.stdout


def test_links_name_the_command_that_prints_the_other_page(ba: Program) -> None:
    printed = ba.here("guide", "tour").stdout
    assert "Give ba a model (`ba guide models`)" in printed
    assert "](" not in printed


@pytest.mark.parametrize("words", [["undo"], ["Undo", "a", "change"], ["undo.md"], ["UNDO"], ["/undo"]])
def test_a_page_is_found_by_topic_title_and_file(ba: Program, words: list[str]) -> None:
    assert ba.here("guide", *words).stdout.startswith("# Undo a change\n")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["sandboks"], "Did you mean ba guide sandbox?"),
        (["bubblewrap"], "These pages mention it: ba guide sandbox"),
        (["qqqqq"], "ba guide lists the pages."),
        (["me", "through", "qqqqq"], "To send it as a prompt: ba -- guide me through qqqqq"),
    ],
)
def test_what_is_no_topic_is_answered_with_the_pages_that_are_near(ba: Program, words: list[str], hint: str) -> None:
    done = ba.here("guide", *words)
    assert done.returncode == 1
    assert hint in done.stderr
    assert done.stderr.count("\n") == 1


def test_words_in_titles_and_headings_weigh_more_than_words_in_the_text() -> None:
    guide = Guide()
    assert guide.search("secrets")[0].topic == "secrets"
    assert guide.search("exit codes")[0].topic == "scripts"
    assert guide.search("no such words at all qqqqq") == []


def test_the_shell_completes_topics(ba: Program) -> None:
    assert ("undo", "Undo a change") in complete_topics("un")
    assert complete_topics("qqqqq") == []


def test_in_a_terminal_the_page_is_set_for_reading(tmp_path: Path) -> None:
    env = {"BA_HOME": str(tmp_path / "home"), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with Terminal([sys.executable, "-m", "ba_tui", "guide", "tour"], tmp_path, env) as terminal:
        terminal.until(lambda screen: "Take the tour" in screen and "ba guide models" in screen)
        assert "```" not in terminal.text()


def test_lines_of_a_paragraph_are_joined_and_nothing_else_is() -> None:
    alone = "\n\n| a |\n|---|\n| b |\n\n```sh\nba\nba -c\n```\n"
    text = f"# Head\n\nOne\ntwo.\n\n- an item\n  goes on\n- next{alone}After\nit.\n"
    assert flowed(text) == f"# Head\n\nOne two.\n\n- an item goes on\n- next{alone}After it."
