"""The file index behind ``@``: what git ignores stays out, the best match comes first."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.context.files import FileIndex, best_matches

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


async def test_ripgrep_lists_files_and_folders_without_ignored_and_hidden_ones(folder: Path):
    found = await FileIndex(folder, RG).search("", 50)
    assert found == ["README.md", "src/", "src/app/", "src/parser.py", "src/app/main.py"]


async def test_hidden_files_show_when_a_dot_is_typed(folder: Path):
    assert ".env.example" in await FileIndex(folder, RG).search(".e", 50)


async def test_without_ripgrep_the_folder_is_walked(folder: Path):
    assert "src/parser.py" in await FileIndex(folder, None).search("pars", 50)


def test_names_that_begin_so_win_over_letters_in_between():
    paths = ["apps/runner.py", "src/parser.py", "parser/x.py", "a/p_a_r_s.py"]
    assert best_matches("pars", paths, 4) == ["parser/x.py", "src/parser.py", "a/p_a_r_s.py"]


@given(st.text("abAB/_.é数", max_size=8), st.lists(st.text("abAB/_.é数", min_size=1, max_size=12), max_size=20))
def test_every_match_holds_the_letters_in_order(query: str, paths: list[str]):
    for path in best_matches(query, paths, 10):
        letters = iter(path.lower())
        assert all(letter in letters for letter in query.lower())
