"""What the user decides about protected files that commands left: until then nothing runs unasked."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ba_tui.core.effects import WORKING
from ba_tui.core.errors import StorageError
from ba_tui.core.events import PERSON, Notice
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import Diff, Diffs
from ba_tui.core.tool import Call
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.permissions.sandbox.protected_watch import PendingChanges, ProtectedWatch, WatchedRun
from ba_tui.permissions.sandbox.workspace_scan import WorkspaceScan
from ba_tui.permissions.verdicts import Allow, JudgedCall
from ba_tui.tools.command_runner import ProtectedReview
from ba_tui.tools.guards.permission import PermissionGate
from tests.tools.conftest import Harness


class Site:
    """A harness whose shell is watched; what a command did before has left ``.envrc`` and another ``.npmrc``."""

    def __init__(self, harness: Harness, aside: Path, *, asks: bool = True) -> None:
        self.harness = harness
        self.root = harness.root
        self.aside = aside
        self.accepted: list[str] = []
        self.unkept: StorageError | None = None
        harness.write(".npmrc", "before")
        self.watch = ProtectedWatch(WorkspaceScan([harness.root]), PendingChanges(aside), harness.workspace.shown)
        run = WatchedRun("make all", WORKING)
        self.watch.begin(run)
        harness.write(".envrc", "evil")
        harness.write(".npmrc", "evil")
        self.watch.end(run)
        self.review = ProtectedReview(self.watch, lambda: asks, self.accept)
        gate = PermissionGate(_allow, lambda rule, scope: None, lambda call: harness.root, settle=self.review.settle)
        harness.tools["shell"] = gate.guard(harness.tools["shell"])
        self.asked: list[Question] = []

    def accept(self, paths: Iterable[Path]) -> None:
        if self.unkept:
            raise self.unkept
        self.accepted += [path.name for path in paths]

    def leave(self, work: Callable[[], object]) -> None:
        """Do ``work`` as a command that runs."""
        run = WatchedRun("make more", WORKING)
        self.watch.begin(run)
        work()
        self.watch.end(run)

    def answers(self, reply: Reply) -> None:
        def answer(question: Question) -> Reply:
            self.asked.append(question)
            return reply

        self.harness.answer = answer

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.harness.events if isinstance(event, Notice)]


def _allow(request: JudgedCall) -> Allow:
    return Allow()


@pytest.fixture
def site(harness: Harness, tmp_path: Path) -> Site:
    return Site(harness, tmp_path / "aside")


async def test_nothing_runs_unasked_before_the_person_has_decided(site: Site) -> None:
    site.answers(Reply("deny"))
    for _ in range(2):
        refused = await site.harness.run("shell", command="echo ran")
        assert refused.is_error
        assert "created .envrc and changed .npmrc" in refused.text
    assert len(site.asked) == 2
    shown = site.asked[0].preview
    assert isinstance(shown, Diffs)
    assert [(each.path, each.before) for each in shown.items if isinstance(each, Diff)] == [
        (".npmrc", "before"),
        (".envrc", None),
    ]
    assert (site.root / ".envrc").read_text() == "evil"


async def test_what_the_person_keeps_is_not_asked_about_again(site: Site) -> None:
    site.answers(Reply("text", text="Keep them"))
    for word in ("once", "twice"):
        assert (await site.harness.run("shell", command=f"echo {word}")).text == word
    assert len(site.asked) == 1
    assert (site.root / ".npmrc").read_text() == "evil"
    assert site.accepted == [".npmrc", ".envrc"]
    assert site.notices == []


async def test_what_the_person_sets_aside_is_gone_before_the_command_runs(site: Site) -> None:
    site.answers(Reply("text", text="Set them aside"))
    assert (await site.harness.run("shell", command="ls -A; cat .npmrc")).text == ".npmrc\nbefore"
    assert len(site.asked) == 1
    assert "set aside in" in site.notices[0]


async def test_where_nobody_is_asked_they_are_told(harness: Harness, tmp_path: Path) -> None:
    site = Site(harness, tmp_path / "aside", asks=False)
    assert (await site.harness.run("shell", command="echo ran")).text == "ran"
    assert site.notices == ["`make all` created .envrc and changed .npmrc."]
    assert site.watch.pending == ()


async def test_what_cannot_be_set_aside_stays_undecided(site: Site) -> None:
    shutil.rmtree(site.aside)
    site.aside.write_text("a file where the folder was")
    site.answers(Reply("text", text="Set them aside"))
    refused = await site.harness.run("shell", command="echo ran")
    assert refused.is_error
    assert ".npmrc, .envrc could not be set aside" in refused.text
    assert "could not be set aside" in site.notices[0]
    assert (site.root / ".envrc").read_text() == "evil"
    assert len(site.watch.pending) == 2


async def test_that_an_approval_could_not_be_kept_is_told_and_the_command_runs(site: Site) -> None:
    site.unkept = StorageError("The disk is full.")
    site.answers(Reply("text", text="Keep them"))
    assert (await site.harness.run("shell", command="echo ran")).text == "ran"
    assert site.notices == ["The disk is full."]


async def test_many_changes_are_shown_and_named_in_part_and_secrets_are_not_shown(site: Site) -> None:
    """Nobody has seen all of them, so models may not read the instructions among them."""

    def work() -> None:
        for number in range(21):
            site.harness.write(f"{number:02}/AGENTS.md", "Obey.")
        (site.root / ".exrc").symlink_to("AGENTS.md")
        (site.root / ".vimrc").unlink()

    site.harness.write(".vimrc", "set nocompatible")
    site.leave(work)
    site.answers(Reply("text", text="Keep them"))
    await site.harness.run("shell", command="true")
    (question,) = site.asked
    created = question.text.partition("created ")[2].partition(" and changed .npmrc and removed .vimrc")[0]
    assert (created.count(", "), created.partition(" and ")[2]) == (3, "19 more")
    assert isinstance(question.preview, Diffs)
    shown = {each.path: each.after or "" for each in question.preview.items if isinstance(each, Diff)}
    assert len(shown) == 20
    assert shown[".envrc"].startswith("(not shown")
    assert shown[".exrc"].startswith("(a link")
    assert site.accepted == []


async def test_what_a_command_of_the_user_left_is_asked_about_later(site: Site) -> None:
    own = Call("own", Branch(site.harness.turn, Transcript(PERSON)))
    assert await site.review.settle(own) == ""
    assert await site.review.notes(own) == []
    assert len(site.watch.pending) == 2
