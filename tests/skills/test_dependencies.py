"""What requirements.txt asks for, the key of its environment, and what is said when that can't be made."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ba_tui.skills.dependencies import (
    READY,
    Environments,
    Requirements,
    RequirementsRefused,
    read_requirements,
    why_not,
)


def written(folder: Path, text: str | bytes, name: str = "requirements.txt") -> Requirements | None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return read_requirements("pdf", folder)


def test_a_list_is_read_as_installers_read_it(tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("six==1.16 ; python_version > '3'\n")
    found = written(tmp_path, "\ufeff# packages\r\npypdf>=4,\\\n  <5 # why\r\n\n-r more.txt\n-i https://x.invalid/s\n")
    assert found is not None
    assert found.lines == ("pypdf>=4, <5", "six==1.16 ; python_version > '3'", "-i https://x.invalid/s")
    assert found.names == "pypdf, six"
    assert found.elsewhere == ("-i https://x.invalid/s",)


def test_what_asks_for_nothing_needs_no_environment(tmp_path: Path) -> None:
    assert read_requirements("pdf", tmp_path) is None
    assert written(tmp_path, "# nothing\n\n-i https://x.invalid\n") is None


def test_the_key_is_of_the_content(tmp_path: Path) -> None:
    said = (("a", "six\n"), ("b", "# a word\nsix  \n"), ("a", "six<2\n"), ("b", "./six.whl"), ("a", "./six.whl"))
    keys = [written(tmp_path / folder, text) for folder, text in said]
    first, second, third, fourth, fifth = (each.key for each in keys if each)
    assert first == second
    assert len({first, third, fourth, fifth}) == 4, "a path from the folder is another file elsewhere"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"\xff\xfe\x00s", "it is no text"),
        ("a\0b", "not a list of requirements"),
        ("-r ../outside.txt", "points outside the skill's folder"),
        ("-r requirements.txt", "include each other too deeply"),
        ("-c missing.txt", "missing.txt can't be read: No such file"),
        pytest.param("x\n" * 200_000, "not a list of requirements", id="large"),
    ],
)
def test_what_is_no_list_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    (tmp_path / "outside.txt").write_text("six")
    with pytest.raises(RequirementsRefused, match=said) as caught:
        written(tmp_path / "skill", text)
    assert "all else of the skill can be used" in caught.value.hint


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("  cause: Because pypdf was not found in the package registry and you require pypdf", "pypdf was not found"),
        ("Because there is no version of pypdf==99 and", "pypdf was not found"),
        ("error: Failed to fetch: `https://x`\n Caused by: dns error", "could not be reached"),
        ("hint: Packages were unavailable because the network was disabled.", "could not be reached"),
        ("Failed to fetch: `x`\n HTTP status client error (401 Unauthorized) for url", "refused access .401"),
        ("  × Failed to build `lxml==5.0`", "lxml==5.0 could not be built"),
        ("  × No solution found when resolving dependencies:", "contradicts itself"),
        ("first\n\x1b[31merror: disk\x1b[0m full\n\n", "could not be installed: .*disk"),
        ("", "the installer failed"),
    ],
)
def test_why_it_failed_is_said_in_a_line(tmp_path: Path, output: str, said: str) -> None:
    found = written(tmp_path, "pypdf\n")
    assert found is not None
    what, cure = why_not(found, output)
    assert re.search(said, what)
    assert "\n" not in what
    assert what.isprintable()
    assert cure


async def test_what_was_left_half_made_or_long_unused_is_removed(tmp_path: Path) -> None:
    environments = Environments(tmp_path / "cache")
    made = {text: written(tmp_path / text, f"{text}\n") for text in ("fresh", "old", "half", "busy")}
    found = {text: wanted for text, wanted in made.items() if wanted}
    for text, wanted in found.items():
        async with environments.exclusive(wanted, lambda: None):
            environments.begin(wanted)
            if text in {"fresh", "old"}:
                environments.finish(wanted)
    os.utime(environments.place(found["old"]) / READY, (1, 1))
    async with environments.exclusive(found["busy"], lambda: None):
        environments.tidy()
    left = [text for text, wanted in found.items() if environments.place(wanted).exists()]
    assert left == ["fresh", "busy"]
