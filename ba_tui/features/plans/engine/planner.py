"""Makes plans: asks a model for one, checks it, returns it once with all faults, repairs the rest, and asks the user.

The model is asked through a callable; ``plan_run`` executes plans.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Notice, PlanChanged
from ba_tui.core.messages import Message, Text, ToolOutput, clean_text, user
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import PlanGraph, ToolResult
from ba_tui.core.teamwork import Plan, PlanState, PlanTask, SubTask
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import CONTROL, neutralized
from ba_tui.core.text.wording import clipped, count, one_line, sentence
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.drafts import (
    MOST,
    NAME,
    QUESTIONED,
    PlanResources,
    WrittenPlan,
    complaints,
    mended,
    submitted,
    tidied,
    written,
)
from ba_tui.features.plans.engine.filling import refused
from ba_tui.features.plans.engine.plan_mode import PLAN_TOOL, PlanScope
from ba_tui.features.plans.engine.plan_run import fresh

WORKFLOWS = "workflows"
"""The category of tools that are workflows."""
LISTED = 24_000
"""Maximum characters of the list of tools; further tools are listed by name only."""
RESULT = 1_500
"""Maximum characters of a result in the prompt for a new plan."""
_RESULT = "step-result"
_MARKS = CONTROL | {_RESULT}
SYSTEM = f"""You make plans. You carry nothing out. Answer with one call of {NAME} and nothing else.

A plan is a set of steps that wait for each other:
- A step with tool_name is one call of that tool with tool_args. A step without tool_name is work for an agent, which
  reads description and expected_output and has tools of its own.
- dependencies: the ids of the steps whose results a step needs. Steps that do not wait for each other run side by side.
- {{id}} in a text or an argument stands for the result of the step with that id, {{id.key}} for a value in it.
  In a shell command or Python code it must be one plain word, such as a path: let an agent do what needs more.
- expected_output: what the step must give, so that somebody else could tell whether it did.
- critical: true when the plan makes no sense without the step. optional: those of the dependencies that may fail.
- role: who does a step, where one of the roles fits.

