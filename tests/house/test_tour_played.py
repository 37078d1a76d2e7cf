"""Every chapter played to its end through the real rooms, with a person's answers. Only the pauses are left out.

The words and numbers are judged in test_tour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.core import conversation
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import (
    Asked,
    Compressed,
    ConflictChanged,
    Event,
    FiguresChecked,
    MemoriesUsed,
    MessageDone,
    TeamMessage,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from ba_tui.core.questions import Question, Reply
from ba_tui.core.teamwork import TeamOrder
from ba_tui.core.turn import Turn
from ba_tui.features.teams.session import TeamSession
from tests.house.touring import CHAPTERS, Opened, opened

Answer = Callable[[Question], Reply | None]
MOST = 12
"""Prompts that no chapter needs."""
CHANGES = {
    "first": {"sales.csv", "notes.md"},
    "skill": {"charts/sales-by-region.svg"},
    "workflow": {"report.md"},
}


def as_told(question: Question) -> Reply:
    """What the tour tells people to answer."""
    if "rm " in str(question.args):
        return Reply("deny", "keep them for the audit")
    return Reply("once")


def yes(question: Question) -> Reply:
    return Reply("once")


def no(question: Question) -> Reply:
    return Reply("deny", "not today")


def interrupt(question: Question) -> None:
    return None


@dataclass
class Player:
    """A person who sends what is suggested."""

    chapter: Opened
    talk: Conversation
    answer: Answer
    stops: str = "sleep"
    """In the arguments of the calls at which the user presses Esc."""
    events: list[Event] = field(default_factory=list[Event])

    async def play(self) -> None:
        prompt, sent = self.chapter.start.prompt, 0
        while prompt:
            sent += 1
            assert sent < MOST, self.said
            prompt = await self.send(prompt)

    async def send(self, prompt: str) -> str:
        """The next prompt; empty at the end."""
        if prompt == "/rewind":
            await self.talk.past.rewind(1, "both")
            return "go on"
        if prompt.startswith("/clear\n"):
            # A new session, and its first prompt.
            await self.talk.close()
            self.talk = connect({"model": self.chapter.model}, self.chapter.folder).library.create()
            prompt = prompt.partition("\n")[2]
        turn = self._turn(prompt)
        words = ""
        async for event in turn:
            self.events.append(event)
            if isinstance(event, Asked):
                reply = self.answer(event.question)
                turn.answer(event.ask_id, reply) if reply else turn.cancel()
            elif isinstance(event, ToolStarted) and self.stops in str(event.call.input):
                turn.cancel()
            elif isinstance(event, MessageDone):
                words = event.message.text
        ended = self.events[-1]
        assert isinstance(ended, TurnEnded)
        assert ended.reason in {"done", "cancelled"}, ended
        return self.chapter.start.suggestions.get(words, "") if words and ended.reason == "done" else "go on"

    def _turn(self, prompt: str) -> Turn:
        if prompt == "/compact":
            return conversation.compact(self.talk)
        if prompt.startswith("/team --roles "):
            roles, goal = prompt.removeprefix("/team --roles ").split(" ", 1)
            teams = self.talk.inventory.feature(TeamSession)
            assert teams
            return self.talk.say(goal, teams.run(TeamOrder(goal, tuple(roles.split(",")))))
        return self.talk.say(prompt)

    @property
    def said(self) -> str:
        return "\n".join(event.message.text for event in self.events if isinstance(event, MessageDone))

    @property
    def failed(self) -> Sequence[str]:
        results = (event.result for event in self.events if isinstance(event, ToolFinished))
        return [result.text for result in results if result.is_error]

    def figures(self, label: str) -> Sequence[Sequence[str]]:
        """The figures of each answer that were judged ``label``."""
        reports = (event.report for event in self.events if isinstance(event, FiguresChecked))
        return [[verdict.text for verdict in report.verdicts if verdict.label == label] for report in reports]


async def played(chapter: Opened, answer: Answer, stops: str = "sleep") -> Player:
    talk = connect({"model": chapter.model}, chapter.folder).library.create()
    player = Player(chapter, talk, answer, stops)
    await player.play()
    await player.talk.close()
    return player


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", CHAPTERS)
async def test_answered_as_told_a_chapter_does_what_it_says(name: str) -> None:
    with opened(name) as chapter:
        before = files(chapter.folder)
        player = await played(chapter, as_told)
        after = files(chapter.folder)
    assert "**Next:**" in player.said
    assert {path for path in after if before.get(path) != after[path]} == CHANGES.get(name, set())
    wanted = {"first": ["keep them for the audit"], "stop": ["interrupted"]}.get(name, [])
    assert len(player.failed) == len(wanted), player.failed
    assert all(words in text for words, text in zip(wanted, player.failed, strict=True))
    if name == "first":
        assert b"Best region: North, 1,655.00 euros.\nOrders: 84." in after["notes.md"]
        assert {todo.status for todo in player.talk.transcript.todos} == {"completed"}
    if name == "analysis":
        output = "".join(event.result.text for event in player.events if isinstance(event, ToolFinished))
        assert "sales: 85 rows, 2 findings." in output
        started = [event.call for event in player.events if isinstance(event, ToolStarted)]
        proofs = [call.input["sql"] for call in started if call.id in {"outliers", "repeated"}]
        assert [f"Proof: {sql}" in output for sql in proofs] == [True, True]
        assert "1052,South,Gift box,1,39.0,390.0" in output
        assert "1029,North,Gift box,2,39.0,78.0,2" in output
        assert player.figures("unsourced") == [[], []]
        assert player.figures("sourced")[0] == ["1,655.00", "1,432.40", "1,119.80", "128.00"]
    if name == "figures":
        assert [found for found in player.figures("unsourced") if found] == [["57.80"]]
        assert player.figures("derived")[0] == ["222.60"]
        assert player.figures("sourced")[1] == ["50.15"]
    if name == "compact":
        assert any(isinstance(event, Compressed) for event in player.events)
    if name == "memory":
        used = [event.memories for event in player.events if isinstance(event, MemoriesUsed)]
        assert [[each.text for each in memories] for memories in used] == [["The fiscal year begins in April."]]
        assert "You told me in another session" in player.said
    if name == "rewind":
        assert "as they were before" in player.said


@pytest.mark.parametrize("answer", [no, interrupt])
@pytest.mark.parametrize("name", ["first", "skill", "workflow", "memory", "rewind"])
async def test_without_a_yes_nothing_changes_and_the_chapter_goes_on(name: str, answer: Answer) -> None:
    with opened(name) as chapter:
        before = files(chapter.folder)
        player = await played(chapter, answer)
        assert files(chapter.folder) == before
    assert "**Next:**" in player.said
    assert any(
        words in player.said
        for words in ("has not run", "have not run", "was refused", "nothing was stored", "as it was", "as they were")
    )
    assert "completed" not in {todo.status for todo in player.talk.transcript.todos}


@pytest.mark.parametrize("name", ["analysis", "figures"])
async def test_a_query_that_is_stopped_gives_no_figure(name: str) -> None:
    with opened(name) as chapter:
        player = await played(chapter, as_told, "sum(units")
    assert "query has not run" in player.said
    assert "**Next:**" in player.said
    assert not any(player.figures("sourced"))


async def test_what_is_allowed_against_the_advice_is_done_and_said() -> None:
    with opened("first") as chapter:
        player = await played(chapter, yes)
        assert not (chapter.folder / "notes-2025.md").exists()
    assert "You allowed it" in player.said


async def test_a_skill_that_the_person_does_not_start_is_started_by_the_model() -> None:
    with opened("skill") as chapter:
        talk = connect({"model": chapter.model}, chapter.folder).library.create()
        player = Player(chapter, talk, as_told)
        await player.send(chapter.start.prompt)
        assert await player.send("draw something") == ""
        await talk.close()
        assert (chapter.folder / "charts" / "sales-by-region.svg").is_file()
    assert not player.failed


@pytest.mark.parametrize("name", ["mention", "compact"])
async def test_a_chapter_that_needs_something_asks_for_it_once_more(name: str) -> None:
    with opened(name) as chapter:
        talk = connect({"model": chapter.model}, chapter.folder).library.create()
        player = Player(chapter, talk, as_told)
        suggested = await player.send(chapter.start.prompt)
        assert await player.send("what is the weather?") == suggested
        assert await player.send("and now?") == suggested
        while suggested:
            suggested = await player.send(suggested)
        await talk.close()
    assert "**Next:**" in player.said


async def test_a_team_contradicts_itself_and_agrees() -> None:
    """Three roles, research, write and edit, on real files: the acceptance scenario of teams."""
    with opened("team") as chapter:
        player = await played(chapter, yes)
    conflicts = [event.conflict for event in player.events if isinstance(event, ConflictChanged)]
    assert [each.key for each in conflicts] == ["south_orders", "south_orders"]
    assert {str(claim.value) for claim in conflicts[0].claims} == {"36", "31"}
    assert conflicts[1].winner
    assert (conflicts[1].winner.member, str(conflicts[1].winner.value)) == ("researcher", "31")
    senders = {event.message.sender for event in player.events if isinstance(event, TeamMessage)}
    assert senders >= {"researcher", "writer", "editor"}
    counted = next(event.result for event in player.events if isinstance(event, ToolFinished))
    assert "31" in counted.text
    assert "South had 31 orders" in player.said
