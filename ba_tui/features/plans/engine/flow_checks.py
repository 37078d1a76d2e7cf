"""Checks of a workflow before its first step: tools, arguments, references, order, nesting.

Each complaint names file and line. No step is run.
"""

from __future__ import annotations

import graphlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from ba_tui.core.text.wording import suggestion
from ba_tui.core.tool import Tool
from ba_tui.features.plans.engine.templates import (
    InvalidTemplate,
    Template,
    built_in,
    expression,
    template,
    templates_in,
)
from ba_tui.features.plans.engine.workflows import (
    MAX_DEPTH,
    Conditional,
    Flow,
    Invocation,
    Loop,
    WorkflowStep,
    dependencies,
    inner_flows,
    walk,
)
from ba_tui.settings.document import KeyPath, Problem
from ba_tui.tools.guards.validate import complaints, literal_complaints, schema_complaint

Names = frozenset[str]
"""Values that exist on every path to a step; ``steps.x`` is the outcome of the step ``x``."""


def check(flow: Flow, tools: Mapping[str, Tool], flows: Mapping[str, Flow]) -> tuple[Problem, ...]:
    """Return all faults of ``flow`` with these tools and workflows, in the order of the file."""
    checking = _FlowChecker(flow, tools, flows)
    checking.schemas()
    names = checking.block(flow.steps, frozenset(flow.takes))
    checking.value(("output",), flow.output, names)
    checking.nesting()
    return tuple(sorted(dict.fromkeys(checking.problems), key=lambda problem: problem.line))


def name_conflict(flow: Flow, tools: Mapping[str, Tool]) -> tuple[Problem, ...]:
    """Return a complaint if ``flow`` has the name of one of ``tools`` that is not a workflow."""
    text = f"there is a tool {flow.name!r} already; expected another name"
    return (flow.problem(("name",), text),) if flow.name in tools else ()