Rules:
- Every step does one thing that is worth checking. A plan has at most {QUESTIONED} steps; most need 2 to 8.
- Where a workflow does what several steps would do, use it as one step.
- Respect all that the request asks for and forbids; covers lists each wish with the ids of the steps that do it.
- Name only tools and roles of the lists. Write arguments that fit the tool."""
ASK = """
- When the request can be understood in ways that need different plans, put one short question into question, and plan
  for the likeliest meaning. Say in assumptions what you took for granted."""
DECIDE = """
- Nobody can be asked. Where something is open, decide, and say in assumptions what you took for granted."""
PROSE = f"That is no plan. Answer with one call of {NAME}, or with one JSON object of its form, and no other words."
CUT = f"Your answer was cut at the output limit. Submit a shorter plan with {NAME}."
_TEXTS = {"type": "array", "items": {"type": "string"}}


def system(*, may_ask: bool) -> str:
    return SYSTEM + (ASK if may_ask else DECIDE)


async def _received(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult("The plan was received.")


def submit_tool(*, may_ask: bool) -> Tool:
    """Return the tool whose arguments are a plan. The planner reads them from the call."""
    step: dict[str, Any] = {
        "id": {"type": "string", "description": "Letters, digits, - and _, such as s1 or find-hotel"},
        "description": {"type": "string"},
        "expected_output": {"type": "string"},
        "tool_name": {"type": "string"},
        "tool_args": {"type": "object"},
        "dependencies": _TEXTS,
        "optional": _TEXTS,
        "role": {"type": "string"},
        "critical": {"type": "boolean"},
        "max_loops": {"type": "integer", "description": "Model requests of its agent, 10 without it"},
    }
    cover = {
        "type": "object",
        "properties": {"wanted": {"type": "string"}, "subtasks": _TEXTS},
        "required": ["wanted", "subtasks"],
    }
    plan: dict[str, Any] = {
        "goal": {"type": "string", "description": "What is wanted, in one sentence"},
        "subtasks": {
            "type": "array",
            "items": {"type": "object", "properties": step, "required": ["id", "description"]},
        },
        "covers": {"type": "array", "items": cover},
        "assumptions": _TEXTS,
    }
    if may_ask:
        plan["question"] = {"type": "string"}
    schema = {"type": "object", "properties": plan, "required": ["goal", "subtasks"]}
    return Tool(NAME, "Submit the plan.", schema, _received)


def wanted(goal: str, context: str, means: PlanResources) -> str:
    """Return the part of the prompt with the request."""
    parts = [f"The request, in the user's own words:\n{goal}"]
    if context.strip():
        parts.append(f"What is known:\n{context.strip()}")
    return "\n\n".join([*parts, *_lists(means)])


def again(plan: Plan, reason: str, means: PlanResources) -> str:
    """Return the part of the prompt with the failed plan and its results."""
    task = plan.task
    parts = [f"The request, in the user's own words:\n{task.original_query}"]
    if task.context.strip():
        parts.append(f"What is known:\n{task.context.strip()}")
    if task.assumptions:
        parts.append("Taken for granted:\n" + "\n".join(f"- {each}" for each in task.assumptions))
    parts.append(
        "A plan was carried out in part. Its steps, with what they gave:\n" + "\n".join(map(_state, plan.subtasks))
    )
    parts.append(
        f"The plan must be made anew: {one_line(neutralized(reason, _MARKS), 1_000)}\n"
        "Completed steps stay as they are: do not submit them; new steps may name them in dependencies and as {id}. "
        "Submit every other step that is needed now, in place of all that are not completed. "
        "Go another way than the one that failed."
    )
    return "\n\n".join([*parts, *_lists(means)])


def _state(step: SubTask) -> str:
    head = f"- {step.id} ({step.status}): {one_line(step.description, 300)}"
    said = step.result if step.status == "completed" else step.error
    if not said:
        return head
    # Results are data: they must not be mistaken for ba's own instructions.
    text = neutralized(clipped(said, RESULT), _MARKS)
    return f'{head}\n<{_RESULT} id="{step.id}">\n{text}\n</{_RESULT}>'


def _lists(means: PlanResources) -> list[str]:
    tools = [tool for tool in means.tools.values() if tool.facts.category != WORKFLOWS]
    flows = [tool for tool in means.tools.values() if tool.facts.category == WORKFLOWS]
    parts = [f"Tools:\n{_listed(tools)}"] if tools else ["There are no tools for steps: agents do all of them."]
    if flows:
        parts.append(f"Workflows, which are tools that do several steps:\n{_listed(flows)}")
    if means.roles:
        roles = [f"- {name}: {one_line(what, 200)}" for name, what in means.roles.items()]
        parts.append("Roles:\n" + "\n".join(roles))
    return parts


def _listed(tools: Sequence[Tool]) -> str:
    lines: list[str] = []
    size = 0
    for number, tool in enumerate(tools):
        line = f"- {tool.name}({', '.join(_arguments(tool))}): {one_line(tool.description, 200)}"
        size += len(line)
        if size > LISTED:
            return "\n".join([*lines, f"- and {', '.join(each.name for each in tools[number:])}"])
        lines.append(line)
    return "\n".join(lines)


def _arguments(tool: Tool) -> Iterable[str]:
    properties: Any = tool.input_schema.get("properties", {})
    required: Any = tool.input_schema.get("required", ())
    for name, part in cast("dict[str, Any]", properties).items():
        kind: Any = cast("dict[str, Any]", part).get("type", "any") if isinstance(part, dict) else "any"
        yield f"{name}{'' if name in required else '?'}: {kind if isinstance(kind, str) else '|'.join(map(str, kind))}"


def errors(found: Sequence[str]) -> str:
    listed = "\n".join(f"- {one_line(line, 400)}" for line in found)
    return f"The plan can't be carried out as it is:\n{listed}\nSubmit the whole plan again, with all of this mended."


Ask: TypeAlias = Callable[[str, Sequence[Message], Sequence[Tool]], Awaitable[Message]]
"""Asks a model: the system prompt, the messages, the tools that it may call. Raises ProviderError."""
_NAMED = regex(r"[\"“”`]([^\"“”`\n]{2,80})[\"“”`]|(?<![\w./-])([\w-]+(?:[./][\w-]+)*\.[A-Za-z]\w{0,7})(?![\w/])")
"""Quoted texts, and names of files."""


class NoPlan(BaError):
    """The model gave no usable plan."""

    kind = "no_plan"


@frozen
class PlanDraft:
    """A plan that can be executed, and notes for the user, one sentence each.

    ``question``: the request is ambiguous; ``plan`` is for the likeliest reading. If a user can answer, the question is
    asked once, and the plan is made again with the answer as context.
    """

    plan: Plan
    notes: tuple[str, ...] = ()
    question: str = ""


class Planner:
    """Makes plans with a model. ``roles``: who may do a step, by name with the purpose; without roles a general agent
    does it.
    """

    def __init__(self, ask: Ask, roles: Mapping[str, str] | None = None) -> None:
        self._ask = ask
        self._roles = roles or {}

    async def create_plan(
        self, goal: str, tools: Sequence[Tool], context: str = "", *, may_ask: bool = True
    ) -> PlanDraft:
        """Return a plan for ``goal``, which is the user's own text. ``context``: facts for every step.

        ``may_ask``: a user can answer a question; otherwise the plan's task lists the assumptions.

        Raises:
            NoPlan: the model gave no plan twice, or one with too many steps. ProviderError: it can't be asked.
        """
        means = PlanResources({tool.name: tool for tool in tools}, self._roles)
        found = await self._drafted(wanted(goal, context, means), means, may_ask=may_ask)
        task = PlanTask(uuid.uuid4().hex, goal, found.goal or goal, context, found.assumptions)
        return _draft(Plan(uuid.uuid4().hex, task), found, means)

    async def replan(self, plan: Plan, reason: str, tools: Sequence[Tool]) -> PlanDraft:
        """Replace the unfinished steps of ``plan``, because of ``reason``. Completed steps are kept.

        Raises as ``create_plan`` does.
        """
        done = tuple(step for step in plan.subtasks if step.status == "completed")
        means = PlanResources({tool.name: tool for tool in tools}, self._roles, tuple(step.id for step in done))
        found = await self._drafted(again(plan, reason, means), means, may_ask=False)
        assumptions = tuple(dict.fromkeys([*plan.task.assumptions, *found.assumptions]))
        task = replace(plan.task, assumptions=assumptions)
        return _draft(replace(plan, task=task, subtasks=done, replans=plan.replans + 1), found, means)

    async def _drafted(self, prompt: str, means: PlanResources, *, may_ask: bool) -> WrittenPlan:
        """Return a tidied plan without faults, or the model's second answer after the faults were sent back."""
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
    """Return the messages that answer ``reply``: as the result of its call, if it made one."""
    if not reply.calls:
        said = reply if reply.blocks else replace(reply, blocks=(Text("(no answer)"),))
        return said, user(text)
    return reply, Message(
        "user", tuple(ToolOutput(call.id, text, is_error=True) for call in reply.calls), origin="tool"
    )


