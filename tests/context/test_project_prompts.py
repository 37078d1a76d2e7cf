"""/init and the reviews in whole conversations: what is sent, when nothing is, and what a review may do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.cli.main import run
from ba_tui.core.events import Event, Steered, ToolFinished, TurnEnded
from ba_tui.permissions.trust.grants import trust_folder
from tests.context.test_own_commands import said

WRITES = """\
steps:
  - calls: [{tool: write_file, args: {path: notes.txt, content: hello}}]
  - say: Done.
"""


class Project:
    """A folder with a scripted model that writes a file when it is asked anything."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder.parent / "model.yaml").write_text(WRITES)

    def git(self, *words: str) -> None:
        author = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main")
        subprocess.run(("git", *author, *words), cwd=self.folder, check=True, capture_output=True)

    def commit(self, name: str, text: str) -> None:
        if not (self.folder / ".git").exists():
            self.git("init")
        (self.folder / name).write_text(text)
        self.git("add", name)
        self.git("commit", "-m", name)

    async def say(self, text: str, **flags: object) -> list[Event]:
        trust_folder(self.folder)
        talk = connect({"model": f"scripted:{self.folder.parent}/model.yaml", **flags}, self.folder).library.create()
        try:
            return await said(talk, text)
        finally:
            await talk.close()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = Project(tmp_path / "work")
    monkeypatch.chdir(project.folder)
    return project


def prompt(events: list[Event]) -> str:
    """What the command stood for."""
    texts = [event.message.text for event in events if isinstance(event, Steered)]
    return next(text for text in texts if text.startswith("The command /"))


def refused(events: list[Event]) -> str:
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.error
    assert ended.error.kind == "prompt_refused"
    return f"{ended.error.message} {ended.error.hint}"


async def test_init_asks_for_a_new_file_or_the_improvement_of_one(project: Project) -> None:
    assert "This folder is empty" in refused(await project.say("/init"))
    assert "a web shop" in prompt(await project.say("/init a web shop", permission_mode="accept-edits"))
    (project.folder / "notes.txt").unlink()
    (project.folder / "main.py").write_text("print(1)\n")
    told = prompt(await project.say("/init", permission_mode="accept-edits"))
    assert "There is none yet: write AGENTS.md." in told
    (project.folder / "CLAUDE.md").write_text("Use tabs.\n")
    told = prompt(await project.say("/init", permission_mode="plan"))
    assert "CLAUDE.md is there: read it first, then improve it" in told
    (project.folder / "AGENTS.md").write_text("Use spaces.\n")
    told = prompt(await project.say("/init mind the tests", permission_mode="plan"))
    assert "AGENTS.md is there" in told
    assert "CLAUDE.md is there too" in told
    assert told.endswith("Arguments: mind the tests")


async def test_a_review_gets_the_difference_and_can_change_nothing(project: Project) -> None:
    project.commit("a.py", "one = 1\n")
    assert "nothing to review" in refused(await project.say("/review"))
    (project.folder / "a.py").write_text("one = 2\n")
    events = await project.say("/review", permission_mode="accept-edits")
    told = prompt(events)
    assert "+one = 2" in told
    assert "what is not committed yet" in told
    written = [event for event in events if isinstance(event, ToolFinished)][-1]
    assert written.result.is_error
    assert "limited to: read" in written.result.text
    assert not (project.folder / "notes.txt").exists()


async def test_a_review_takes_a_range_and_says_what_git_has_against_it(project: Project) -> None:
    project.commit("a.py", "one = 1\n")
    project.commit("a.py", "one = 2\n")
    told = prompt(await project.say("/security-review HEAD~1"))
    assert "+one = 2" in told
    assert "`git diff HEAD~1`" in told
    assert "nothing to review" in refused(await project.say("/review HEAD"))
    assert "git can't show that range: ambiguous argument 'nowhere'" in refused(await project.say("/review nowhere"))
    assert "is no range of commits" in refused(await project.say("/review --output=x"))
    (project.folder / "new.py").write_text("x\n")
    assert "?? new.py" in prompt(await project.say("/review"))


async def test_a_review_without_anything_to_compare_with_says_so(project: Project) -> None:
    assert "not in a git repository" in refused(await project.say("/review"))
    project.git("init")
    assert "no commit yet" in refused(await project.say("/review"))


async def test_a_command_of_the_projects_own_wins(project: Project) -> None:
    own = project.folder / ".claude" / "commands" / "review.md"
    own.parent.mkdir(parents=True)
    own.write_text("Look at the wall.")
    assert "Look at the wall." in prompt(await project.say("/review", permission_mode="plan"))


@pytest.mark.usefixtures("empty_stdin")
def test_print_mode_knows_them(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    model = ("-m", f"scripted:{project.folder.parent}/model.yaml")
    assert run(["-p", "/init", *model]) != 0
    assert "This folder is empty" in capsys.readouterr().err
    (project.folder / "main.py").write_text("print(1)\n")
    # The call that writes was denied: nobody could be asked.
    assert run(["-p", "/init", *model]) == 4
    assert "Done." in capsys.readouterr().out
