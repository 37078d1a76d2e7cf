"""Prompts of the planner: the form of a plan, the available tools, the faults of its last answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ba_tui.core.results import ToolResult
from ba_tui.core.teamwork import Plan, SubTask
from ba_tui.core.text.untrusted import CONTROL, neutralized
from ba_tui.core.text.wording import clipped, one_line
from ba_tui.core.tool import Call, Tool
from ba_tui.features.plans.engine.drafting.reading import NAME, QUESTIONED, PlanResources

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
