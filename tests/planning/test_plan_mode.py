"""Plan mode ends with its plan and the question whether to carry it out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ba_tui.core.agent import Agent
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Asked, Event, Judged, Mode, ModeChanged, ToolFinished, TurnStarted
from ba_tui.core.messages import Message, user
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import Prose, ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.features.plans.engine.plan_mode import NAME, PlanMode
from tests.script import Script, says

PLAN = "# Plan: tidy up\n\n1. Read the notes\n2. Write the report"


class Session:
    """One agent that is planning, and a person who answers as ``replies`` say."""

    def __init__(self, *answers: Message, replies: Sequence[Reply] = (), attended: bool = True) -> None:
        self.mode: Mode = "plan"
        self.refuses: Mode | None = None
        self.events: list[Event] = []
        self.replies = list(replies)
        self.plan_mode = PlanMode(lambda: self.mode, self._set_mode, attended=attended)
        self.turn = Turn(self._listen)
        self.branch = Branch(self.turn, Transcript())

        async def run(args: Any, call: Call) -> ToolResult:
            return await self.plan_mode.present(args["plan"], call)

        self.agent = Agent(Script(*answers), [Tool(NAME, "", {}, run, timeout=None)], "", [self.plan_mode])

    def _set_mode(self, mode: Mode) -> None:
        if mode == self.refuses:
            raise UsageError("Not here.", "")
        self.mode = mode

    def _listen(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Asked) and self.replies:
            asyncio.get_running_loop().call_soon(self.turn.answer, event.ask_id, self.replies.pop(0))

    async def run(self, prompt: str = "plan it") -> Message:
        self.branch.emit(TurnStarted(user(prompt)))
        return await self.agent.run(self.branch)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def asked(self) -> list[Question]:
        return [event.question for event in self.of(Asked)]

    @property
    def result(self) -> ToolResult:
        return self.of(ToolFinished)[-1].result

    @property
    def told(self) -> list[str]:
        """What the model was sent beside its own words and results."""
        return [message.text for message in self.branch.transcript.messages if message.role == "user"]


def presents(plan: str = PLAN) -> Message:
    return says(f"Plan of {len(plan)}", (NAME, {"plan": plan}))


async def test_a_yes_chooses_the_mode_and_the_work_goes_on() -> None:
    for choice, mode in (("once", "default"), ("session", "accept-edits")):
        session = Session(presents(), says("Done."), replies=[Reply(choice)])  # pyright: ignore[reportArgumentType]
        assert (await session.run()).text == "Done."
        assert session.mode == mode
        assert [event.mode for event in session.of(ModeChanged)] == ["plan", mode]
        assert session.asked[0].kind == "plan"
        assert session.asked[0].preview == Prose(PLAN, markdown=True)
        assert f"agreed to the plan. The mode is now {mode}" in session.result.text
        assert [(event.verdict, event.by) for event in session.of(Judged)] == [("allow", "person")]
        # What the result says need not be said again.
        assert not any("Plan mode is off" in text for text in session.told)


async def test_a_no_sends_the_persons_words_back_and_plans_on() -> None:
    session = Session(
        presents(),
        presents(PLAN + "\n3. Check it"),
        says("Done."),
        replies=[Reply("deny", "add a check"), Reply("once")],
    )
    await session.run()
    first = session.of(ToolFinished)[0].result
    assert not first.is_error
    assert "said: add a check" in first.text
    assert len(session.asked) == 2
    assert session.mode == "default"


async def test_a_no_without_words_leaves_the_mode_alone() -> None:
    session = Session(presents(), says("What should change?"), replies=[Reply("deny")])
    await session.run()
    assert session.mode == session.branch.transcript.mode == "plan"
    assert "keep planning" in session.result.text


async def test_a_plan_in_words_is_asked_about_as_well() -> None:
    session = Session(says(PLAN), says("Done."), replies=[Reply("session")])
    assert (await session.run()).text == "Done."
    assert session.mode == "accept-edits"
    assert any("agreed to the plan" in text for text in session.told)


async def test_words_about_a_plan_in_words_reach_the_model() -> None:
    session = Session(says(PLAN), says("Better now."), replies=[Reply("deny", "smaller steps")])
    assert (await session.run()).text == "Better now."
    assert any("said: smaller steps" in text for text in session.told)
    assert len(session.asked) == 1


async def test_an_answer_without_steps_is_no_plan() -> None:
    session = Session(says("It reads the notes and writes a report."))
    await session.run()
    assert session.asked == []


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("what is in this folder?", "The plan of the house:\n\n- a cellar\n- a roof"),
        ("list the files", "- one.py\n- two.py"),
        ("list the files", "I can only read in plan mode.\n\n1. one.py\n2. two.py"),
        ("which steps are left", "These are left:\n\n1. the tests\n2. the docs\n\nSay so if you want a plan."),
    ],
)
async def test_a_list_that_answers_a_question_is_no_plan(prompt: str, answer: str) -> None:
    session = Session(says(answer))
    await session.run(prompt)
    assert session.asked == []


@pytest.mark.parametrize("answer", ["Here is my plan:\n\n- read\n- write", "好的。\n\n## 计划\n\n1. 读\n2. 写"])
async def test_a_plan_may_answer_a_question_for_one(answer: str) -> None:
    session = Session(says(answer), says("Done."), replies=[Reply("once")])
    await session.run("can you plan it?" if "plan" in answer else "搬一下测试")
    assert len(session.asked) == 1


async def test_a_plan_that_was_refused_is_not_asked_about_again_in_words() -> None:
    session = Session(presents(), says(PLAN), replies=[Reply("deny")])
    await session.run()
    assert len(session.asked) == 1


async def test_where_nobody_attends_the_answer_is_the_plan() -> None:
    session = Session(says(PLAN), attended=False)
    assert (await session.run()).text == PLAN
    assert session.asked == []
    assert not session.plan_mode.presents
    assert any("Nobody can be asked" in text for text in session.told)


async def test_an_unanswered_plan_becomes_the_answer() -> None:
    session = Session(presents(), says(PLAN), replies=[Reply("deny", "Nobody is here.", by="nobody")])
    await session.run()
    assert "Give the whole plan as your final answer" in session.result.text
    assert session.mode == "plan"


async def test_outside_plan_mode_nothing_is_presented_or_told() -> None:
    session = Session(presents(), says("Done."))
    session.mode = "default"
    await session.run()
    assert session.result.is_error
    assert session.asked == []
    assert session.told[0] == "plan it"
    assert not any("Plan mode is on" in text for text in session.told)


async def test_the_model_hears_that_the_mode_was_left_meanwhile() -> None:
    session = Session(says("What for?"), says("Done."))
    await session.run()
    session.mode = "auto"
    await session.run()
    assert any("Plan mode is off. The mode is now auto" in text for text in session.told)


async def test_where_edits_cant_be_accepted_the_mode_is_default() -> None:
    session = Session(presents(), says("Done."), replies=[Reply("session")])
    session.refuses = "accept-edits"
    await session.run()
    assert session.mode == "default"
