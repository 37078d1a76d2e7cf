"""What the README tells people to type exists: each command, each option.

What the commands do is tested where they live; here only that README and help agree.
"""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest

from ba_tui.cli.main import run

CHECKOUT = Path(__file__).resolve().parents[2]
README = (CHECKOUT / "README.md").read_text("utf-8")
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.M | re.S)
SPAN = re.compile(r"`([^`\n]+)`")


def commands() -> list[str]:
    """Every ``ba …`` that stands in a code block or a code span."""
    blocks = "\n".join(FENCE.findall(README))
    spans = SPAN.findall(FENCE.sub("", README))
    lines = [part.strip() for line in [*blocks.splitlines(), *spans] for part in re.split(r"&&|\||;", line)]
    wanted = [re.sub(r"^(\S+/)?ba(?= |$)", "ba", line).split(" #")[0].strip() for line in lines]
    return sorted({line for line in wanted if line == "ba" or line.startswith("ba ")})


@cache
def help_of(*words: str) -> str:
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said):
        for name, value in {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}.items():
            patch.setenv(name, value)
        assert run([*words, "--help"]) == 0
    return said.getvalue()


def sub_commands(text: str) -> set[str]:
    listed = text.partition("Commands")[2]
    return set(re.findall(r"^[│ ]*([a-z][a-z-]+) ", listed, re.M))


@pytest.mark.parametrize("command", commands())
def test_every_command_in_the_readme_exists(command: str) -> None:
    words = shlex.split(command)[1:]
    path: list[str] = []
    while words and words[0] in sub_commands(help_of(*path)):
        path.append(words.pop(0))
    text = help_of(*path)
    options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert {option for option in options if not re.search(rf"(?<![\w-]){option}(?![\w-])", text)} == set()


def test_the_readme_names_commands() -> None:
    assert {"ba", "ba demo", "ba -c"} <= set(commands())


def test_linked_files_exist() -> None:
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", README) if "://" not in link]
    assert [link for link in links if not (CHECKOUT / link).exists()] == []
