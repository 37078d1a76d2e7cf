"""Every bundled skill keeps to the public format, is short, and names only what is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from skills_ref import read_properties, validate

from ba_tui.resources import bundled
from ba_tui.tools.definitions import load_definitions
from tests.bundled_skills.bench import SKILLS

NAMES = "charts code-review data-analysis debugging docx git pdf report skill-creator sql xlsx".split()  # noqa: SIM905 - read as words
FOLDERS = sorted(path for path in SKILLS.iterdir() if path.is_dir())
EXAMPLES = {"charts/x.svg"}


def test_these_skills_ship() -> None:
    assert [folder.name for folder in FOLDERS] == NAMES


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_it_is_valid_and_short(folder: Path) -> None:
    assert validate(folder) == []
    about = read_properties(folder)
    assert len(about.description) <= 160
    assert re.search(r"\bUse (when|for|to)\b", about.description)
    body = (folder / "SKILL.md").read_text("utf-8")
    assert len(body) < 4 * 5000
    assert "$ARGUMENTS" not in body, "it would be replaced"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_it_names_is_there(folder: Path) -> None:
    text = "\n".join(path.read_text("utf-8") for path in folder.rglob("*.md"))
    named = set(re.findall(r"`((?:references|scripts|assets)/[\w.-]+)`", text))
    assert [name for name in named - EXAMPLES if "*" not in name and not (folder / name).exists()] == []
    for script in re.findall(r'skill_id="([\w-]+)", script_name="([\w.]+)"', text):
        assert script == ("name", "x.py") or (SKILLS / script[0] / "scripts" / script[1]).is_file()
    assert [name for name in re.findall(r"skills? `([a-z-]+)`", text) if name not in NAMES] == []
    unused = [path.name for path in folder.glob("references/*") if f"references/{path.name}" not in text]
    assert unused == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_tools_it_names_exist(folder: Path) -> None:
    known = set(load_definitions(bundled("config") / "prompts" / "tools"))
    text = "\n".join(path.read_text("utf-8") for path in folder.rglob("*.md"))
    named = {
        name for name in re.findall(r"`((?:read|write|edit|ask|web|run|todo|apply)_\w+)`", text) if "." not in name
    }
    assert named <= known


def test_scripts_share_one_way_of_talking() -> None:
    copies = {path.read_bytes() for path in SKILLS.glob("*/scripts/workspace.py")}
    assert len(copies) == 1
    for path in SKILLS.glob("*/scripts/*.py"):
        text = path.read_text("utf-8")
        assert ast.get_docstring(ast.parse(text)), path
        assert len(text.splitlines()) <= 400, path


def test_only_scripts_with_packages_ask_for_packages() -> None:
    asked = {path.parent.name for path in SKILLS.glob("*/requirements.txt")}
    assert asked == {"docx", "pdf", "xlsx"}