def _draft(plan: Plan, found: WrittenPlan, means: PlanResources) -> PlanDraft:
    """Return ``plan`` with the steps of ``found`` appended. Raises NoPlan if there is no step."""
    steps, notes = mended(found.subtasks, means, sound=not found.wrong)
    if not steps and not found.question:
        raise NoPlan("The model gave a plan without a step.", "Say more exactly what is to be done.")
    made = replace(plan, subtasks=(*plan.subtasks, *steps))
    if len(steps) > QUESTIONED:
        notes.append(f"The plan has {count(len(steps), 'step')}. More than {QUESTIONED} are hard to follow.")
    notes += _uncovered(made, found) if steps else ()
    return PlanDraft(made, tuple(notes), found.question)


def _uncovered(plan: Plan, found: WrittenPlan) -> list[str]:
    """Return the wishes of the request that no step covers, and names in the request that the plan does not contain."""
    ids = {step.id for step in plan.subtasks}
    known = {*ids, *(step.id for step in found.subtasks)}
    notes = [f"No step does this: {wanted}." for wanted, by in found.covers if wanted and not known.intersection(by)]
    texts = [f"{step.description} {step.expected_output} {step.tool_args}" for step in plan.subtasks]
    said = " ".join([*texts, *plan.task.assumptions]).casefold()
    named = dict.fromkeys(quoted or file for quoted, file in _NAMED.findall(plan.task.original_query))
    missing = [name for name in named if name.casefold() not in said]
    return [*notes, *(f"The request names {name}, and no step does." for name in missing[:3])]


