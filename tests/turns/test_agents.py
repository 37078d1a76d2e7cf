"""Agents below agents: whatever becomes of a child is a value for its parent, and the journal replays all of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.agent import Agent, BudgetLimit, ChildResult, CutAnswers, Interceptor, StepLimit, run_child
from ba_tui.core.effects import READ_ONLY, UNLIMITED, AgentCeiling, Effect
from ba_tui.core.errors import ConnectionLost, StopTurn
from ba_tui.core.events import TRANSIENT, Answered, Asked, Event, MessageDone, TurnEnded, TurnStarted
from ba_tui.core.ledger import Ledger
from ba_tui.core.messages import ToolOutput, Usage
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.questions import Question
from ba_tui.core.results import ToolResult
from ba_tui.core.teamwork import Budget
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.observe.metrics import CallMetrics
from tests.script import Memory, Script, collect, conversation, kinds, says
from tests.turns.test_loop import echo, paired, tool

LOOP: tuple[Interceptor, ...] = (StepLimit(20), CutAnswers())


def agent(*steps: Any, tools: Sequence[Tool] = (), more: Sequence[Interceptor] = (), **fields: Any) -> Agent:
    return Agent(Script(*steps), tools, "You are a child.", (*LOOP, *more), **fields)


class Parent:
    """A conversation whose ``delegate`` tool starts children, and what became of them."""

    def __init__(self, *children: tuple[str, Agent], deadline: float | None = None) -> None:
        self.children = dict(children)
        self.deadline = deadline
        self.results: list[ChildResult] = []

    async def run(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        name = args["name"]
        agent = self.children[name]
        branch = call.branch.fork(name, agent.ceiling)
        child = await run_child(agent, branch, "Look into it.", deadline=self.deadline)
        self.results.append(child)
        return ToolResult(f"{child.agent_id}: {child.status}: {child.message.text}")

    @property
    def tool(self) -> Tool:
        return tool("delegate", self.run)


def delegating(*names: str) -> Any:
    return says("", *(("delegate", {"name": name}) for name in names))


async def wait(args: Mapping[str, Any], call: Call) -> ToolResult:
    await asyncio.Event().wait()
    return ToolResult("never")


async def fails(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
    raise ZeroDivisionError("a bug")
    yield says("")


async def test_a_child_answers_its_parent_and_its_events_carry_its_name():
    child = agent(says("", ("echo", {"x": 1})), says("Found it."), tools=(tool("echo", echo),))
    parent, journal = Parent(("explore", child)), Memory()
    talk = conversation(Script(delegating("explore"), says("Done.")), parent.tool, journal=journal)
    events = await collect(talk.say("go"))
    (result,) = parent.results
    assert (result.agent_id, result.status, result.message.text) == ("main/explore-1", "done", "Found it.")
    assert result.usage == Usage(200, 20)
    assert kinds([event for event in events if event.agent == "main/explore-1"]) == [
        *("turn_started", "message_done", "tool_started", "tool_finished", "message_done", "turn_ended")
    ]
    assert events[-1].agent == "main"
    assert not any("Found it." in message.text for message in talk.transcript.messages if message.role == "assistant")
    assert_replayed(journal, talk.transcript)


@pytest.mark.parametrize(
    ("step", "status", "kind"),
    [
        (ConnectionLost("The line is cut."), "error", "connection_lost"),
        (StopTurn("That is enough."), "limit", "stopped"),
        (fails, "error", "internal_error"),
    ],
)
async def test_what_goes_wrong_in_a_child_is_a_result_for_its_parent(step: Any, status: str, kind: str):
    parent = Parent(("explore", agent(step)))
    events = await collect(conversation(Script(delegating("explore"), says("Done.")), parent.tool).say("go"))
    (result,) = parent.results
    assert (result.status, result.error and result.error.kind) == (status, kind)
    assert events[-1].type == "turn_ended"
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done"


async def test_a_child_that_takes_too_long_is_ended_with_what_it_said():
    child = agent(says("I begin.", ("wait", {})), tools=(tool("wait", wait),))
    parent = Parent(("explore", child), deadline=0.01)
    events = await collect(conversation(Script(delegating("explore"), says("Done.")), parent.tool).say("go"))
    (result,) = parent.results
    assert (result.status, result.error and result.error.kind) == ("limit", "deadline")
    assert result.message.text == "I begin."
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done"


@pytest.mark.parametrize("who", ["main/explore-1", "main"])
async def test_a_cancelled_child_leaves_the_parent_and_a_cancelled_parent_no_child(who: str):
    below = agent(says("Deeper.", ("wait", {})), tools=(tool("wait", wait),))
    inner = Parent(("deep", below))
    parent = Parent(("explore", agent(delegating("deep"), tools=(inner.tool,))))
    talk = conversation(Script(delegating("explore"), says("Done.")), parent.tool)
    turn = talk.say("go")

    def stop(event: Event) -> None:
        if event.type == "tool_started" and event.agent == "main/explore-1/deep-1":
            turn.cancel(who)

    before = asyncio.all_tasks()
    events = await collect(turn, stop)
    ended = {event.agent: event.reason for event in events if isinstance(event, TurnEnded)}
    assert ended["main/explore-1/deep-1"] == ended["main/explore-1"] == "cancelled"
    assert ended["main"] == ("cancelled" if who == "main" else "done")
    await turn.wait()
    assert asyncio.all_tasks() <= before | {asyncio.current_task()}
    assert [result.status for result in parent.results] == ([] if who == "main" else ["cancelled"])


async def test_children_get_names_that_none_had_before_also_in_a_session_that_goes_on():
    journal = Memory()
    for _ in range(2):
        parent = Parent(("explore", agent(says("One."), says("Two."))))
        script = Script(delegating("explore"), delegating("explore"), says("Done."))
        await collect(conversation(script, parent.tool, journal=journal).say("go"))
    started = [event.agent for event in journal.read() if isinstance(event, TurnStarted) and event.agent != "main"]
    assert started == [f"main/explore-{number}" for number in (1, 2, 3, 4)]


async def test_a_question_of_a_child_is_withdrawn_when_the_child_ends():
    async def ask(args: Mapping[str, Any], call: Call) -> ToolResult:
        await call.ask(Question("choice", "Which one?"))
        return ToolResult("never")

    child = agent(says("", ("ask", {})), tools=(tool("ask", ask),))
    parent = Parent(("explore", child), deadline=0.01)
    events = await collect(conversation(Script(delegating("explore"), says("Done.")), parent.tool).say("go"))
    asked, answered = (next(event for event in events if isinstance(event, kind)) for kind in (Asked, Answered))
    assert isinstance(asked, Asked)
    assert isinstance(answered, Answered)
    assert (asked.agent, answered.ask_id, answered.reply.choice) == ("main/explore-1", asked.ask_id, "deny")


async def test_a_budget_counts_the_children_and_ends_only_whom_it_is_for():
    inner = Parent(("deep", agent(*[says("x", ("echo", {}))] * 3, says("Deep."), tools=(tool("echo", echo),))))
    limited = agent(delegating("deep"), says("More."), tools=(inner.tool,), more=(BudgetLimit(Budget(tokens=300)),))
    parent = Parent(("explore", limited))
    events = await collect(conversation(Script(delegating("explore"), says("Done.")), parent.tool).say("go"))
    (result,) = parent.results
    assert result.status == "limit"
    assert result.error
    assert "300 tokens for main/explore-1: 550" in result.error.message
    ledger, metrics = Ledger(), CallMetrics()
    for event in events:
        ledger.apply(event)
        metrics.apply(event)
    assert ledger.session.usage == Usage(700, 70), "children are paid for by the session"
    assert ledger.filled == 110, "and do not fill the window of the main agent"
    assert metrics.endings == {"done": 1}
    assert metrics.tools["echo"].calls == 3


async def test_state_belongs_to_one_agent_and_one_turn():
    talk = conversation(Script(says("x")))
    branches: list[Branch] = []

    async def work(branch: Branch) -> None:
        branches.append(branch)

    for _ in range(2):
        await collect(talk.beside(work))
    first, second = branches
    child = first.fork("explore")
    assert first.state(list) is first.state(list)
    assert len({id(branch.state(list)) for branch in (first, second, child)}) == 3


CEILINGS = st.builds(
    AgentCeiling,
    st.frozensets(st.sampled_from(Effect)),
    st.none() | st.frozensets(st.sampled_from(["read_file", "shell", "edit_file"])),
    st.booleans(),
)


@given(CEILINGS, CEILINGS)
def test_a_child_has_the_ceiling_that_both_allow(parent: AgentCeiling, child: AgentCeiling) -> None:
    both = child.within(parent)
    assert both == both.within(parent).within(child) == parent.within(child)
    assert parent.within(UNLIMITED) == parent
    assert both.effects <= parent.effects
    assert READ_ONLY.within(both).effects <= {Effect.READ}


# A random tree of agents: each has a few steps, some of which start others, and each may fail or be cancelled.

STEPS = st.sampled_from(
    ["say", "read", "write", "crash", "stop", "lost", "malformed", "stuck", "cancel", "cancel main"]
)
TREES = st.recursive(
    st.lists(STEPS, max_size=4), lambda inner: st.lists(STEPS | st.lists(inner, min_size=1, max_size=3), max_size=4)
)


class Grown:
    """An agent of a random tree. ``cancel`` is told the name of the agent to cancel."""

    def __init__(self, plan: Sequence[Any], cancel: Any) -> None:
        self.cancel = cancel
        self.below: list[Grown] = []
        self.steps: list[Any] = []
        for number, step in enumerate(plan):
            self.steps.append(self._step(number, step))
        tools = (
            *(tool(name, getattr(self, name)) for name in ("read", "crash", "stop", "delegate", "abort")),
            tool("write", self.read, Effect.WRITE),
        )
        self.tools = tools

    def agent(self) -> Agent:
        return Agent(Script(*self.steps, says("End.")), self.tools, "", LOOP)

    def _step(self, number: int, step: Any) -> Any:
        if isinstance(step, list):
            plans: Sequence[Any] = step
            made = [Grown(plan if isinstance(plan, list) else [plan], self.cancel) for plan in plans]
            self.below += made
            first = len(self.below) - len(made)
            return says(f"{number}", *(("delegate", {"which": first + index}) for index in range(len(made))))
        match step:
            case "say":
                return says(f"said {number}", stop="max_tokens")
            case "lost":
                return ConnectionLost("lost")
            case "malformed":
                return says(f"{number}", ("nothing", {}), ("read", {}))
            case "stuck" | "cancel" | "cancel main":
                return says(f"{number}", ("read", {}), ("abort", {"what": step}))
            case name:
                return says(f"{number}", (name, {}), ("read", {}))

    async def read(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        await asyncio.sleep(0)
        call.report("reading\n")
        return ToolResult("read")

    async def crash(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        raise ZeroDivisionError

    async def stop(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        raise StopTurn("enough")

    async def abort(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        if args["what"] != "stuck":
            self.cancel("main" if args["what"] == "cancel main" else call.branch.name)
        elif call.branch.name == "main":
            self.cancel("main")
        await asyncio.Event().wait()
        return ToolResult("never")

    async def delegate(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        agent = self.below[args["which"]].agent()
        child = await run_child(agent, call.branch.fork("child", agent.ceiling), "go", deadline=0.05)
        assert child.status in {"done", "limit", "cancelled", "error"}
        return ToolResult(child.message.text)


@given(TREES)
def test_any_tree_of_agents_pairs_its_calls_leaves_no_task_and_replays_as_it_ran(plan: list[Any]) -> None:
    async def play() -> None:
        journal, live = Memory(), dict[str, Transcript]()
        root = Grown(plan, lambda name: turn.cancel(name))
        talk = conversation(Script(*root.steps, says("End.")), *root.tools, journal=journal)
        turn = talk.say("go")
        before = asyncio.all_tasks()
        events = await collect(turn)
        await turn.wait()
        for event in events:
            live.setdefault(event.agent, Transcript(event.agent)).apply(event)
        assert asyncio.all_tasks() <= before, "no task is alive"
        assert_replayed(journal, talk.transcript)
        for name, transcript in live.items():
            assert paired(transcript.messages), name
            begun = [event for event in events if event.agent == name and isinstance(event, TurnStarted | TurnEnded)]
            assert [event.type for event in begun] == ["turn_started", "turn_ended"], name
            assert Transcript(name, journal.read()).messages == transcript.messages
        paid = sum(event.message.usage is not None for event in events if isinstance(event, MessageDone))
        ledger = Ledger()
        for event in events:
            ledger.apply(event)
        assert ledger.session.requests == paid

    asyncio.run(play())


def assert_replayed(journal: Memory, live: Transcript) -> None:
    """The journal gives the same transcript as the turn that wrote it."""
    replayed = Transcript(events=journal.read())
    assert replayed.messages == live.messages
    assert (replayed.todos, replayed.skills, replayed.cwd) == (live.todos, live.skills, live.cwd)
    assert not any(isinstance(event, TRANSIENT) for event in journal.read())
    outputs = [block for message in live.messages for block in message.blocks if isinstance(block, ToolOutput)]
    assert len({output.tool_use_id for output in outputs}) == len(outputs)
