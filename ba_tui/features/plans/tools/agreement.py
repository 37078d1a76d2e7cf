"""How a plan is agreed on: the planner writes it, the person is asked once what is unclear, approves or changes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice, PlanChanged
from ba_tui.core.messages import clean_text
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import PlanGraph
from ba_tui.core.teamwork.plans import Plan, PlanState, Task
from ba_tui.core.text.wording import sentence
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.filling import refused
from ba_tui.features.plans.engine.replanning import fresh

CARRY_OUT = "Carry out this plan?"
ROUNDS = 10
"""Times that a person may send a plan back before they have to say it anew."""


class Draft(Protocol):
    """What a planner gives: the plan, what it changed or doubts, and what it has to know first (or empty)."""

    @property
    def plan(self) -> Plan: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def question(self) -> str: ...


class PlanMaker(Protocol):
    """Writes plans. Its methods raise BaError when none can be made."""

    async def create_plan(
        self, goal: str, tools: Sequence[Tool], context: str = "", *, may_ask: bool = True
    ) -> Draft: ...

    async def replan(self, plan: Plan, reason: str, tools: Sequence[Tool]) -> Draft: ...


@frozen
class Agreed:
    """``plan`` as it is to be carried out, or as it stood when nobody agreed to it: its state says which. ``words``:
    what the person said then."""

    plan: Plan
    notes: tuple[str, ...] = ()
    words: str = ""


@frozen
class Talk:
    """Who is asked about a plan, and by which call. ``lets``: whether an answer lets the plan be carried out.
    ``attended``: somebody can be asked; ``dry``: nothing may be carried out without a yes (plan mode)."""

    ask: Callable[[Question], Awaitable[Reply]]
    lets: Callable[[Reply], bool]
    attended: bool
    dry: bool
    call_id: str = ""
    tool: str = ""


class Agreement:
    def __init__(self, planner: PlanMaker, tools: Sequence[Tool], branch: Branch, talk: Talk) -> None:
        self._planner = planner
        self._tools = tools
        self._branch = branch
        self._talk = talk

    async def reach(self, goal: str, context: str, id: str) -> Agreed:
        """Make a plan for ``goal`` and agree on it. Raises BaError when none can be made."""
        empty = Plan(id, Task(id, goal, goal, context))
        self._branch.emit(PlanChanged(empty))
        draft = await self._planner.create_plan(goal, self._tools, context, may_ask=self._talk.attended)
        if draft.question and self._talk.attended:
            question = Question("choice", draft.question, call_id=self._talk.call_id, tool=self._talk.tool)
            answer = await self._talk.ask(question)
            said = clean_text(answer.text).strip() or "The person did not answer; choose what is most likely."
            context = "\n".join(filter(None, (context, f"Asked: {draft.question} Answer: {said}")))
            draft = await self._planner.create_plan(goal, self._tools, context, may_ask=False)
        task = replace(draft.plan.task, id=id, original_query=goal, context=context)
        plan = replace(draft.plan, id=id, task=task, state="proposed", replans=0)
        return await self.approve(plan, draft.notes)

    async def approve(self, plan: Plan, notes: tuple[str, ...] = ()) -> Agreed:
        """Ask about ``plan`` until it is approved or rejected; the person may change it, or say what to change."""
        talk = self._talk
        for _ in range(ROUNDS):
            plan = self._now(plan, "proposed")
            wrong = tuple(map(sentence, refused(plan)))
            if not talk.attended:
                if talk.dry or wrong:
                    return Agreed(plan, (*wrong, *notes))
                for text in notes:
                    self._branch.emit(Notice(sentence(text), "info"))
                return Agreed(self._now(plan, "approved"), notes)
            question = Question(
                "plan", CARRY_OUT, call_id=talk.call_id, tool=talk.tool, preview=PlanGraph(plan, (*wrong, *notes))
            )
            reply = await talk.ask(question)
            words = clean_text(reply.text).strip()
            if reply.edited is not None:
                plan, notes = self._edited(plan, reply)
                wrong = notes or tuple(map(sentence, refused(plan)))
            if reply.choice == "deny" and words and reply.by == "person":
                plan, notes = await self._again(plan, words)
            elif reply.choice == "deny":
                return Agreed(self._now(plan, "rejected", words), notes, words)
            elif not wrong and talk.lets(reply):
                return Agreed(self._now(plan, "approved"), notes)
        return Agreed(self._now(plan, "rejected", f"Sent back {ROUNDS} times."), notes)

    async def _again(self, plan: Plan, words: str) -> tuple[Plan, tuple[str, ...]]:
        """The plan as the person wants it; it is no new plan for a failure, so that is not counted."""
        draft = await self._planner.replan(plan, f"The person wants another plan and said: {words}", self._tools)
        task = replace(draft.plan.task, id=plan.task.id, original_query=plan.task.original_query)
        return replace(draft.plan, id=plan.id, task=task, replans=plan.replans), draft.notes

    def _edited(self, plan: Plan, reply: Reply) -> tuple[Plan, tuple[str, ...]]:
        """The plan as the person changed it. What a step gave can't be edited; nothing is lost when it is no plan."""
        from ba_tui.plotting.plans.plan_json import plan_of  # noqa: PLC0415 - loads pydantic

        try:
            edited = plan_of(reply.edited or {})
        except UsageError as error:
            return plan, (f"Your change could not be read: {error}",)
        done = {step.id: step for step in plan.subtasks if step.status == "completed"}
        steps = tuple(
            done.get(step.id) or (step if step.status == "skipped" else fresh(step)) for step in edited.subtasks
        )
        task = replace(edited.task, id=plan.task.id, original_query=plan.task.original_query)
        return replace(plan, task=task, subtasks=steps), ()

    def _now(self, plan: Plan, state: PlanState, reason: str = "") -> Plan:
        plan = replace(plan, state=state)
        self._branch.emit(PlanChanged(plan, reason))
        return plan
