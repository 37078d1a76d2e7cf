"""Agreement on a plan: the planner writes it, the user answers one question about it, then approves, changes or rejects
it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice, PlanChanged
from ba_tui.core.messages import clean_text
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import PlanGraph
from ba_tui.core.teamwork import Plan, PlanState, PlanTask
from ba_tui.core.text.wording import sentence
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.filling import refused
from ba_tui.features.plans.engine.plan_run import fresh

CARRY_OUT = "Carry out this plan?"
ROUNDS = 10
"""Maximum number of times that the user may send a plan back."""


class ProposedPlan(Protocol):
    """A planner's result: the plan, notes on changes and doubts, and a question that must be answered first, or ""."""

    @property
    def plan(self) -> Plan: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def question(self) -> str: ...


class PlanMaker(Protocol):
    """Writes plans. Its methods raise BaError if none can be made."""

    async def create_plan(
        self, goal: str, tools: Sequence[Tool], context: str = "", *, may_ask: bool = True
    ) -> ProposedPlan: ...

    async def replan(self, plan: Plan, reason: str, tools: Sequence[Tool]) -> ProposedPlan: ...


@frozen
class AgreedPlan:
    """``plan`` as approved, or as it was when it was not approved: its state says which. ``words``: the user's
    comment.
    """

    plan: Plan
    notes: tuple[str, ...] = ()
    words: str = ""


@frozen
class PlanTalk:
    """The branch for questions about a plan, and the call that asks them. ``lets``: whether an answer approves the
    plan. ``attended``: a user can answer; ``dry``: plan mode, so nothing may be executed without approval.
    """

    ask: Callable[[Question], Awaitable[Reply]]
    lets: Callable[[Reply], bool]
    attended: bool
    dry: bool
    call_id: str = ""
    tool: str = ""


class Agreement:
    def __init__(self, planner: PlanMaker, tools: Sequence[Tool], branch: Branch, talk: PlanTalk) -> None:
        self._planner = planner
        self._tools = tools
        self._branch = branch
        self._talk = talk

    async def reach(self, goal: str, context: str, id: str) -> AgreedPlan:
        """Make a plan for ``goal`` and have it approved. Raises BaError if none can be made."""
        empty = Plan(id, PlanTask(id, goal, goal, context))
        self._branch.emit(PlanChanged(empty))
        draft = await self._planner.create_plan(goal, self._tools, context, may_ask=self._talk.attended)
        if draft.question and self._talk.attended:
            question = Question("choice", draft.question, call_id=self._talk.call_id, tool=self._talk.tool)
            answer = await self._talk.ask(question)
            said = clean_text(answer.text).strip() or "The user did not answer; choose what is most likely."
            context = "\n".join(filter(None, (context, f"Asked: {draft.question} Answer: {said}")))
            draft = await self._planner.create_plan(goal, self._tools, context, may_ask=False)
        task = replace(draft.plan.task, id=id, original_query=goal, context=context)
        plan = replace(draft.plan, id=id, task=task, state="proposed", replans=0)
        return await self.approve(plan, draft.notes)

    async def approve(self, plan: Plan, notes: tuple[str, ...] = ()) -> AgreedPlan:
        """Ask about ``plan`` until it is approved or rejected; the user may change it, or describe a change."""
        talk = self._talk
        for _ in range(ROUNDS):
            plan = self._now(plan, "proposed")
            wrong = tuple(map(sentence, refused(plan)))
            if not talk.attended:
                if talk.dry or wrong:
                    return AgreedPlan(plan, (*wrong, *notes))
                for text in notes:
                    self._branch.emit(Notice(sentence(text), "info"))
                return AgreedPlan(self._now(plan, "approved"), notes)
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
                return AgreedPlan(self._now(plan, "rejected", words), notes, words)
            elif not wrong and talk.lets(reply):
                return AgreedPlan(self._now(plan, "approved"), notes)
        return AgreedPlan(self._now(plan, "rejected", f"Sent back {ROUNDS} times."), notes)

    async def _again(self, plan: Plan, words: str) -> tuple[Plan, tuple[str, ...]]:
        """Return the plan that the user asked for. It does not replace a failed one, so it is not counted as a new
        plan.
        """
        draft = await self._planner.replan(plan, f"The user wants another plan and said: {words}", self._tools)
        task = replace(draft.plan.task, id=plan.task.id, original_query=plan.task.original_query)
        return replace(draft.plan, id=plan.id, task=task, replans=plan.replans), draft.notes

    def _edited(self, plan: Plan, reply: Reply) -> tuple[Plan, tuple[str, ...]]:
        """Return the plan as the user edited it. Results of steps can't be edited; an unreadable edit is returned with
        its error.
        """
        from ba_tui.plotting.plan_exports import plan_of  # noqa: PLC0415 - loads pydantic

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
