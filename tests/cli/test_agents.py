"""``ba agents``: what there is, what ba makes of a file, and what is wrong with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ba_tui.cli.main import run
from ba_tui.permissions.trust.grants import trust_folder

OWN = (
    "---\nname: checker\ndescription: Checks the figures of a report.\ntools: Read, Magic\ncolor: red\n---\n\nCheck.\n"
)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / ".claude" / "agents").mkdir(parents=True)
    (folder / ".claude" / "agents" / "checker.md").write_text(OWN)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


class Told:
    """What a command printed and how it ended."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        code = run(["agents", *argv])
        shown = self._capsys.readouterr()
        return code, shown.out, shown.err

    def json(self, *argv: str) -> Any:
        return json.loads(self(*argv, "--json")[1])


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(capsys)


def test_a_projects_agents_are_listed_once_it_is_trusted(told: Told, project: Path) -> None:
    code, out, err = told("list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["analyst", "explore", "general"]
    assert "agents that are not trusted" in err
    trust_folder(project)
    (row,) = [row for row in told.json("list") if row["name"] == "checker"]
    assert (row["state"], row["source"], row["tools"], row["color"]) == ("partly", "project", ["read_file"], "red")
    assert told("list", "figures", "of", "reports")[1].startswith("checker")
    assert told.json("list", "zebras") == []


def test_one_is_shown_with_its_prompt(told: Told, project: Path) -> None:
    trust_folder(project)
    code, out, _ = told("show", "checker")
    assert code == 0
    assert "unsupported   tools Magic: there are none of that name here" in out
    assert out.endswith("\n\nCheck.\n")
    shown = told.json("show", "explore")
    assert shown["limit"] == "it only reads"
    assert shown["prompt"].startswith("You explore")
    code, _, err = told("show", "cheker")
    assert code == 1
    assert "There is no agent 'cheker'. Did you mean checker?" in err


def test_any_file_can_be_checked(told: Told, tmp_path: Path) -> None:
    good = tmp_path / "good.md"
    good.write_text(OWN)
    assert told("validate", str(good))[:2] == (
        0,
        f"{good}: valid, called checker\n  not supported: tools Magic: there are none of that name here\n",
    )
    (tmp_path / "bad.md").write_text("---\nname: x\n")
    code, out, _ = told("validate", str(tmp_path / "bad.md"), str(good))
    assert code == 1
    assert "bad.md: not valid\n  error: line 1: the front matter is not closed" in out
    assert [line["name"] for line in told.json("validate", str(good))] == ["checker"]
    for wrong, why in ((tmp_path / "none.md", "There is nothing at"), (tmp_path / "empty", "contains no agent files")):
        (tmp_path / "empty").mkdir(exist_ok=True)
        code, _, err = told("validate", str(wrong))
        assert code == 1
        assert why in err