class _FlowChecker:
    def __init__(self, flow: Flow, tools: Mapping[str, Tool], flows: Mapping[str, Flow]) -> None:
        self.flow = flow
        self.tools = tools
        self.flows = {**flows, flow.name: flow}
        self.problems: list[Problem] = []
        self._taken = {*built_in(), *flow.takes}

    def wrong(self, at: KeyPath, text: str) -> None:
        self.problems.append(self.flow.problem(at, text))

    def schemas(self) -> None:
        for key, schema in (("parameters", self.flow.parameters), ("output_schema", self.flow.output_schema)):
            if schema is not None and (found := schema_complaint(schema)):
                self.wrong((key, *found[0]), found[1])
        if self.flow.parameters.get("type") != "object":
            self.wrong(("parameters", "type"), "expected object: parameters have names")
        for name, schema in self.flow.takes.items():
            at = ("parameters", "properties", name)
            if not name.isidentifier() or name in built_in():
                self.wrong(at, f"{name!r} can't be used in templates; expected a name of letters, digits and _")
            part = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
            if "default" in part and not schema_complaint(part):
                for where, text in complaints(part["default"], part):
                    self.wrong((*at, "default", *where), text)

    def block(self, steps: Sequence[WorkflowStep], names: Names) -> Names:
        """Check ``steps``, which all start with ``names``; return the names that exist when all of them have ended."""
        order = self._order(steps)
        before: dict[int, set[int]] = {}
        gained: dict[int, Names] = {}
        for index in order:
            before[index] = {index}.union(*(before.get(other, set()) for other in dependencies(steps)[index]))
            here = names.union(*(gained[other] for other in before[index] if other in gained))
            gained[index] = self.step(steps[index], here) - names
        self._conflicting_saves(steps, before)
        return names.union(*gained.values())

    def _order(self, steps: Sequence[WorkflowStep]) -> Iterable[int]:
        ids = [step.id for step in steps if step.named]
        for step in steps:
            for name in step.needs or ():
                if name not in ids:
                    expected = suggestion(name, ids, "ids beside it:")
                    self.wrong((*step.at, "needs"), f"there is no step {name!r} in this list; {expected}")
        try:
            return list(graphlib.TopologicalSorter(dict(enumerate(dependencies(steps)))).static_order())
        except graphlib.CycleError as error:
            cycle = [steps[index] for index in cast("list[int]", error.args[1])]
            ring = " → ".join(f"{step.id} (line {self.flow.line(step)})" for step in reversed(cycle))
            at = min(cycle, key=lambda step: self.flow.line(step)).at
            self.wrong((*at, "needs"), f"these steps wait for each other: {ring}; a step without needs waits too")
            return range(len(steps))

    def _conflicting_saves(self, steps: Sequence[WorkflowStep], before: Mapping[int, Collection[int]]) -> None:
        """Report steps that may run in parallel and save under the same name."""
        for one, step in enumerate(steps):
            for other in range(one):
                apart = one not in before.get(other, ()) and other not in before.get(one, ())
                if apart and step.save_as and step.save_as == steps[other].save_as:
                    line = self.flow.line(steps[other])
                    text = f"the step in line {line} may save {step.save_as!r} at the same time; expected another name"
                    self.wrong((*step.at, "save_as"), text)

    def step(self, step: WorkflowStep, names: Names) -> Names:
        """Check one step; return the names that exist after it."""
        if step.approval:
            self.value((*step.at, "approval"), step.approval, names)
        self._new_name(step, "save_as", step.save_as)
        saved = names | {step.save_as} if step.save_as else names
        if step.named:
            saved |= {f"steps.{step.id}"}
        match step.work:
            case Invocation():
                self._invocation(step, step.work, names)
                if isinstance(step.on_error, tuple):
                    # The handler starts with the outcome of the failed step.
                    self.block(step.on_error, names | {f"steps.{step.id}"} if step.named else names)
                    self._collected(step, step.on_error, "taken in its place")
                self.block(step.undo, saved)
            case Conditional(test=test, then=then, otherwise=otherwise):
                self._expression((*step.at, "if"), test, names)
                return saved | (self.block(then, names) & self.block(otherwise, names))
            case Loop(over=over, item=item, body=body):
                if isinstance(over, str):
                    self._expression((*step.at, "for_each"), over, names)
                else:
                    self.value((*step.at, "for_each"), over, names)
                self._new_name(step, "as", item)
                self.block(body, names | {item})
                self._collected(step, body, "collected")
            case None:
                pass
        return saved

    def _new_name(self, step: WorkflowStep, key: str, name: str) -> None:
        if name in self._taken:
            what = (
                "a parameter"
                if name in self.flow.parameters.get("properties", {})
                else "a name of the template language"
            )
            self.wrong((*step.at, key), f"{name!r} is {what} already; expected another name")

    def _collected(self, step: WorkflowStep, steps: Sequence[WorkflowStep], why: str) -> None:
        """Check that the last step of a block has a value if the value of the block is used."""
        if step.save_as and steps and not _has_value(steps[-1]):
            self.wrong(steps[-1].at, f"expected `save_as` on this last step: its value is {why} as {step.save_as!r}")

    def _invocation(self, step: WorkflowStep, invocation: Invocation, names: Names) -> None:
        self.value((*step.at, "args"), invocation.args, names)
        at = (*step.at, "flow" if invocation.flow else "tool")
        if invocation.name in self.flows:
            schema: Mapping[str, Any] = self.flows[invocation.name].parameters
            if step.save_as and self.flows[invocation.name].output is None:
                self.wrong(
                    (*step.at, "save_as"), f"the workflow {invocation.name!r} has no output; expected `output` in it"
                )
        elif invocation.name in self.tools and not invocation.flow:
            schema = self.tools[invocation.name].input_schema
        else:
            known = [*self.flows] if invocation.flow else [*self.tools, *self.flows]
            what = "workflow" if invocation.flow else "tool"
            self.wrong(at, f"there is no {what} {invocation.name!r}; {suggestion(invocation.name, known)}")
            return
        if schema_complaint(schema):
            return
        unsure = [name for name, value in invocation.args.items() if any(templates_in(value))]
        for where, text in literal_complaints(invocation.args, schema, unsure):
            self.wrong((*step.at, "args", *where), f"{invocation.name}: {text}")

    def value(self, at: KeyPath, value: Any, names: Names) -> None:
        """Check that every template in ``value`` is readable and its names exist."""
        for where, text in templates_in(value, at):
            self._read(where, text, names, template)

    def _expression(self, at: KeyPath, value: bool | str, names: Names) -> None:
        if isinstance(value, str):
            self._read(at, value, names, expression)

    def _read(self, at: KeyPath, text: str, names: Names, read: Any) -> None:
        try:
            found: Template = read(text)
        except InvalidTemplate as error:
            self.wrong(at, str(error))
            return
        missing = [*(found.names - names), *(name for id in found.steps if (name := f"steps.{id}") not in names)]
        for name in sorted(missing):
            self.wrong(at, self._unknown(name, names))

    def _unknown(self, name: str, names: Names) -> str:
        for step in walk(self.flow.steps):
            if name in (step.save_as, f"steps.{step.id}") and (step.named or step.save_as == name):
                line = self.flow.line(step)
                return (
                    f"{name!r} comes from the step in line {line}, which has not ended on every way to here; "
                    "expected a step before it, in `needs`, or in both `then` and `else`"
                )
        return f"{name!r} is not known here; {suggestion(name, sorted(names))}"

    def nesting(self) -> None:
        """Check nested workflows: no recursion, and not too deep."""
        for step in walk(self.flow.steps):
            if isinstance(step.work, Invocation) and step.work.name in self.flows:
                at = (*step.at, "flow" if step.work.flow else "tool")
                if trouble := self._followed(step.work.name, (self.flow.name,)):
                    self.wrong(at, trouble)

    def _followed(self, name: str, trail: tuple[str, ...]) -> str:
        trail = (*trail, name)
        if name in trail[:-1]:
            return f"this workflow calls itself: {' → '.join(trail)}"
        if len(trail) > MAX_DEPTH:
            return f"workflows are nested deeper than {MAX_DEPTH}: {' → '.join(trail)}"
        inner = inner_flows(self.flows[name], self.flows)
        return next((said for other in inner if (said := self._followed(other, trail))), "")


def _has_value(step: WorkflowStep) -> bool:
    if isinstance(step.work, Conditional):
        blocks = (step.work.then, step.work.otherwise)
        return all(block and _has_value(block[-1]) for block in blocks)
    return bool(step.save_as)
