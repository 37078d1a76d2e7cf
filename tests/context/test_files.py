"""The file index behind ``@``: what git ignores stays out, the best match comes first."""

from __future__ import annotations

import asyncio
import os
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.context.files import FileIndex, FolderListing

RG = Path(sysconfig.get_path("scripts")) / "rg"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n")
    for name in ("src/parser.py", "src/app/main.py", "build/out.bin", "README.md", ".env.example"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return tmp_path


def ranked(query: str, names: Sequence[str]) -> list[str]:
    return [path for _, path in FolderListing(names).ranked(query, 10)]


async def found(index: FileIndex, query: str) -> list[str]:
    return [path for _, path in await index.search(query, 50)]


async def test_ripgrep_lists_files_and_folders_without_ignored_and_hidden_ones(folder: Path):
    assert await found(FileIndex(folder, RG), "") == [
        "README.md",
        "src/",
        "src/app/",
        "src/parser.py",
        "src/app/main.py",
    ]


async def test_hidden_files_show_when_a_dot_is_typed(folder: Path):
    assert (await found(FileIndex(folder, RG), ".e"))[0] == ".env.example"
    assert await found(FileIndex(folder, RG), "env") == []


async def test_without_ripgrep_the_folder_is_walked(folder: Path):
    assert await found(FileIndex(folder, None), "pars") == ["src/parser.py"]


async def test_an_ignore_file_that_is_a_pipe_holds_nothing_up(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ba_tui.context.files.PATIENCE", 0.05)
    os.mkfifo(folder / "src" / ".gitignore")
    index = FileIndex(folder, RG)
    assert "src/app/main.py" in await found(index, "main")


async def test_what_comes_and_goes_is_seen_at_the_next_look(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ba_tui.context.files.STALE", -1.0)
    index = FileIndex(folder, RG)
    assert await found(index, "later") == []
    (folder / "later.py").write_text("x")
    (folder / "README.md").unlink()
    while "later.py" not in await found(index, ""):  # noqa: ASYNC110 - an old index answers while a new one is made
        await asyncio.sleep(0)
    assert await found(index, "readme") == []


async def test_a_folder_that_is_gone_has_no_files(tmp_path: Path):
    assert await found(FileIndex(tmp_path / "gone", RG), "") == []


PATHS = (
    "apps/runner.py",
    "src/parser.py",
    "parser/x.py",
    "a/p_a_r_s.py",
    "src/deep/parsing/notes.md",
    "src/old_parser.py",
    "src/İstanbul/Größe.txt",
    "data/销售 2024.csv",
)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("pars", ["src/parser.py", "src/old_parser.py", "parser/x.py", "src/deep/parsing/notes.md", "a/p_a_r_s.py"]),
        ("PARSER", ["src/parser.py", "src/old_parser.py", "parser/x.py"]),
        ("src/pa", ["src/parser.py", "src/old_parser.py", "src/deep/parsing/notes.md"]),
        ("parser/", ["parser/x.py"]),
        ("sdpn", ["src/deep/parsing/notes.md"]),
        ("größe", ["src/İstanbul/Größe.txt"]),
        ("售 2", ["data/销售 2024.csv"]),
        ("nothing", []),
        ("x" * 1_000, []),
        ("a\nb", []),
    ],
)
def test_the_last_part_of_a_path_counts_most_then_runs_then_letters(query: str, best: list[str]):
    assert ranked(query, PATHS) == best


@given(st.text("abAB/_.é数", max_size=8), st.lists(st.text("abAB/_.é数", min_size=1, max_size=12), max_size=20))
def test_every_match_holds_the_letters_in_order(query: str, paths: list[str]):
    for path in ranked(query, paths):
        letters = iter(path.lower())
        assert all(letter in letters for letter in query.lower().lstrip("/"))


@pytest.mark.parametrize("rg", [RG, None])
async def test_files_behind_a_link_within_the_folder_are_found_under_both_names(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, rg: Path | None
):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.py").write_text("x")
    for name, target in (
        ("app", "src/app"),
        ("loop", "."),
        ("src/up", ".."),
        ("built", "build"),
        ("away", str(outside)),
    ):
        (folder / name).symlink_to(target)
    assert await found(FileIndex(folder, rg), "main") == ["app/main.py", "src/app/main.py"]
    assert "app/" in await found(FileIndex(folder, rg), "app")
    assert await found(FileIndex(folder, rg), "secret") == []
