"""Sub-agents by the tool: what they are told, what comes back, what is refused, and what goes on later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.effects import READ_ONLY, Effect
from ba_tui.core.errors import ConnectionLost, UsageError
from ba_tui.core.events import AgentStarted, Asked, Event, Notice, Rewound, ToolFinished, TurnEnded, TurnStarted
from ba_tui.core.ports.agents import Order
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.teamwork import AgentSpec, Budget
from ba_tui.core.tool import Call
from ba_tui.core.turn import Branch
from ba_tui.tools.visible import task_tool
from tests.delegating.house import AgentHouse, delegates, plain
from tests.script import collect, says

EXPLORE = {"description": "look", "agent_type": "explore", "prompt": "Look."}


@pytest.fixture
def house(tmp_path: Path, ba_home: Path) -> AgentHouse:
    return AgentHouse(tmp_path)


def results(events: Iterable[Event], agent: str = "main") -> list[str]:
    return [each.result.text for each in events if isinstance(each, ToolFinished) and each.agent == agent]


async def never(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
    await asyncio.Event().wait()
    yield says("")


async def test_an_agent_works_on_its_own_prompt_and_its_report_names_it(house: AgentHouse) -> None:
    house.main.steps = [delegates(("explore", "Find the parser.")), says("Done.")]
    house.plays(explore=[[says("It is in core/parse.py:3.")]])
    events = await collect(house.talk.say("Use an agent."))
    assert results(events) == ["It is in core/parse.py:3.\n\nagent_id: main/explore-1"]
    (finished,) = [each for each in events if isinstance(each, ToolFinished)]
    assert finished.result.meta == {"agent_id": "main/explore-1", "status": "done"}
    started = next(each for each in events if isinstance(each, AgentStarted))
    assert (started.agent, started.kind, started.call_id, started.model) == (
        *("main/explore-1", "explore", finished.call_id, "test/main"),
    )
    own = [each for each in events if each.agent == "main/explore-1" and each.type != "activity_changed"]
    assert [each.type for each in own] == ["agent_started", "turn_started", "message_done", "turn_ended"]
    assert [message.text for message in house.providers[0].requests[0].messages] == ["Find the parser."]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({**EXPLORE, "agent_type": "exploer"}, "There is no agent 'exploer': did you mean 'explore'?"),
        ({**EXPLORE, "agent_type": "broken"}, "The agent broken can't be used: line 1: the front matter is not closed"),
        ({**EXPLORE, "resume": "main/explore-7"}, "There is no agent 'main/explore-7' to resume."),
    ],
)
async def test_what_can_not_be_started_says_why(house: AgentHouse, args: dict[str, Any], words: str) -> None:
    house.describe("broken", "---\nname: broken\n")
    house.main.steps = [delegates(args), says("Done.")]
    (told,) = results(await collect(house.talk.say("go")))
    assert words in told
    assert house.made == []


async def test_tools_that_an_agent_asks_for_and_that_are_not_here_are_said_once(house: AgentHouse) -> None:
    house.describe("odd", "---\nname: odd\ndescription: Odd.\ntools: Read, Hammer\n---\nYou are odd.\n")
    house.main.steps = [delegates(("odd", "Go.")), delegates(("odd", "Go."), text="again"), says("Done.")]
    events = await collect(house.talk.say("go"))
    notices = [each.text for each in events if isinstance(each, Notice)]
    assert notices == ["Agent odd: tools Hammer: there are none of that name here."]


async def test_an_agent_goes_on_with_all_that_it_knows_also_in_a_later_run(tmp_path: Path, ba_home: Path) -> None:
    first = AgentHouse(tmp_path)
    first.main.steps = [delegates(("explore", "Find the parser.")), says("Done.")]
    first.plays(explore=[[says("", ("read_file", {})), says("It is in parse.py.")]])
    await collect(first.talk.say("go"))
    second = AgentHouse(tmp_path, first.journal)
    second.main.steps = [delegates({**EXPLORE, "prompt": "And the lexer?", "resume": "main/explore-1"}), says("End.")]
    second.plays(explore=[[says("In lex.py.")]])
    events = await collect(second.talk.say("go on"))
    (told,) = results(events)
    assert told == "In lex.py.\n\nagent_id: main/explore-1"
    sent = [message.text for message in second.providers[0].requests[0].messages if message.text]
    assert sent == ["Find the parser.", "It is in parse.py.", "And the lexer?"]
    (started,) = [each for each in events if isinstance(each, AgentStarted)]
    assert started.resumed


async def test_an_agent_that_was_killed_goes_on_behind_its_open_call(tmp_path: Path, ba_home: Path) -> None:
    first = AgentHouse(tmp_path)
    first.main.steps = [delegates(("explore", "Find it."))]
    first.plays(explore=[[says("I look.", ("read_file", {})), never]])
    turn = first.talk.say("go")
    async for event in turn:
        if isinstance(event, ToolFinished) and event.agent == "main/explore-1":
            break
    # The journal as a process leaves it that is killed here.
    lines = list(first.journal.lines)
    turn.cancel()
    await turn.wait()
    second = AgentHouse(tmp_path)
    second.journal.lines = lines
    second.main.steps = [delegates({**EXPLORE, "prompt": "Go on.", "resume": "explore-1"}), says("End.")]
    second.plays(explore=[[says("Found.")]])
    assert results(await collect(second.talk.say("resume it"))) == ["Found.\n\nagent_id: main/explore-1"]
    await first.talk.close()


async def test_an_agent_of_a_turn_that_was_taken_back_does_not_go_on(house: AgentHouse) -> None:
    house.main.steps = [
        delegates(("explore", "Find it.")),
        says("Done."),
        delegates({**EXPLORE, "resume": "explore-1"}),
    ]
    await collect(house.talk.say("go"))
    house.journal.append(Rewound(turns=0))
    (told,) = results(await collect(house.talk.say("resume")))
    assert "main/explore-1 can't be resumed: the turn that started it was taken back with /rewind." in told
    house.journal.append(Rewound(turns=1))
    house.main.steps = [delegates({**EXPLORE, "resume": "explore-1"}), says("Done.")]
    (told,) = results(await collect(house.talk.say("the rewind was undone")))
    assert told.endswith("agent_id: main/explore-1")


async def test_who_fails_at_once_is_not_started_a_third_time(house: AgentHouse) -> None:
    lost = ConnectionLost("The line is cut.")
    house.plays(explore=[[lost], [lost], [says("Never asked.")]])
    house.main.steps = [*(delegates(("explore", "Go."), text=str(number)) for number in range(3)), says("Done.")]
    told = results(await collect(house.talk.say("go")))
    assert ["The line is cut." in text for text in told] == [True] * 3
    assert "explore is not started again: it failed at once 2 times." in told[2]
    assert len(house.made) == 2


@pytest.mark.parametrize(
    ("depth", "words"), [(1, "Agents may be nested 1 deep"), (3, "general is at work above this agent")]
)
async def test_agents_are_nested_to_a_depth_and_never_below_themselves(
    tmp_path: Path, ba_home: Path, depth: int, words: str
) -> None:
    house = AgentHouse(tmp_path, depth=depth)
    house.main.steps = [delegates(("general", "Do it.")), says("Done.")]
    house.plays(general=[[delegates(("general", "You do it.")), says("I did it.")]])
    events = await collect(house.talk.say("go"))
    assert words in results(events, "main/general-1")[0]
    assert results(events)[0].startswith("I did it.")


async def test_an_agent_is_limited_as_its_file_its_order_and_its_parent_say(house: AgentHouse) -> None:
    parents: list[Branch] = []

    async def work(branch: Branch) -> None:
        parents.append(branch)
        branch.ceiling = READ_ONLY
        order = Order("general", "Do it.", max_loops=7, budget=Budget(tokens=99))
        await house.agents.run(order, branch)
        await house.agents.run(Order(AgentSpec("mine", prompt="Mine.", model="x/y"), "Do it."), branch)

    await collect(house.talk.beside(work))
    (general, model), (mine, other) = house.made
    assert (general.max_loops, general.budget, model) == (7, Budget(tokens=99), "test/main")
    assert general.ceiling.effects == mine.ceiling.effects == {Effect.READ}
    assert (mine.name, other) == ("mine", "x/y")


async def test_in_plan_mode_agents_only_read(house: AgentHouse) -> None:
    house.reading = True
    house.main.steps = [delegates(("general", "Do it.")), says("Done.")]
    await collect(house.talk.say("go"))
    assert house.made[0][0].ceiling.effects == {Effect.READ}


async def test_agents_that_read_run_side_by_side_and_those_that_write_one_after_the_other(house: AgentHouse) -> None:
    house.tools["read_file"] = plain("read_file", Effect.READ, meets(2))
    house.main.steps = [delegates(("explore", "A."), ("explore", "B.")), says("Done.")]
    house.plays(explore=[[says("", ("read_file", {})), says("One.")], [says("", ("read_file", {})), says("Two.")]])
    told = results(await collect(house.talk.say("go")))
    assert sorted(text[:4] for text in told) == ["One.", "Two."]
    inside: list[int] = []

    async def write(args: Mapping[str, Any], call: Call) -> ToolResult:
        inside.append(1)
        await asyncio.sleep(0)
        assert len(inside) == 1
        inside.pop()
        return ToolResult("written")

    house.tools["write_file"] = plain("write_file", Effect.WRITE, write)
    house.main.steps = [delegates(("general", "A."), ("general", "B.")), says("Done.")]
    house.plays(general=[[says("", ("write_file", {})), says("One.")], [says("", ("write_file", {})), says("Two.")]])
    assert [text[:4] for text in results(await collect(house.talk.say("go")))] == ["One.", "Two."]


def meets(number: int) -> Any:
    both = asyncio.Barrier(number)

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        async with asyncio.timeout(20):
            await both.wait()
        return ToolResult("met")

    return run


@pytest.mark.parametrize("at_once", [3, 20])
async def test_twenty_agents_share_the_places_there_are(tmp_path: Path, ba_home: Path, at_once: int) -> None:
    house = AgentHouse(tmp_path, at_once=at_once)
    now, most, full = 0, 0, asyncio.Event()

    async def read(args: Mapping[str, Any], call: Call) -> ToolResult:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == at_once:
            full.set()
        await full.wait()
        now -= 1
        return ToolResult("read")

    house.tools["read_file"] = plain("read_file", Effect.READ, read)
    house.plays(explore=[[says("", ("read_file", {})), says("Read.")] for _ in range(20)])
    done: list[str] = []

    async def work(branch: Branch) -> None:
        runs = (house.agents.run(Order("explore", f"Part {number}"), branch) for number in range(20))
        done.extend(result.message.text for result in await asyncio.gather(*runs))

    await collect(house.talk.beside(work))
    assert done == ["Read."] * 20
    assert most == at_once
    assert {each.activity for each in house.agents.running()} == {"finished"}


async def test_one_message_starts_as_many_agents_as_there_are_places(tmp_path: Path, ba_home: Path) -> None:
    house = AgentHouse(tmp_path, at_once=20)
    house.tools["read_file"] = plain("read_file", Effect.READ, meets(20))
    house.plays(explore=[[says("", ("read_file", {})), says("Met.")] for _ in range(20)])
    house.main.steps = [delegates(*[("explore", f"Part {number}") for number in range(20)]), says("Done.")]
    told = results(await collect(house.talk.say("go")))
    assert [text[:4] for text in told] == ["Met."] * 20


async def test_a_chain_of_agents_does_not_wait_for_its_own_place(tmp_path: Path, ba_home: Path) -> None:
    house = AgentHouse(tmp_path, at_once=1)
    house.main.steps = [delegates(("general", "Do it.")), says("Done.")]
    house.plays(general=[[delegates(("explore", "Look.")), says("Looked.")]])
    events = await collect(house.talk.say("go"))
    assert results(events)[0].startswith("Looked.")


async def test_an_agent_that_does_not_end_is_ended_and_a_cancelled_one_says_so(tmp_path: Path, ba_home: Path) -> None:
    house = AgentHouse(tmp_path, deadline=0.05)
    house.main.steps = [delegates(("explore", "Look.")), says("Done.")]
    house.plays(explore=[[never]])
    (told,) = results(await collect(house.talk.say("go")))
    assert told.startswith("It was stopped at a limit: Stopped at the deadline of 0.05 s.")
    assert "agent_id: main/explore-1 (resume goes on with it)" in told


async def test_an_agent_in_the_background_outlives_the_turn_and_reports_at_the_next_request(house: AgentHouse) -> None:
    let = asyncio.Event()

    async def later(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        await let.wait()
        yield says("All is well.")

    house.plays(explore=[[later]])
    house.main.steps = [delegates({**EXPLORE, "background": True}), says("It works."), says("It said: well.")]
    turn = house.talk.say("go")
    events = await collect(turn)
    assert "The agent main/explore-1 works in the background." in results(events)[0]
    assert isinstance(events[-1], TurnEnded)
    assert [each.background for each in house.agents.running()] == [True]
    let.set()
    async with asyncio.timeout(20):
        async for event in turn:
            if isinstance(event, TurnEnded) and event.agent == "main/explore-1":
                break
    await collect(house.talk.say("Well?"))
    assert "\n<agent-report>\nAll is well." in house.main.requests[-1].messages[-1].text
    await collect(house.talk.say("Again?"))
    assert "Its report" not in house.main.requests[-1].messages[-1].text


async def test_where_nobody_attends_a_turn_waits_for_its_background_agents(tmp_path: Path, ba_home: Path) -> None:
    house = AgentHouse(tmp_path, attended=False)
    house.plays(explore=[[says("All is well.")]])
    house.main.steps = [delegates({**EXPLORE, "background": True}), says("Waiting."), says("It is well.")]
    events = await collect(house.talk.say("go"))
    assert "<agent-report>\nAll is well." in house.main.requests[-1].messages[-1].text
    assert [each.reason for each in events if isinstance(each, TurnEnded)] == ["done", "done"]


async def test_a_closed_session_ends_its_background_agents_which_can_go_on_later(house: AgentHouse) -> None:
    house.plays(explore=[[says("I begin.", ("read_file", {})), never]])
    house.main.steps = [delegates({**EXPLORE, "background": True}), says("It works.")]
    await collect(house.talk.say("go"))
    await house.room.close()
    (running,) = house.agents.running()
    assert running.activity == "cancelled"
    assert not house.agents.tell("main/explore-1", "Hurry.")
    later = AgentHouse(house.folder, house.journal)
    later.main.steps = [delegates({**EXPLORE, "resume": "main/explore-1"}), says("Done.")]
    later.plays(explore=[[says("Finished.")]])
    assert results(await collect(later.talk.say("go")))[0].startswith("Finished.")


async def test_a_question_of_an_agent_carries_its_name_and_words_reach_it(house: AgentHouse) -> None:
    async def ask(args: Mapping[str, Any], call: Call) -> ToolResult:
        house.agents.tell("main/general-1", "Hurry.")
        reply = await call.ask(Question("permission", "May I?"))
        return ToolResult(reply.choice)

    house.tools["write_file"] = plain("write_file", Effect.WRITE, ask)
    house.plays(general=[[says("", ("write_file", {})), says("Done.")]])
    house.main.steps = [delegates(("general", "Write.")), says("End.")]
    turn = house.talk.say("go")
    asked: list[str] = []

    def answer(event: Event) -> None:
        if isinstance(event, Asked):
            asked.append(event.agent)
            turn.answer(event.ask_id, Reply("once"))

    await collect(turn, answer)
    assert asked == ["main/general-1"]
    assert house.providers[0].requests[1].messages[-1].text.endswith("Hurry.")


async def test_the_tool_lists_agents_once_the_person_speaks_of_them(house: AgentHouse) -> None:
    house.main.steps += [says("Hello."), says("Yes.")]
    await collect(house.talk.say("What is the capital of France?"))
    assert house.room.needed() == ()
    await collect(house.talk.say("Let two subagents look into it."))
    assert house.room.needed() == ("delegate_task",)
    (found,) = house.room.sources[0].look().tools
    assert "- explore: Finds and explains things" in found.tool.description
    assert house.room.sources[0].look().tools[0] is found


async def test_calls_of_task_mean_delegate_task(house: AgentHouse) -> None:
    task = task_tool(house.tool)
    args = {"description": "look", "prompt": "Look.", "subagent_type": "Explore", "model": "haiku"}
    assert task.target(args) == "explore"
    assert task.reach(args) is Effect.READ
    assert task.reach({**args, "subagent_type": "general-purpose"}) is Effect.WRITE
    told: list[str] = []

    async def work(branch: Branch) -> None:
        apart = await task.run({**args, "isolation": "worktree"}, Call("0", branch))
        assert apart.is_error
        assert "can't work in a copy of the project here" in apart.text
        told.append((await task.run(args, Call("1", branch))).text)

    await collect(house.talk.beside(work))
    assert told == ["Report of explore.\n\nagent_id: main/explore-1"]


async def test_the_effect_of_an_agent_is_the_worst_of_its_tools(house: AgentHouse) -> None:
    house.describe("web", "---\nname: web\ndescription: W.\ntools: Read, WebFetch\n---\nYou read the web.\n")
    assert [house.agents.effect(name) for name in ("explore", "web", "general")] == [
        *(Effect.READ, Effect.NETWORK, Effect.WRITE),
    ]
    with pytest.raises(UsageError):
        house.agents.effect("nobody")
    assert house.tool.reach({**EXPLORE, "agent_type": "web"}) is Effect.READ, "reading the web disturbs nobody"


async def test_names_count_on_over_a_turn_that_was_journaled(house: AgentHouse) -> None:
    house.main.steps = [delegates(("explore", "A.")), says("Done."), delegates(("explore", "B.")), says("Done.")]
    await collect(house.talk.say("go"))
    events = await collect(house.talk.say("go"))
    assert [each.agent for each in events if isinstance(each, TurnStarted)] == ["main", "main/explore-2"]
