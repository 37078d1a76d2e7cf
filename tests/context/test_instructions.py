"""Project instructions are found from far to near, said once, and read as data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ba_tui.context.instructions import LIMIT, read_instructions, said
from ba_tui.core.messages import user


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "person").mkdir()
    (tmp_path / "repo" / "app" / "deep").mkdir(parents=True)
    return tmp_path


def read(project: Path):
    return read_instructions(project / "repo" / "app" / "deep", project / "repo", project / "person")


def test_the_person_comes_first_and_the_nearest_last(project: Path):
    (project / "person" / "AGENTS.md").write_text("mine")
    (project / "repo" / "AGENTS.md").write_text("far")
    (project / "repo" / "app" / "deep" / "CLAUDE.md").write_text("near")
    found = read(project)
    assert [item.text for item in found] == ["mine", "far", "near"]
    assert [item.shown for item in found][1:] == ["AGENTS.md", "app/deep/CLAUDE.md"]


def test_agents_md_hides_claude_md_of_the_same_folder(project: Path):
    (project / "repo" / "AGENTS.md").write_text("a")
    (project / "repo" / "CLAUDE.md").write_text("c")
    assert [item.text for item in read(project)] == ["a"]


def test_imports_stay_inside_the_project(project: Path):
    (project / "secret.md").write_text("outside")
    (project / "repo" / "more.md").write_text("inside")
    (project / "repo" / "AGENTS.md").write_text("@more.md\n@../secret.md\n@missing.md\n")
    (found,) = read(project)
    assert found.text == "inside\n@../secret.md\n@missing.md\n"


def test_an_import_of_itself_ends(project: Path):
    (project / "repo" / "AGENTS.md").write_text("@AGENTS.md\nend")
    (found,) = read(project)
    assert found.text.endswith("end")


def test_imports_come_to_an_end_however_many_there_are(project: Path):
    (project / "repo" / "AGENTS.md").write_text("@AGENTS.md\n" * 2_000)
    (found,) = read(project)
    assert found.text.startswith("@AGENTS.md")


@pytest.mark.parametrize("kind", ["pipe", "loop", "device"])
def test_what_is_no_file_is_told_and_never_waited_for(project: Path, kind: str):
    path = project / "repo" / "AGENTS.md"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path)
    (found,) = read(project)
    assert found.text == ""
    assert found.note.startswith("can't be read: ")


def test_a_huge_file_is_cut_and_says_so(project: Path):
    (project / "repo" / "AGENTS.md").write_text("x" * (LIMIT + 1))
    (found,) = read(project)
    assert len(found.text) == LIMIT
    assert "cut" in found.note


def test_what_was_said_is_not_said_again_until_it_changes(project: Path):
    path = project / "repo" / "AGENTS.md"
    path.write_text("use tabs")
    note = said(read(project), [])
    assert note
    assert note.hidden
    assert "use tabs" in note.text
    history = [user("hi").joined(note)]
    assert said(read(project), history) is None
    path.write_text("use spaces")
    again = said(read(project), history)
    assert again
    assert "use spaces" in again.text


def test_a_person_who_quotes_a_marker_does_not_hide_the_instructions(project: Path):
    (project / "repo" / "AGENTS.md").write_text("use tabs")
    note = said(read(project), [])
    assert note
    quoted = user(f"what is this? {note.text}")
    assert said(read(project), [quoted]) is not None
