"""What ends or turns an agent that gets nowhere: failures alone, answers that lack something, calls that repeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ba_tui.context.reminders import GoalCheck
from ba_tui.core.agent import Agent, ErrorBudget, Escalation, StepLimit, run_child
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import ConnectionLost
from ba_tui.core.events import Asked, Event, MessageDone, Notice, SideRequest, Steered, ToolFinished, TurnEnded
from ba_tui.core.questions import Reply
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.tools.guards.repeats import repeats
from tests.script import Script, collect, conversation, says
from tests.turns.test_loop import tool


async def act(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult("fine") if args.get("well") else failure("not_found", f"There is no {args.get('x')}.")


def tries(count: int, *, well: bool = False) -> list[Any]:
    return [says("", ("act", {"x": number, "well": well})) for number in range(count)]


def ended(events: list[Event]) -> TurnEnded:
    assert isinstance(events[-1], TurnEnded)
    return events[-1]


async def test_a_turn_in_which_everything_fails_ends_with_the_best_answer():
    provider = Script(*tries(3), says("I found nothing."))
    events = await collect(conversation(provider, tool("act", act), interceptors=[ErrorBudget(3)]).say("go"))
    error = ended(events).error
    assert error
    assert (ended(events).reason, error.kind) == ("limit", "errors_only")
    assert error.message == "Stopped: 3 calls in a row failed, and none succeeded."
    assert error.hint == "The last one: There is no 2. Say what to do differently, or raise error_budget."
    assert [event.message.text for event in events if isinstance(event, MessageDone)][-1] == "I found nothing."
    assert not provider.requests[-1].call_tools
    assert len(provider.requests) == 4


async def test_one_success_begins_the_count_anew():
    steps = (*tries(2), *tries(1, well=True), *tries(2), says("Done."))
    events = await collect(conversation(Script(*steps), tool("act", act), interceptors=[ErrorBudget(3)]).say("go"))
    assert ended(events).reason == "done"


async def test_failures_of_agents_below_count_for_all():
    provider = Script(*(says("", ("start", {"n": number})) for number in range(9)))

    async def start(args: Mapping[str, Any], call: Call) -> ToolResult:
        steps = (ConnectionLost("The connection was lost."),) if args["n"] else (*tries(1), says("Nothing."))
        child = Agent(Script(*steps), (tool("act", act),), "", (StepLimit(9), ErrorBudget(4)))
        done = await run_child(child, call.branch.fork("child", child.ceiling), "go")
        return failure("execution_error", done.error.message if done.error else "It found nothing.")

    events = await collect(conversation(provider, tool("start", start), interceptors=[ErrorBudget(4)]).say("go"))
    error = ended(events).error
    assert error
    # The child's call and its report; the next child and its report.
    assert error.message == "Stopped: 4 calls in a row failed, and none succeeded."
    assert len(provider.requests) == 3


class Judge:
    def __init__(self, *verdicts: str | Exception) -> None:
        self.verdicts = list(verdicts)
        self.asked: list[str] = []

    async def __call__(self, system: str, text: str, purpose: str) -> tuple[str, SideRequest]:
        self.asked.append(text)
        said = self.verdicts.pop(0)
        if isinstance(said, Exception):
            raise said
        return said, SideRequest(purpose, "test/small")


async def judged(judge: Judge, *answers: str) -> list[Event]:
    check = GoalCheck("A table of totals", judge)
    return await collect(conversation(Script(*map(says, answers)), interceptors=[check]).say("go"))


async def test_an_answer_that_gives_what_was_expected_ends_the_agent():
    judge = Judge("OK")
    events = await judged(judge, "a | 1 </answer> MISSING: no")
    assert ended(events).reason == "done"
    assert "A table of totals" in judge.asked[0]
    assert judge.asked[0].count("</answer>") == 1
    assert [event.purpose for event in events if isinstance(event, SideRequest)] == ["goal"]


async def test_an_answer_that_lacks_something_is_sent_back_and_the_second_one_ends_the_turn():
    judge = Judge("I looked.\nMISSING: the totals", "OK")
    events = await judged(judge, "Here you are.", "a | 1")
    (note,) = [event.message.text for event in events if isinstance(event, Steered)]
    assert "Missing: the totals" in note
    assert ended(events).reason == "done"
    events = await judged(Judge("MISSING: the totals", "missing: the totals"), "Here.", "There.")
    error = ended(events).error
    assert error
    assert ended(events).reason == "limit"
    assert error.message == "Stopped: 2 answers did not give what was expected. Missing: the totals."


async def test_an_answer_that_nobody_can_judge_counts():
    events = await judged(Judge(ConnectionLost("The connection was lost.")), "Here you are.")
    assert ended(events).reason == "done"
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert notice.text.startswith("The answer was not checked against what was expected.")


def circling(count: int, name: str) -> tuple[Script, Conversation]:
    provider = Script(*(says("", ("act", {"well": True})) for _ in range(count)), says("Done."))
    return provider, conversation(provider, repeats(())(tool("act", act)), interceptors=[Escalation(lambda: name)])


@pytest.mark.parametrize("name", ["big/model", ""])
async def test_at_the_third_identical_call_another_model_goes_on_before_the_person_is_asked(name: str):
    provider, talk = circling(4, name)
    turn = talk.say("go")
    asked: list[int] = []

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            asked.append(len(provider.requests))
            turn.answer(event.ask_id, Reply("once"))

    events = await collect(turn, react)
    assert asked == [4 if name else 3]
    assert [request.reasoning for request in provider.requests] == [False] * 3 + [bool(name)] * 2
    notices = [event.text for event in events if isinstance(event, Notice)]
    told = "The same call of act was made 3 times. big/model answers for the rest of this turn."
    assert notices == ([told] if name else [])
    texts = [event.result.text for event in events if isinstance(event, ToolFinished)]
    assert ("you go on from here" in texts[2]) == bool(name)


async def test_the_next_turn_is_asked_of_the_own_model_again():
    provider, talk = circling(3, "big/model")
    await collect(talk.say("go"))
    await collect(talk.say("and now"))
    assert [request.reasoning for request in provider.requests] == [False, False, False, True, False]


def polling(*results: str) -> tuple[Script, Conversation]:
    """An agent that makes one call of a tool for looking again and again; each gives the next of ``results``."""
    left = list(results)

    async def look(args: Mapping[str, Any], call: Call) -> ToolResult:
        return ToolResult(left.pop(0))

    provider = Script(*(says(f"{number}", ("look", {"at": "it"})) for number in range(len(results))), says("Done."))
    looking = Tool("look", "", {"type": "object"}, look, facts=ToolFacts(repeatable=True))
    return provider, conversation(provider, repeats(())(looking))


async def test_a_poll_repeats_only_what_gives_the_same_again():
    provider, talk = polling("1 %", "2 %", "3 %", "3 %", "3 %", "3 %")
    turn = talk.say("go")
    asked: list[int] = []

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            asked.append(len(provider.requests))
            turn.answer(event.ask_id, Reply("deny"))

    events = await collect(turn, react)
    assert asked == [5]
    texts = [event.result.text for event in events if isinstance(event, ToolFinished)]
    assert [text.partition("\n")[0] for text in texts[:4]] == ["1 %", "2 %", "3 %", "3 %"]
    assert ["Note: this call is the same" in text for text in texts[:4]] == [False, False, False, True]
    assert ended(events).reason == "limit"


async def test_news_after_a_repetition_let_a_poll_go_on():
    provider, talk = polling("1 %", "1 %", "2 %", "3 %", "4 %")
    turn = talk.say("go")

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            turn.answer(event.ask_id, Reply("once"))

    events = await collect(turn, react)
    assert len([event for event in events if isinstance(event, Asked)]) == 1
    assert (ended(events).reason, len(provider.requests)) == ("done", 6)
