"""Copies of a real repository, and how what an agent changed there comes into the project."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.calls import Commit
from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.results import Diff, Diffs
from ba_tui.features.agents import copies
from ba_tui.features.agents.apply_changes import ChangeApplier, apply_changes_tool
from ba_tui.features.agents.copies import Copies
from ba_tui.permissions.paths import Workspace
from ba_tui.resources import bundled
from ba_tui.tools.definitions import load_definitions
from ba_tui.tools.editing.transaction import KIND, FileStep, UndoneFiles, described
from ba_tui.write_ahead import recover, write_ahead

AGENT = "main/general-1"


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=folder, check=True, capture_output=True
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    git(root, "init", "-q")
    (root / "src" / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 21)))
    (root / "gone.txt").write_text("old\n")
    (root / "same.txt").write_text("same\n")
    (root / "pixels.bin").write_bytes(bytes(range(256)))
    (root / ".gitignore").write_text("ignored/\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    # What git does not know yet, and what it ignores.
    (root / "new.txt").write_text("not committed\n")
    (root / "ignored").mkdir()
    (root / "ignored" / "big.txt").write_text("no\n")
    return root


class Place:
    """A session whose agent AGENT has a copy."""

    def __init__(self, project: Path, denied: str = "") -> None:
        self.project = project
        self.working = False
        self.copies = Copies(project.parent / "session", project, lambda path: bool(denied) and path.name == denied)
        self.applying = ChangeApplier(self.copies, Workspace(project), write_ahead(project), lambda agent: self.working)
        definitions = load_definitions(bundled("config") / "prompts" / "tools")
        self.tool = apply_changes_tool(definitions["apply_changes"], self.applying)

    def make(self) -> Path:
        return asyncio.run(self.copies.make(AGENT)).files

    def told(self) -> str:
        return asyncio.run(self.copies.told(AGENT))

    def apply(self, **more: Any) -> str:
        args = {"agent_id": AGENT, **more}
        self.applying.paths(args)
        return self.applying.apply(args, Commit()).text

    def preview(self) -> object:
        async def shown() -> object:
            assert self.tool.preview
            self.tool.paths({"agent_id": AGENT})
            return await self.tool.preview({"agent_id": AGENT})

        return asyncio.run(shown())

    def refusal(self, **more: Any) -> str:
        with pytest.raises(BaError) as caught:
            self.apply(**more)
        return str(caught.value)


def contents(folder: Path) -> Mapping[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_a_copy_is_what_lies_on_the_disk_without_what_git_ignores(project: Path) -> None:
    (project / "src" / "a.py").write_text("changed, not committed\n")
    (project / "gone.txt").unlink()
    files = Place(project).make()
    assert sorted(contents(files)) == [".gitignore", "new.txt", "pixels.bin", "same.txt", "src/a.py"]
    assert (files / "src" / "a.py").read_text() == "changed, not committed\n"
    assert not (files / ".git").exists()


def test_an_agent_is_found_by_the_short_id_that_users_and_models_see(project: Path) -> None:
    place = Place(project)
    (place.make() / "new.txt").write_text("of the agent\n")
    with pytest.raises(UsageError, match="The copy of general-2 is gone"):
        place.apply(agent_id="general-2")
    assert "Changed new.txt" in place.apply(agent_id="general-1")
    assert (project / "new.txt").read_text() == "of the agent\n"


def test_a_short_id_of_several_agents_names_them(project: Path) -> None:
    place = Place(project)
    (place.make() / "new.txt").write_text("of the agent\n")
    other = "main/explore-1/general-1"
    (asyncio.run(place.copies.make(other)).files / "new.txt").write_text("of the other\n")
    with pytest.raises(UsageError, match="Several agents are called general-1") as refused:
        place.apply(agent_id="general-1")
    assert refused.value.hint == f"Name one of {other}, {AGENT}."
    assert "Changed new.txt" in place.apply(agent_id="explore-1/general-1")
    assert (project / "new.txt").read_text() == "of the other\n"


def test_files_of_submodules_and_nested_repositories_are_in_a_copy(project: Path) -> None:
    other = project.parent / "other"
    (other / "lib").mkdir(parents=True)
    git(other, "init", "-q")
    (other / "lib" / "b.py").write_text("b\n")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "first")
    for name in ("vendor/sub", "vendor/empty"):
        git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), name)
    git(project, "submodule", "--quiet", "deinit", "-f", "vendor/empty")
    nested = project / "nested" / "deep"
    nested.mkdir(parents=True)
    git(nested, "init", "-q")
    (nested / "c.txt").write_text("c\n")
    (nested / "no.log").write_text("no\n")
    (nested / ".gitignore").write_text("*.log\n")
    # Nobody leads the copying out of the project by what a nested repository says of itself.
    (project.parent / "secret.txt").write_text("secret\n")
    (project / "far").symlink_to(other, target_is_directory=True)
    bad = project / "bad"
    bad.mkdir()
    (bad / ".git").write_text("gitdir: nowhere\n")
    place = Place(project)
    files = place.make()
    found = contents(files)
    assert found["vendor/sub/lib/b.py"] == b"b\n"
    assert found["nested/deep/c.txt"] == b"c\n"
    assert not [name for name in found if ".log" in name or "secret" in name or name.startswith("far")]
    (files / "vendor" / "sub" / "lib" / "b.py").write_text("changed\n")
    told = place.told()
    assert "vendor/empty: a submodule that is not checked out" in told
    assert "far: a link that leads out of the project" in told
    assert "vendor/sub/lib/b.py" in told
    place.apply()
    assert (project / "vendor" / "sub" / "lib" / "b.py").read_text() == "changed\n"


def test_nothing_of_the_repository_is_run(project: Path) -> None:
    trap = project.parent / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {project.parent}/sprung\ncat\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "filter.trap.clean", "filter.trap.smudge", "core.hooksPath"):
        git(project, "config", name, str(trap))
    (project / ".gitattributes").write_text("* filter=trap\n")
    Place(project).make()
    assert not (project.parent / "sprung").exists()


def test_links_stay_links_and_those_that_lead_out_are_left(project: Path) -> None:
    (project.parent / "secret.txt").write_text("secret\n")
    (project / "near").symlink_to("src/a.py")
    (project / "far").symlink_to("../secret.txt")
    (project / "whole").symlink_to(project.parent / "secret.txt")
    (project / "there").mkdir()
    (project / "there" / "file.txt").write_text("x\n")
    git(project, "add", "-A")
    # A folder that git knows becomes a link to another place.
    (project / "there" / "file.txt").unlink()
    (project / "there").rmdir()
    (project.parent / "elsewhere").mkdir()
    (project.parent / "elsewhere" / "file.txt").write_text("private\n")
    (project / "there").symlink_to(project.parent / "elsewhere")
    files = Place(project).make()
    assert (files / "near").readlink() == Path("src/a.py")
    assert not [name for name in ("far", "whole", "there") if os.path.lexists(files / name)]


def test_what_a_rule_denies_is_not_copied_and_does_not_count_as_deleted(project: Path) -> None:
    place = Place(project, denied="same.txt")
    files = place.make()
    assert not (files / "same.txt").exists()
    (files / "same.txt").write_text("of the agent\n")
    assert "both made a file of this name" in place.refusal()
    (files / "same.txt").unlink()
    assert place.told().startswith("It changed nothing")


def test_changes_come_in_as_one_and_only_once(project: Path) -> None:
    place = Place(project)
    files = place.make()
    (files / "src" / "a.py").write_text("whole new\n")
    (files / "gone.txt").unlink()
    (files / "deep" / "er").mkdir(parents=True)
    (files / "deep" / "er" / "b.py").write_text("b\n")
    (files / "deep" / "er" / "b.py").chmod(0o755)
    (files / "pixels.bin").write_bytes(b"\0other")
    told = place.told()
    assert told.startswith("It changed 4 files in its copy (+2 -21): deep/er/b.py, gone.txt, pixels.bin, src/a.py.")
    shown = place.preview()
    assert isinstance(shown, Diffs)
    assert [each.path for each in shown.items] == ["deep/er/b.py", "gone.txt (deleted)", "pixels.bin", "src/a.py"]
    assert set(place.tool.paths({"agent_id": AGENT})) == {
        str(project / path) for path in ("deep/er/b.py", "pixels.bin", "src/a.py", "gone.txt")
    }
    before = contents(project)
    assert "Created deep/er/b.py" in place.apply()
    after = contents(project)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == {
        "src/a.py", "gone.txt", "deep/er/b.py", "pixels.bin",
    }  # fmt: skip
    assert os.access(project / "deep" / "er" / "b.py", os.X_OK)
    assert "no changes that are not in the project" in place.refusal()
    # It goes on: only what is new comes in.
    (files / "src" / "a.py").write_text("once more\n")
    assert place.apply() == "Changed src/a.py (+1 -1 lines)."


def test_what_the_project_changed_elsewhere_is_merged(project: Path) -> None:
    place = Place(project)
    file = place.make() / "src" / "a.py"
    file.write_text(file.read_text().replace("line 18\n", "line eighteen\n"))
    own = project / "src" / "a.py"
    own.write_text(own.read_text().replace("line 2\n", "line two\n"))
    assert place.apply() == "Changed src/a.py (+1 -1 lines), merged with the project's own changes."
    assert {"line two", "line eighteen"} <= set(own.read_text().splitlines())
    # It goes on in its copy: what came in before does not stand in the way.
    file.write_text(file.read_text().replace("line 10\n", "line ten\n"))
    assert place.apply() == "Changed src/a.py (+1 -1 lines), merged with the project's own changes."
    assert {"line two", "line ten", "line eighteen"} <= set(own.read_text().splitlines())


def test_where_both_changed_the_same_nothing_is_changed(project: Path) -> None:
    place = Place(project)
    files = place.make()
    (files / "src" / "a.py").write_text((files / "src" / "a.py").read_text().replace("line 5\n", "line five\n"))
    (files / "same.txt").write_text("of the agent\n")
    (files / "pixels.bin").write_bytes(b"\0of the agent")
    (files / "gone.txt").unlink()
    own = project / "src" / "a.py"
    own.write_text(own.read_text().replace("line 5\n", "line V\n"))
    (project / "pixels.bin").write_bytes(b"\0mine")
    (project / "gone.txt").write_text("kept after all\n")
    before = contents(project)
    said = place.refusal()
    assert said.startswith(f"3 of 4 files of {AGENT} can't be merged; nothing was changed.")
    for words in (
        "pixels.bin: it is no text, and the project's has changed",
        "gone.txt: it was deleted in the copy, and changed in the project",
        "src/a.py: the project changed the same lines",
        "line five",
        "line V",
    ):
        assert words in said
    assert contents(project) == before
    # What does not meet can come in by name.
    assert place.apply(paths=["same.txt"]) == "Changed same.txt (+1 -1 lines)."
    assert place.refusal().startswith("3 of 3 files")


def test_a_link_in_the_project_is_not_followed(project: Path) -> None:
    place = Place(project)
    files = place.make()
    (files / "src" / "a.py").write_text("new\n")
    (project / "src").rename(project.parent / "moved")
    (project / "src").symlink_to(project.parent / "moved")
    assert "a link leads elsewhere" in place.refusal()
    assert (project.parent / "moved" / "a.py").read_text().startswith("line 1\n")


def test_an_agent_that_works_is_waited_for(project: Path) -> None:
    place = Place(project)
    (place.make() / "same.txt").write_text("half\n")
    place.working = True
    assert place.refusal() == f"{AGENT} still works."


def test_what_was_not_judged_does_not_come_in(project: Path) -> None:
    place = Place(project)
    files = place.make()
    (files / "same.txt").write_text("shown\n")
    args = {"agent_id": AGENT}
    place.applying.paths(args)
    (files / "src" / "a.py").write_text("not shown\n")
    with pytest.raises(BaError, match="changed its copy in between"):
        place.applying.apply(args, Commit())
    # Asked about while the agent worked, it names nothing.
    place.working = True
    assert place.tool.paths(args) == ()
    place.working = False
    with pytest.raises(BaError, match="changed its copy in between"):
        place.applying.apply(args, Commit())
    assert (project / "same.txt").read_text() == "same\n"


def test_a_folder_within_a_repository_is_copied_with_all_of_it(project: Path) -> None:
    (project / "src" / "pyproject.toml").write_text("")
    assert copies.repository(project / "src") == project.resolve()


def test_a_copy_that_was_half_made_is_none(project: Path) -> None:
    place = Place(project)
    half = project.parent / "session" / "copies" / "main%2Fgeneral-1.making" / "files"
    half.mkdir(parents=True)
    (half / "old.txt").write_text("from a run that was killed\n")
    with pytest.raises(UsageError, match="is gone"):
        asyncio.run(place.copies.find(AGENT))
    assert "old.txt" not in contents(place.make())
    assert not half.parent.exists()


def test_a_commit_that_was_cut_before_it_was_noted_counts_as_done(project: Path) -> None:
    place = Place(project)
    (place.make() / "same.txt").write_text("new\n")
    (project / "same.txt").write_text("new\n")
    assert "no changes that are not in the project" in place.refusal()
    assert place.told() == "What it changed in its copy is in the project."


def test_an_agent_that_changed_nothing_can_go_on_in_a_new_copy(project: Path) -> None:
    place = Place(project)
    files = place.make()
    assert place.told() == "It changed nothing in its copy of the project, which was removed."
    assert not files.exists()
    again = asyncio.run(place.copies.find(AGENT))
    assert again.files == files
    assert (files / "same.txt").read_text() == "same\n"


def test_what_can_not_be_copied_is_said(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(UsageError, match="is in no git repository"):
        Place(plain).make()
    monkeypatch.setattr(copies, "MOST_FILES", 3)
    with pytest.raises(UsageError, match=r"too large for a copy: 6 files with 0\.0 GB; at most 3 files and 2 GB"):
        Place(project).make()
    assert not list((project.parent / "session").rglob("files"))


def test_one_change_is_shown_as_an_edit_is(project: Path) -> None:
    place = Place(project)
    (place.make() / "same.txt").write_text("other\n")
    shown = place.preview()
    assert shown == Diff("same.txt", "same\n", "other\n")


def test_a_kill_while_changes_come_in_is_undone(project: Path) -> None:
    place = Place(project)
    copy = place.make()
    names = ("src/a.py", "gone.txt", "same.txt")
    before = {name: (project / name).read_bytes() for name in names}
    (copy / "src/a.py").write_text("new\n")
    (copy / "gone.txt").unlink()
    (copy / "same.txt").write_text("other\n")
    killed: list[str] = []
    rename = os.rename

    def end(source: str, target: str, **more: int) -> None:
        # What a killed process leaves of the list, and of the files.
        if target == "same.txt":
            (held,) = place.applying.ahead.folder.glob("*.list")
            killed.append(held.read_text())
        rename(source, target, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "rename", end)
        place.apply()
    place.applying.ahead.folder.joinpath("999999999-0123abcd.list").write_text(killed[0])
    (project / "gone.txt").write_bytes(before["gone.txt"])
    told = recover(place.applying.ahead.folder, {KIND: UndoneFiles((project,))})
    assert told == ["ba was stopped while apply_changes changed 3 files. ba put back the 2 files that it had changed."]
    assert {name: (project / name).read_bytes() for name in names} == before


def test_a_patch_of_a_copy_that_a_kill_cut_off_is_undone_when_the_copy_is_used(project: Path) -> None:
    place = Place(project)
    copy = place.make()
    steps = [FileStep(copy / name, name, (copy / name).read_bytes(), b"half") for name in ("same.txt", "src/a.py")]
    ahead = write_ahead(copy)
    with ahead.listed(KIND, "apply_patch", described(steps), [step.before or b"" for step in steps]):
        (held,) = ahead.folder.iterdir()
        (ahead.folder / "999999999-0123abcd.list").write_bytes(held.read_bytes())
    (copy / "same.txt").write_bytes(b"half")
    assert place.copies.changed(AGENT, anew=True) == {}
    assert (copy / "same.txt").read_text() == "same\n"