CARRY_OUT = "Carry out this plan?"
ROUNDS = 10
"""Maximum number of times that the user may send a plan back."""


@frozen
class AgreedPlan:
    """``plan`` as approved, or as it was when it was not approved: its state says which."""

    plan: Plan
    notes: tuple[str, ...] = ()


@frozen
class PlanContext:
    """Context of one plan: the agent's branch, who is asked, the call that runs it ("" if none), and the user's
    messages that wait to join the branch meanwhile.
    """

    branch: Branch
    ask: Callable[[Question], Awaitable[Reply]]
    call_id: str = ""
    words: Callable[[], Sequence[str]] = tuple[str]

    def question(self, kind: Literal["choice", "plan"], text: str, preview: PlanGraph | None = None) -> Question:
        """Return a question about the plan, asked by the call that runs it."""
        tool = PLAN_TOOL if self.call_id else ""
        return Question(kind, text, call_id=self.call_id, tool=tool, preview=preview)


class Agreement:
    """The user's agreement on a plan. ``tools``: those that a step may call directly."""

    def __init__(self, planner: Planner, tools: Sequence[Tool], scope: PlanScope, context: PlanContext) -> None:
        self._planner = planner
        self._tools = tools
        self._mode = scope.mode
        self._attended = scope.attended
        self._dry = scope.mode.on
        """In plan mode nothing may be executed without approval."""
        self._context = context
        self._branch = context.branch

    async def reach(self, goal: str, context: str, id: str) -> AgreedPlan:
        """Make a plan for ``goal`` and have it approved. Raises BaError if none can be made."""
        empty = Plan(id, PlanTask(id, goal, goal, context))
        self._branch.emit(PlanChanged(empty))
        draft = await self._planner.create_plan(goal, self._tools, context, may_ask=self._attended)
        if draft.question and self._attended:
            answer = await self._context.ask(self._context.question("choice", draft.question))
            said = clean_text(answer.text).strip() or "The user did not answer; choose what is most likely."
            context = "\n".join(filter(None, (context, f"Asked: {draft.question} Answer: {said}")))
            draft = await self._planner.create_plan(goal, self._tools, context, may_ask=False)
        task = replace(draft.plan.task, id=id, original_query=goal, context=context)
        plan = replace(draft.plan, id=id, task=task, state="proposed", replans=0)
        return await self.approve(plan, draft.notes)

    async def approve(self, plan: Plan, notes: tuple[str, ...] = ()) -> AgreedPlan:
        """Ask about ``plan`` until it is approved or rejected; the user may change it, or describe a change."""
        for _ in range(ROUNDS):
            plan = self._now(plan, "proposed")
            wrong = tuple(map(sentence, refused(plan)))
            if not self._attended:
                if self._dry or wrong:
                    return AgreedPlan(plan, (*wrong, *notes))
                for text in notes:
                    self._branch.emit(Notice(sentence(text), "info"))
                return AgreedPlan(self._now(plan, "approved"), notes)
            question = self._context.question("plan", CARRY_OUT, PlanGraph(plan, (*wrong, *notes)))
            reply = await self._context.ask(question)
            words = clean_text(reply.text).strip()
            if reply.edited is not None:
                plan, notes = self._edited(plan, reply)
                wrong = notes or tuple(map(sentence, refused(plan)))
            if reply.choice == "deny" and words and reply.by == "person":
                plan, notes = await self._again(plan, words)
            elif reply.choice == "deny":
                return AgreedPlan(self._now(plan, "rejected", words), notes)
            elif not wrong and self._mode.agreed(reply, branch=self._branch):
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
