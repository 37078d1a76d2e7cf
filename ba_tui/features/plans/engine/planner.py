"""Makes plans: asks a model for one, checks it, sends it back once with all that is wrong, and mends the rest.

What it asks the model through is given to it; who carries a plan out is elsewhere.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.messages import Message, Text, ToolOutput, user
from ba_tui.core.teamwork.plans import Plan, Task
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.drafting.checking import complaints, tidied
from ba_tui.features.plans.engine.drafting.mending import mended
from ba_tui.features.plans.engine.drafting.prompts import CUT, PROSE, again, errors, submit_tool, system, wanted
from ba_tui.features.plans.engine.drafting.reading import submitted, written
from ba_tui.features.plans.engine.drafting.values import MOST, QUESTIONED, Means, Written

Ask: TypeAlias = Callable[[str, Sequence[Message], Sequence[Tool]], Awaitable[Message]]
"""Asks a model: the system prompt, the messages, the tools that it may call. Raises ProviderError."""
_NAMED = regex(r"[\"“”`]([^\"“”`\n]{2,80})[\"“”`]|(?<![\w./-])([\w-]+(?:[./][\w-]+)*\.[A-Za-z]\w{0,7})(?![\w/])")
"""What stands in quotes, and names of files."""


class NoPlan(BaError):
    """The model gave no plan that can be used."""

    kind = "no_plan"


@frozen
class PlanDraft:
    """A plan that can be carried out, and what the person should know of it, a sentence each.

    ``question``: the request can be understood in several ways; ``plan`` is for the likeliest. Whoever can ask does so
    once, and has the plan made again with the answer as context.
    """

    plan: Plan
    notes: tuple[str, ...] = ()
    question: str = ""


class Planner:
    """``roles``: who may do a step, by name, with what each is for; without any, an agent of the usual type does it."""

    def __init__(self, ask: Ask, roles: Mapping[str, str] | None = None) -> None:
        self._ask = ask
        self._roles = roles or {}

    async def create_plan(
        self, goal: str, tools: Sequence[Tool], context: str = "", *, may_ask: bool = True
    ) -> PlanDraft:
        """Make a plan for ``goal``, in the person's own words. ``context``: facts that every step is told.

        ``may_ask``: whether somebody can answer a question; without it the plan's task says what was assumed.

        Raises:
            NoPlan: the model answers no plan twice, or one with too many steps. ProviderError: it can't be asked.
        """
        means = Means({tool.name: tool for tool in tools}, self._roles)
        found = await self._drafted(wanted(goal, context, means), means, may_ask=may_ask)
        task = Task(uuid.uuid4().hex, goal, found.goal or goal, context, found.assumptions)
        return _draft(Plan(uuid.uuid4().hex, task), found, means)

    async def replan(self, plan: Plan, reason: str, tools: Sequence[Tool]) -> PlanDraft:
        """Make what is not completed of ``plan`` anew, because of ``reason``. Completed steps stay as they are.

        Raises as ``create_plan`` does.
        """
        done = tuple(step for step in plan.subtasks if step.status == "completed")
        means = Means({tool.name: tool for tool in tools}, self._roles, tuple(step.id for step in done))
        found = await self._drafted(again(plan, reason, means), means, may_ask=False)
        assumptions = tuple(dict.fromkeys([*plan.task.assumptions, *found.assumptions]))
        task = replace(plan.task, assumptions=assumptions)
        return _draft(replace(plan, task=task, subtasks=done, replans=plan.replans + 1), found, means)

    async def _drafted(self, prompt: str, means: Means, *, may_ask: bool) -> Written:
        """A tidied plan without faults, or what the model gave when it was sent back once."""
        told, tools = system(may_ask=may_ask), (submit_tool(may_ask=may_ask),)
        messages: list[Message] = [user(prompt)]
        sent_back = prose = False
        while True:
            reply = await self._ask(told, tuple(messages), tools)
            plan = submitted(reply)
            if plan is None:
                if prose:
                    message = "The model answered no plan, twice."
                    raise NoPlan(
                        message, "Choose a larger model (/model reasoning PROVIDER/MODEL), or ask without a plan."
                    )
                prose = True
                messages += _answered(reply, CUT if reply.stop == "max_tokens" else PROSE)
                continue
            found = tidied(written(plan), means)
            if not may_ask:
                found = replace(found, question="")
            wrong = complaints(found, means)
            if wrong and not sent_back:
                sent_back = True
                messages += _answered(reply, errors(wrong))
                continue
            if found.size > MOST:
                message = f"The plan has {found.size:,} steps; at most {MOST} are allowed."
                raise NoPlan(message, "Ask for a part of it, or describe the goal more broadly.")
            return replace(found, wrong=tuple(wrong))


def _answered(reply: Message, text: str) -> tuple[Message, Message]:
    """``reply`` and what it is told: in the result of its call, if it made one."""
    if not reply.calls:
        said = reply if reply.blocks else replace(reply, blocks=(Text("(no answer)"),))
        return said, user(text)
    return reply, Message(
        "user", tuple(ToolOutput(call.id, text, is_error=True) for call in reply.calls), origin="tool"
    )


def _draft(plan: Plan, found: Written, means: Means) -> PlanDraft:
    """``plan`` with the steps of ``found`` behind those that it has. Raises NoPlan when there is no step."""
    steps, notes = mended(found.subtasks, means, sound=not found.wrong)
    if not steps and not found.question:
        raise NoPlan("The model gave a plan without a step.", "Say more exactly what is to be done.")
    made = replace(plan, subtasks=(*plan.subtasks, *steps))
    if len(steps) > QUESTIONED:
        notes.append(f"The plan has {count(len(steps), 'step')}. More than {QUESTIONED} are hard to follow.")
    notes += _uncovered(made, found) if steps else ()
    return PlanDraft(made, tuple(notes), found.question)


def _uncovered(plan: Plan, found: Written) -> list[str]:
    """Wishes of the request that no step does, and names in it that the plan does not have."""
    ids = {step.id for step in plan.subtasks}
    known = {*ids, *(step.id for step in found.subtasks)}
    notes = [f"No step does this: {wanted}." for wanted, by in found.covers if wanted and not known.intersection(by)]
    texts = [f"{step.description} {step.expected_output} {step.tool_args}" for step in plan.subtasks]
    said = " ".join([*texts, *plan.task.assumptions]).casefold()
    named = dict.fromkeys(quoted or file for quoted, file in _NAMED.findall(plan.task.original_query))
    missing = [name for name in named if name.casefold() not in said]
    return [*notes, *(f"The request names {name}, and no step does." for name in missing[:3])]
