"""``ba skills``: what there is, what is valid, and how skills come, begin and go."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ba_tui.cli.main import run
from ba_tui.permissions.trust.grants import trust_folder

HEAD = "---\nname: {name}\ndescription: Fills forms. Use it for PDF forms.\n---\n\n# Forms\n\nDo it.\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


class Told:
    """What a command printed and how it ended."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        code = run(["skills", *argv])
        shown = self._capsys.readouterr()
        return code, shown.out, shown.err

    def json(self, *argv: str) -> Any:
        return json.loads(self(*argv, "--json")[1])


@pytest.fixture
def told(ba_home: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(capsys)


def skill(folder: Path, name: str = "", **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(HEAD.format(name=name or folder.name))
    for each, text in files.items():
        path = folder / each.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_new_one_is_valid_listed_shown_and_removed(told: Told, ba_home: Path) -> None:
    code, out, _ = told("new", "sales-report")
    place = ba_home / "skills" / "sales-report"
    assert code == 0
    assert str(place / "SKILL.md") in out
    assert told.json("validate", str(place)) == {"path": str(place), "valid": True, "errors": [], "warnings": []}
    (row,) = [row for row in told.json("list") if row["id"] == "sales-report"]
    assert (row["state"], row["source"], row["trouble"], row["scripts"]) == ("on", "user", "", [])
    assert "sales-report  " in told("list")[1]
    assert "# Sales report" in told("show", "sales-report")[1]
    assert told.json("show", "sales-report")["files"] == []
    assert "is there already" in told("new", "sales-report")[2]
    for name in ("Sales", "a--b", "../x", "-a", "a" * 65):
        assert told("new", "--", name)[0] == 1, name
    assert "no terminal to ask in" in told("remove", "sales-report")[2]
    assert told("remove", "--yes", "sales-report")[0] == 0
    assert not place.exists()
    assert "There is no skill 'sales-report'" in told("remove", "--yes", "sales-report")[2]


def test_broken_and_switched_off_ones_are_listed_with_the_reason(told: Told, ba_home: Path) -> None:
    skill(ba_home / "skills" / "forms")
    skill(ba_home / "skills" / "odd").joinpath("SKILL.md").write_text("---\nname: [\n---\n")
    (ba_home / "skills.yaml").write_text("optional: {forms: {enabled: false}}\n")
    states = {row["id"]: (row["state"], row["trouble"]) for row in told.json("list")}
    assert states["forms"] == ("off", "")
    assert states["odd"][0] == "broken"
    assert "line" in states["odd"][1]
    assert told("show", "odd")[0] == 0


def test_validate_says_what_is_wrong_and_exits_with_1(told: Told, tmp_path: Path) -> None:
    wrong = skill(tmp_path / "forms", "Other")
    code, out, _ = told("validate", str(wrong), "--json")
    report = json.loads(out)
    assert code == 1
    assert list(report) == ["path", "valid", "errors", "warnings"]
    assert not report["valid"]
    assert report["errors"]
    code, out, _ = told("validate", str(wrong), str(skill(tmp_path / "fine")))
    assert code == 1
    assert f"{wrong}: not valid\n  error: " in out
    assert f"{tmp_path / 'fine'}: valid\n" in out
    assert [each["valid"] for each in told.json("validate", str(wrong), str(tmp_path / "fine"))] == [False, True]


def test_a_folder_is_installed_with_what_belongs_to_it(told: Told, ba_home: Path, tmp_path: Path) -> None:
    source = skill(tmp_path / "any-name", "forms", scripts__fill_dot_py="print(1)", requirements_dot_txt="pypdf>=4\n")
    (source / ".git").mkdir()
    (source / "scripts" / "run.sh").symlink_to("fill.py")
    (source / "scripts" / "fill.py").chmod(0o755)
    code, out, _ = told("install", str(source))
    place = ba_home / "skills" / "forms"
    assert code == 0
    assert out.startswith("forms: 4 files; scripts: fill.py, run.sh\n  Its scripts need pypdf>=4; ba asks before")
    assert sorted(path.name for path in place.iterdir()) == ["SKILL.md", "requirements.txt", "scripts"]
    assert os.access(place / "scripts" / "fill.py", os.X_OK)
    assert not (place / "scripts" / "run.sh").is_symlink()
    assert "already exists. Replace it: --force." in told("install", str(source / "SKILL.md"))[2]
    (place / "mine").write_text("")
    assert told("install", str(source), "--force")[0] == 0
    assert not (place / "mine").exists()
    assert [path.name for path in place.parent.iterdir()] == ["forms"], "nothing is left beside it"


def test_what_is_not_valid_or_reaches_outside_is_not_installed(told: Told, ba_home: Path, tmp_path: Path) -> None:
    odd = skill(tmp_path / "odd")
    (odd / "SKILL.md").write_text(HEAD.format(name="odd").replace("\n---\n\n", "\nmodel: opus\n---\n\n"))
    code, _, err = told("install", str(odd))
    assert code == 1
    assert "odd is not valid" in err
    assert "--force" in err
    assert not (ba_home / "skills" / "odd").exists()
    assert told("install", str(odd), "--force")[0] == 0
    (odd / "SKILL.md").write_text("---\nname: [\n---\n")
    assert told("install", str(odd), "--force")[0] == 1, "one that can't be used at all is no use"
    away = skill(tmp_path / "away")
    (away / "keys").symlink_to("/etc/passwd")
    assert "points outside the skill" in told("install", str(away))[2]
    os.mkfifo(skill(tmp_path / "pipe") / "p")
    assert "neither a file nor a folder" in told("install", str(tmp_path / "pipe"))[2]
    assert "There is no folder nowhere" in told("install", "nowhere")[2]
    assert "There is no folder ext::" in told("install", "ext::sh -c id")[2]
    assert "no SKILL.md" in told("install", str(tmp_path / "project"))[2]


def test_a_repository_is_fetched_and_a_skill_of_it_chosen(
    told: Told, ba_home: Path, tmp_path: Path, project: Path
) -> None:
    work, bare = tmp_path / "work", tmp_path / "many.git"
    skill(work / "skills" / "forms")
    skill(work / "skills" / "tables")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false", "-C", str(work)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["clone", "-q", "--bare", ".", str(bare)]):
        subprocess.run([*git, *words], check=True)
    assert "has 2 skills: forms, tables." in told("install", str(bare))[2]
    assert "has no skill 'nope'" in told("install", str(bare), "--skill", "nope")[2]
    trust_folder(project)
    code, _, err = told("install", f"file://{bare}", "--skill", "tables", "--project")
    assert code == 0
    assert (project / ".ba" / "skills" / "tables" / "SKILL.md").is_file()
    assert "not trusted, so ba does not load them" in err
    assert not (ba_home / "skills").exists()
    failed = told("install", "https://me:hush@127.0.0.1:1/x.git")[2]
    assert "can't be fetched" in failed
    assert "hush" not in failed


def test_what_was_done_is_told_as_json(told: Told, ba_home: Path, tmp_path: Path) -> None:
    place = ba_home / "skills" / "sales-report"
    assert told.json("new", "sales-report") == {"path": str(place), "id": "sales-report"}
    theirs = skill(tmp_path / "theirs", requirements_dot_txt="pypdf\n", scripts__fill_dot_py="print(1)\n")
    assert told.json("install", str(theirs)) == [
        {"id": "theirs", "path": str(ba_home / "skills" / "theirs"), "scripts": ["fill.py"], "needs": ["pypdf"]}
    ]
    assert told.json("remove", "--yes", "theirs") == {"path": str(ba_home / "skills" / "theirs"), "id": "theirs"}
