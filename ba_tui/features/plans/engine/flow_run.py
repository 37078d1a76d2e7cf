"""Runs a workflow: steps in order through the tools, handling of failures, rollback.

A cancelled workflow is not rolled back: the user stopped it, and undoing would be further work without a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from ba_tui.core.calls import run_call
from ba_tui.core.errors import PERMANENT, BaError, StopTurn
from ba_tui.core.messages import ToolUse
from ba_tui.core.ports.tools import Reader
from ba_tui.core.questions import Question
from ba_tui.core.results import StateChange, ToolResult, failure
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import sentence
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.executor import AT_ONCE as MAX_PARALLEL
from ba_tui.features.plans.engine.executor import Steps, execute
from ba_tui.features.plans.engine.flow_checks import check, name_conflict
from ba_tui.features.plans.engine.templates import InvalidTemplate, expression, rendered, templates_in
from ba_tui.features.plans.engine.workflows import (
    MAX_BYTES,
    MAX_DEPTH,
    Conditional,
    Flow,
    FlowBranch,
    Invocation,
    Loop,
    ResultRow,
    StepFailed,
    WorkflowStep,
    dependencies,
    effect_of,
    failed_flow,
    finished,
    invalid_output,
    message,
    step_call,
    stored_text,
)
from ba_tui.settings.document import Problem
from ba_tui.tools.guards.validate import as_json, complaints, with_defaults

_FROM_MEMORY = regex(r"\n\(From memory: [^\n]*\)$")
"""The note at the end of a recalled result: it is meant for a model and not part of the data."""

Names = dict[str, Any]


@frozen
class Runtime:
    """Context of a run: the guarded tools by name when the run begins, the known workflows, and the store of long
    results (None: a shortened result can't be passed on).
    """

    tools: Callable[[], Mapping[str, Tool]]
    flows: Mapping[str, Flow]
    results: Reader | None = None


async def run_flow(flow: Flow, args: Mapping[str, Any], call: Call, runtime: Runtime) -> ToolResult:
    """Check everything, then run ``flow``. ``meta["flow"]`` of the result has its output and its rows as data.

    Raises:
        StopTurn, asyncio.CancelledError: if a step raises them; completed steps stay done.
    """
    trail = call.branch.trail if isinstance(call.branch, FlowBranch) else ()
    if flow.name in trail or len(trail) >= MAX_DEPTH:
        way = " → ".join((*trail, flow.name))
        why = "calls itself" if flow.name in trail else f"goes deeper than {MAX_DEPTH} workflows"
        return failure("validation_error", f"The workflow {flow.name} {why}: {way}.", hint="Call its steps directly.")
    tools = dict(runtime.tools())
    if problems := await asyncio.to_thread(check, flow, tools, runtime.flows):
        lines = "\n".join(map(str, problems))
        return failure("validation_error", f"No step was run because the workflow has errors:\n{lines}")
    given, wrong = await asyncio.to_thread(arguments, flow, args)
    if wrong:
        return failure("invalid_parameters", " ".join(wrong))
    run = _Run(flow, call, replace(runtime, tools=lambda: tools), (*trail, flow.name))
    return await run.result({name: given.get(name) for name in (*flow.takes, *given)})


def arguments(flow: Flow, args: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return ``args`` with the defaults of ``flow``'s parameters, and what is wrong with them, one line each."""
    given: dict[str, Any] = with_defaults(dict(args), flow.parameters)
    found = complaints(given, flow.parameters)
    return given, [sentence(f"{'.'.join(map(str, at))}: {text}" if at else f"{flow.name} {text}") for at, text in found]


class _Run:
    def __init__(self, flow: Flow, call: Call, runtime: Runtime, trail: tuple[str, ...]) -> None:
        self.flow = flow
        self.call = call
        self.runtime = runtime
        self.tools = runtime.tools()
        self.branch = FlowBranch(call, trail)
        self.rows: list[ResultRow] = []
        self._lanes = asyncio.Semaphore(MAX_PARALLEL)
        self._undo: list[tuple[WorkflowStep, Names]] = []
        self._undoing = ""
        self._calls = 0

    async def result(self, names: Names) -> ToolResult:
        names["steps"] = {}
        try:
            await self.block(self.flow.steps, names)
            return await self._finished(names)
        except StepFailed as failed:
            return failed_flow(self.flow, failed, await self._roll_back(), self.rows)
        except (asyncio.CancelledError, StopTurn):
            done = ", ".join(row.step for row in self.rows if row.ok)
            self.call.report(f"{self.flow.name} was stopped. Nothing is undone. Done: {done or 'nothing'}.\n")
            raise

    async def block(self, steps: Sequence[WorkflowStep], names: Names) -> Any:
        """Run ``steps``; return the value that the last one in the file saves."""
        waits = dict(enumerate(dependencies(steps)))

        async def run(index: int) -> Any:
            return await self.step(steps[index], names)

        values = await execute(Steps(waits, run, lambda index: self._reads(steps[index]), MAX_PARALLEL))
        return values.get(len(steps) - 1)

    def _reads(self, step: WorkflowStep) -> bool:
        if step.approval:
            return False
        if isinstance(step.work, Invocation):
            tool = self.tools.get(step.work.name)
            if tool is None or tool.effect is not Effect.READ:
                return False
        return all(self._reads(inner) for block in step.inner() for inner in block)

    async def step(self, step: WorkflowStep, names: Names) -> Any:
        if step.approval:
            await self._gate(step, names)
        match step.work:
            case Invocation():
                value = await self._invoke(step, step.work, names)
            case Conditional(test=test, then=then, otherwise=otherwise):
                true = test if isinstance(test, bool) else await self._evaluated(step, test, names)
                value = await self.block(then if true else otherwise, names)
            case Loop(item=item, body=body):
                value = [await self.block(body, {**names, item: one}) for one in await self._items(step, names)]
            case None:
                value = None
        if step.save_as:
            names[step.save_as] = value
        if step.named and not isinstance(step.work, Invocation):
            self._note(step, names, ok=True)
        return value

    async def _gate(self, step: WorkflowStep, names: Names) -> None:
        try:
            text = str(await _rendered(step.approval, names))
        except InvalidTemplate as error:
            raise StepFailed(step, failure("validation_error", f"approval: {error}")) from error
        start = time.monotonic()
        reason = f"Step {step.id} of {self.flow.name} needs your approval."
        reply = await self.call.ask(
            Question("continue", text, call_id=self.call.id, tool=self.flow.name, reason=reason)
        )
        ok = reply.choice != "deny"
        said = f" They said: {reply.text.strip()}" if reply.text.strip() else ""
        self._row(ResultRow(self._label(step), "approval", ok, time.monotonic() - start, "yes" if ok else "no"))
        if not ok:
            raise StepFailed(step, failure("permission_denied", f"“{text}” was not approved.{said}"))

    async def _evaluated(self, step: WorkflowStep, text: str, names: Names) -> Any:
        try:
            return await asyncio.to_thread(expression(text).value, dict(names))
        except InvalidTemplate as error:
            raise StepFailed(step, failure("validation_error", str(error))) from error

    async def _items(self, step: WorkflowStep, names: Names) -> list[Any]:
        over = step.work.over if isinstance(step.work, Loop) else []
        try:
            items = await self._evaluated(step, over, names) if isinstance(over, str) else await _rendered(over, names)
        except InvalidTemplate as error:
            raise StepFailed(step, failure("validation_error", str(error))) from error
        if isinstance(items, list):
            return cast("list[Any]", items)
        hint = "Make a list of it: {{ text | lines }} or {{ text | from_json }}."
        raise StepFailed(step, failure("validation_error", f"for_each needs a list, got {as_json(items)}.", hint=hint))

    async def _invoke(self, step: WorkflowStep, invocation: Invocation, names: Names) -> Any:
        tries = 1 + (step.on_error if isinstance(step.on_error, int) else 0)
        result, value = await self._call(step, invocation, names)
        while result.failed and tries > 1 and not (result.error and result.error.kind in PERMANENT):
            tries -= 1
            result, value = await self._call(step, invocation, names)
        if step.named:
            self._note(step, names, ok=not result.failed, result=result)
        if not result.failed:
            if step.undo:
                self._undo.append((step, {**names, step.save_as: value} if step.save_as else dict(names)))
            return value
        if isinstance(step.on_error, tuple):
            return await self.block(step.on_error, names)
        if step.on_error == "continue":
            return None
        raise StepFailed(step, result)

    async def _call(self, step: WorkflowStep, invocation: Invocation, names: Names) -> tuple[ToolResult, Any]:
        """Make one call and return its value; a result that can't be passed on is a failure."""
        self._calls += 1
        call = step_call(self._calls, self.call, self.branch, step.id)
        start, value = time.monotonic(), None
        try:
            args = await _rendered(invocation.args, names)
        except InvalidTemplate as error:
            result = failure("validation_error", f"args: {error}")
        else:
            result = await self._run_tool(step, invocation, args, call)
        if step.save_as and not result.failed:
            try:
                value = await self._value(result)
            except (BaError, ValueError) as error:
                # The call ran, so it is not retried, and it can be undone.
                result = failure("validation_error", f"It ran, but its whole result can't be passed on: {error}.")
                if step.undo:
                    self._undo.append((step, {**names, step.save_as: None}))
        summary = message(result) if result.failed else result.summary
        seconds = max(0.0, time.monotonic() - start - call.waited)
        self._row(ResultRow(self._label(step), invocation.name, not result.failed, seconds, summary))
        return result, value

    async def _run_tool(
        self, step: WorkflowStep, invocation: Invocation, args: dict[str, Any], call: Call
    ) -> ToolResult:
        tool = self.tools.get(invocation.name)
        async with self._lanes:
            if tool is None:
                return await run_flow(self.runtime.flows[invocation.name], args, call, self.runtime)
            if step.save_as and "output_level" in tool.input_schema.get("properties", {}):
                # Later steps need the complete result, even if a model would see only a part.
                args = {"output_level": "full", **args}
            self.call.report(f"{self._label(step)}: {tool.name} {tool.target(args)}".rstrip() + "\n")
            return await run_call(tool, ToolUse(call.id, tool.name, args), call)

    async def _value(self, result: ToolResult) -> Any:
        """Return the value for later steps: a workflow's output, a JSON result as data, else the text."""
        flow = result.meta.get("flow")
        if isinstance(flow, dict) and "output" in flow:
            return cast("Any", flow["output"])
        text = result.text
        if result.artifact:
            if self.runtime.results is None:
                raise ValueError(f"it is too long for one result and is stored as {result.artifact}")
            text = await asyncio.to_thread(_whole, self.runtime.results, result.artifact)
        elif "cached_s" in result.meta:
            text = _FROM_MEMORY.sub("", text)
        if result.kind == "json":
            with contextlib.suppress(ValueError):
                return json.loads(text)
        return text

    def _note(self, step: WorkflowStep, names: Names, *, ok: bool, result: ToolResult | None = None) -> None:
        """Save the outcome as ``steps.<id>`` in a new mapping, because parallel steps may be reading the old one."""
        error = message(result) if result and result.failed else ""
        text, summary = (result.text, result.summary) if result else ("", "")
        names["steps"] = {**names["steps"], step.id: {"ok": ok, "text": text, "summary": summary, "error": error}}

    def _label(self, step: WorkflowStep) -> str:
        return f"undo of {self._undoing}" if self._undoing else step.id

    def _row(self, row: ResultRow) -> None:
        self.rows.append(row)
        self.call.report(f"{row}\n")

    async def _roll_back(self) -> tuple[list[str], list[str]]:
        """Run the undo steps of completed steps, latest first; return which succeeded, and which failed."""
        undone: list[str] = []
        stuck: list[str] = []
        for step, names in reversed(self._undo):
            self._undoing = step.id
            try:
                await self.block(step.undo, dict(names))
                undone.append(step.id)
            except StepFailed:
                stuck.append(step.id)
        return undone, stuck

    async def _finished(self, names: Names) -> ToolResult:
        try:
            output = await _rendered(self.flow.output, names)
        except InvalidTemplate as error:
            return invalid_output(self.flow, str(error), self.rows)
        if self.flow.output_schema is not None:
            found = await asyncio.to_thread(complaints, output, self.flow.output_schema)
            if found:
                why = " ".join(sentence(f"{'.'.join(map(str, at)) or 'it'}: {text}") for at, text in found)
                return invalid_output(self.flow, why, self.rows)
        todos = self.branch.transcript.todos
        changes = StateChange(todos=todos) if todos != self.call.branch.transcript.todos else None
        return replace(finished(self.flow, output, self.rows), changes=changes)


async def _rendered(value: Any, names: Names) -> Any:
    """Return ``value`` with its templates rendered, in a thread if there are any."""
    if next(templates_in(value), None) is None:
        return value
    return await asyncio.to_thread(rendered, value, dict(names))


def _whole(results: Reader, ref: str) -> str:
    """Return all of a stored result. Raises StorageError, and ValueError if it is too large for a call."""
    if (size := results.about(ref).size) > MAX_BYTES:
        raise ValueError(f"{ref} has {size // 1_000_000} MB, and a call takes {MAX_BYTES // 1_000_000} MB")
    return stored_text(results, ref)


Tools = Callable[[], Mapping[str, Tool]]


def flow_tools(
    flows: Mapping[str, Flow], tools: Mapping[str, Tool], now: Tools, results: Reader | None = None
) -> tuple[list[Tool], list[Problem]]:
    """Return a tool for each valid workflow that works with ``tools``, and the problems of the others.

    ``now`` returns the guarded tools when a workflow runs, including these; ``results`` stores long results.
    """
    good = {name: flow for name, flow in flows.items() if not name_conflict(flow, tools)}
    problems = [problem for flow in flows.values() for problem in name_conflict(flow, tools)]
    while wrong := {name: found for name, flow in good.items() if (found := check(flow, tools, good))}:
        # A workflow that uses a broken one is broken too, so the rest is checked again.
        problems += [problem for found in wrong.values() for problem in found]
        good = {name: flow for name, flow in good.items() if name not in wrong}
    runtime = Runtime(now, good, results)
    return [_flow_tool(flow, tools, runtime) for flow in good.values()], problems


def _flow_tool(flow: Flow, tools: Mapping[str, Tool], runtime: Runtime) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        result = await run_flow(flow, args, call, runtime)
        # The output as data is for an enclosing workflow; the text says the same within its limits.
        return result if isinstance(call.branch, FlowBranch) else replace(result, meta=_without_output(result.meta))

    text = {"type": "string"}
    texts = [name for name, part in flow.takes.items() if isinstance(part, dict) and {**part, **text} == part]
    return Tool(
        flow.name,
        flow.description,
        flow.parameters,
        run,
        effect=effect_of(flow, tools, runtime.flows),
        timeout=None,
        facts=ToolFacts("workflows", target=texts[0] if texts else "", version=flow.version),
        idempotent=False,
    )


def _without_output(meta: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = meta.get("flow", {})
    return {**meta, "flow": {name: value for name, value in facts.items() if name != "output"}}
