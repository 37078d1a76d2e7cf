"""What a workflow is, as values, and where workflow files are found.

How a file is read is flow_files, what makes one wrong is flow_checks, running it is flow_run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.tool import Effect, Tool
from ba_tui.core.values import frozen
from ba_tui.settings.document import KeyPath, Problem, SettingsDocument

MAX_DEPTH = 5
"""Workflows within workflows: the one that was started counts as the first."""


@frozen
class Invocation:
    """Run a tool, or another workflow (which is a tool, too); ``flow`` when the file insists on a workflow."""

    name: str
    args: dict[str, Any]
    flow: bool = False


@frozen
class Conditional:
    test: bool | str
    then: tuple[WorkflowStep, ...]
    otherwise: tuple[WorkflowStep, ...] = ()


@frozen
class Loop:
    """``over``: a list, or the expression that gives one; each item is called ``item`` within ``body``."""

    over: list[Any] | str
    item: str
    body: tuple[WorkflowStep, ...]


OnError: TypeAlias = "Literal['stop', 'continue'] | int | tuple[WorkflowStep, ...]"
"""What a failed step means: the end, nothing, so many tries more, or these steps in its place."""


@frozen
class WorkflowStep:
    """``at`` is where it stands in its file. Without ``work`` it is a gate alone. ``needs`` None: the step before."""

    at: KeyPath
    id: str
    work: Invocation | Conditional | Loop | None
    named: bool = False
    approval: str = ""
    save_as: str = ""
    on_error: OnError = "stop"
    undo: tuple[WorkflowStep, ...] = ()
    needs: tuple[str, ...] | None = None

    def inner(self) -> Sequence[tuple[WorkflowStep, ...]]:
        """The blocks of steps within this one."""
        blocks: list[tuple[WorkflowStep, ...]] = [self.undo]
        if isinstance(self.on_error, tuple):
            blocks.append(self.on_error)
        match self.work:
            case Conditional(then=then, otherwise=otherwise):
                blocks += [then, otherwise]
            case Loop(body=body):
                blocks.append(body)
            case _:
                pass
        return blocks


@frozen
class Flow:
    """``parameters`` and ``output_schema`` are JSON Schemas; ``output`` is a template of what the flow gives back."""

    name: str
    description: str
    parameters: dict[str, Any]
    steps: tuple[WorkflowStep, ...]
    document: SettingsDocument
    version: str = "1"
    output: Any = None
    output_schema: dict[str, Any] | None = None

    @property
    def takes(self) -> Mapping[str, Any]:
        """The schemas of its parameters by their names."""
        properties = self.parameters.get("properties")
        return cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}

    def problem(self, at: KeyPath, text: str) -> Problem:
        return problem(self.document, at, text)

    def line(self, step: WorkflowStep) -> int:
        return self.document.line(step.at)


def problem(document: SettingsDocument, at: KeyPath, text: str) -> Problem:
    """``text`` about the value at ``at``, with its line. List items are counted from 1, as people do."""
    key = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in at).lstrip(".")
    return Problem(str(document.path), text, document.line(at) or 1, key)


def walk(steps: Sequence[WorkflowStep]) -> Iterator[WorkflowStep]:
    """All steps, with those within others, in the order of the file."""
    for step in steps:
        yield step
        for block in step.inner():
            yield from walk(block)


def dependencies(steps: Sequence[WorkflowStep]) -> list[set[int]]:
    """For each step of a block the positions of those it waits for: what it ``needs``, else the one before it."""
    positions = {step.id: index for index, step in enumerate(steps)}
    found: list[set[int]] = []
    for index, step in enumerate(steps):
        if step.needs is None:
            found.append({index - 1} if index else set())
        else:
            found.append({positions[name] for name in step.needs if name in positions})
    return found


def inner_flows(flow: Flow, flows: Mapping[str, Flow]) -> list[str]:
    """The names of the workflows that ``flow`` runs itself."""
    names = (step.work.name for step in walk(flow.steps) if isinstance(step.work, Invocation))
    return list(dict.fromkeys(name for name in names if name in flows))


def effect_of(flow: Flow, tools: Mapping[str, Tool], flows: Mapping[str, Flow]) -> Effect:
    """The worst that any step can do, also in other workflows. A workflow has no command of its own, so that running
    one counts as changing."""
    effects: set[Effect] = set()
    known, todo = {flow.name}, [flow]
    while todo:
        one = todo.pop()
        inner = inner_flows(one, flows)
        names = {step.work.name for step in walk(one.steps) if isinstance(step.work, Invocation)}
        effects |= {tools[name].effect if name in tools else Effect.WRITE for name in names.difference(inner)}
        todo += [flows[name] for name in inner if name not in known]
        known.update(inner)
    for effect in (Effect.EXECUTE, Effect.WRITE, Effect.NETWORK):
        if effect in effects:
            return Effect.WRITE if effect is Effect.EXECUTE else effect
    return Effect.READ


def flow_folders(bundled_config: Path, user_config: Path, trusted_project: Path | None) -> list[Path]:
    """Where workflow files lie, the lowest rank first. Files of a project count only when it is trusted."""
    folders = [bundled_config / "workflows", user_config / "workflows"]
    return [*folders, trusted_project / ".ba" / "workflows"] if trusted_project else folders
