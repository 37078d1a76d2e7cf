"""What the person decides about protected files that commands left: until then nothing runs unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.core.events import Notice
from ba_tui.core.profiles import WORKING
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import Diff, Diffs
from ba_tui.permissions.sandbox.pending_changes import PendingChanges
from ba_tui.permissions.sandbox.protected_watch import ProtectedWatch, WatchedRun
from ba_tui.permissions.sandbox.workspace_scan import WorkspaceScan
from ba_tui.permissions.verdicts import Allow, JudgedCall
from ba_tui.tools.guards.permission import Gate, permission
from ba_tui.tools.running.protected_review import ProtectedReview
from tests.tools.conftest import Harness


class Site:
    """A harness whose shell is watched; what a command did before has left ``.envrc`` and another ``.npmrc``."""

    def __init__(self, harness: Harness, aside: Path, *, asks: bool = True) -> None:
        self.harness = harness
        self.root = harness.root
        harness.write(".npmrc", "before")
        self.watch = ProtectedWatch(WorkspaceScan([harness.root]), PendingChanges(aside), harness.workspace.shown)
        run = WatchedRun("make all", WORKING)
        self.watch.begin(run)
        harness.write(".envrc", "evil")
        harness.write(".npmrc", "evil")
        self.watch.end(run)
        review = ProtectedReview(self.watch, lambda: asks)
        gate = Gate(_allow, lambda rule, scope: None, lambda call: harness.root, settle=review.settle)
        harness.tools["shell"] = permission(gate)(harness.tools["shell"])
        self.asked: list[Question] = []

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


async def test_what_the_person_sets_aside_is_gone_before_the_command_runs(site: Site) -> None:
    site.answers(Reply("text", text="Set them aside"))
    assert (await site.harness.run("shell", command="ls -A; cat .npmrc")).text == ".npmrc\nbefore"
    assert len(site.asked) == 1
    assert "set aside in" in site.notices[0]


async def test_where_nobody_is_asked_they_are_told(harness: Harness, tmp_path: Path) -> None:
    site = Site(harness, tmp_path / "aside", asks=False)
    assert (await site.harness.run("shell", command="echo ran")).text == "ran"
    assert site.notices == ["`make all` created .envrc and changed .npmrc."]
