"""Workflows as values, the branch their steps run on, and the results they give.

``flow_files`` parses the files, ``flow_checks`` finds faults, ``flow_run`` executes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args

from ba_tui.core.errors import ErrorKind
from ba_tui.core.events import Event, ToolFinished, ToolProgress, ToolStarted
from ba_tui.core.ports.tools import Reader
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import Table, ToolResult, failure
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.tool import Call, Effect, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.settings.document import KeyPath, Problem, SettingsDocument

MAX_BYTES = 10_000_000
"""Maximum bytes of a stored result that a later step gets."""
MAX_DEPTH = 5
"""Maximum nesting of workflows; the outermost one counts as the first."""


@frozen
class Invocation:
    """Runs a tool, or another workflow, which is a tool too; ``flow``: the file requires a workflow."""

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
    """``over``: a list, or an expression that gives one; each item is called ``item`` within ``body``."""

    over: list[Any] | str
    item: str
    body: tuple[WorkflowStep, ...]


OnError: TypeAlias = "Literal['stop', 'continue'] | int | tuple[WorkflowStep, ...]"
"""The handling of a failed step: stop, continue, a number of retries, or other steps in its place."""


@frozen
class WorkflowStep:
    """``at``: the position in its file. A step without ``work`` is only an approval. ``needs`` None: the
    step before.
    """

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
        """Return the blocks of steps inside this one."""
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
    """A workflow. ``parameters`` and ``output_schema`` are JSON Schemas; ``output`` is a template of its result."""

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
        """Return the schemas of its parameters by name."""
        properties = self.parameters.get("properties")
        return cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}

    def problem(self, at: KeyPath, text: str) -> Problem:
        return problem(self.document, at, text)

    def line(self, step: WorkflowStep) -> int:
        return self.document.line(step.at)


def problem(document: SettingsDocument, at: KeyPath, text: str) -> Problem:
    """Return a complaint ``text`` about the value at ``at``, with its line. List items are counted from 1."""
    key = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in at).lstrip(".")
    return Problem(str(document.path), text, document.line(at) or 1, key)


def walk(steps: Sequence[WorkflowStep]) -> Iterator[WorkflowStep]:
    """Yield all steps, including nested ones, in the order of the file."""
    for step in steps:
        yield step
        for block in step.inner():
            yield from walk(block)


def dependencies(steps: Sequence[WorkflowStep]) -> list[set[int]]:
    """Return, for each step of a block, the positions of its dependencies: those in ``needs``, else the one before."""
    positions = {step.id: index for index, step in enumerate(steps)}
    found: list[set[int]] = []
    for index, step in enumerate(steps):
        if step.needs is None:
            found.append({index - 1} if index else set())
        else:
            found.append({positions[name] for name in step.needs if name in positions})
    return found


def inner_flows(flow: Flow, flows: Mapping[str, Flow]) -> list[str]:
    """Return the names of the workflows that ``flow`` runs itself."""
    names = (step.work.name for step in walk(flow.steps) if isinstance(step.work, Invocation))
    return list(dict.fromkeys(name for name in names if name in flows))


def effect_of(flow: Flow, tools: Mapping[str, Tool], flows: Mapping[str, Flow]) -> Effect:
    """Return the strongest effect of any step, including nested workflows. A workflow has no command of its own, so
    running commands counts as writing.
    """
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


MAX_ROWS = 60
COLUMNS = ("Step", "Tool", "Outcome", "Seconds", "Summary")
_KINDS: dict[str, ErrorKind] = {kind: kind for kind in get_args(ErrorKind)}


@frozen
class ResultRow:
    """The outcome of one step."""

    step: str
    tool: str
    ok: bool
    seconds: float
    summary: str

    @property
    def outcome(self) -> str:
        return "ok" if self.ok else "failed"

    def record(self) -> dict[str, Any]:
        """Return the row as data, for ``meta`` and ``--json``."""
        facts = {"step": self.step, "tool": self.tool, "ok": self.ok}
        return {**facts, "duration_ms": round(self.seconds * 1000), "summary": self.summary}

    def __str__(self) -> str:
        tool = f" ({self.tool})" if self.tool else ""
        about = f", {self.summary}" if self.summary else ""
        return f"{self.step}{tool}: {self.outcome}{about} ({self.seconds:.1f} s)"


class StepFailed(Exception):
    """A step failed and the workflow does not continue after failures."""

    def __init__(self, step: WorkflowStep, result: ToolResult) -> None:
        super().__init__(step.id)
        self.step = step
        self.result = result


def finished(flow: Flow, output: Any, rows: Sequence[ResultRow]) -> ToolResult:
    """Return the result of a workflow whose steps all ran."""
    said = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)
    listed = _listing(flow, rows)
    text = listed if flow.output is None else f"{said.rstrip()}\n\n{listed}"
    summary = count(len(rows), "step")
    return _with_rows(flow, ToolResult(text, summary=summary, meta={"flow": {"output": output}}), rows)


def invalid_output(flow: Flow, why: str, rows: Sequence[ResultRow]) -> ToolResult:
    said = f"All steps of {flow.name} ran, but its output does not fit its schema: {why}"
    return _told(flow, failure("validation_error", said), rows)


def failed_flow(
    flow: Flow, failed: StepFailed, rolled_back: tuple[Sequence[str], Sequence[str]], rows: Sequence[ResultRow]
) -> ToolResult:
    """Return the result of a workflow with a failed step; ``rolled_back``: the steps that could be undone, and the
    others.
    """
    undone, stuck = rolled_back
    error = failed.result.error
    kind = _KINDS.get(error.kind if error else "", "execution_error")
    where = f"{flow.document.path.name}:{flow.line(failed.step)}"
    lines = [
        f"Step {failed.step.id} of {flow.name} ({where}) failed: {message(failed.result)}",
        "No later step was run.",
    ]
    lines += [f"Undone: {', '.join(undone)}."] if undone else []
    lines += [f"Could not be undone: {', '.join(stuck)}."] if stuck else []
    return _told(flow, failure(kind, " ".join(lines), hint=error.hint if error else ""), rows)


def message(result: ToolResult) -> str:
    """Return why ``result`` failed, in one line."""
    if result.error or result.is_error:
        return one_line(result.error.message if result.error else result.text, 300)
    # For a failed command: its status and its last output.
    return one_line(f"{result.summary}: {result.text[-200:].rpartition('[')[0] or result.text[-200:]}", 300)


def _told(flow: Flow, result: ToolResult, rows: Sequence[ResultRow]) -> ToolResult:
    return _with_rows(flow, replace(result, text=f"{result.text}\n\n{_listing(flow, rows)}"), rows)


def _with_rows(flow: Flow, result: ToolResult, rows: Sequence[ResultRow]) -> ToolResult:
    table = Table(COLUMNS, tuple((row.step, row.tool, row.outcome, round(row.seconds, 2), row.summary) for row in rows))
    steps = [row.record() for row in rows]
    facts = {"name": flow.name, "version": flow.version, **result.meta.get("flow", {}), "steps": steps}
    return replace(result, display=table, meta={**result.meta, "flow": facts})


def _listing(flow: Flow, rows: Sequence[ResultRow]) -> str:
    more = [f"… and {len(rows) - MAX_ROWS} more"] if len(rows) > MAX_ROWS else []
    return "\n".join([f"Steps of {flow.name}:", *([f"- {row}" for row in rows[:MAX_ROWS]] or ["- none"]), *more])


T = TypeVar("T")


class FlowBranch(Branch):
    """A branch with its own transcript for a workflow: it begins with the caller's folder and todo list, and without
    messages.

    The user sees one call, the workflow's: progress of its steps is reported as progress of that call, everything else
    goes through the caller's branch. ``trail``: the running workflows, the outermost first.
    """

    def __init__(self, outer: Call, trail: tuple[str, ...]) -> None:
        caller = outer.branch
        transcript = Transcript(caller.name)
        transcript.cwd, transcript.todos = caller.transcript.cwd, caller.transcript.todos
        super().__init__(caller._turn, transcript, caller._inbox)
        self.ceiling = caller.ceiling
        self.trail = trail
        self._outer = outer

    def state(self, kind: Callable[[], T]) -> T:
        return self._outer.branch.state(kind)

    def emit(self, event: Event) -> None:
        match event:
            case ToolStarted():
                pass
            case ToolProgress(text=text):
                self._outer.report(text)
            case ToolFinished():
                self.transcript.apply(event if event.agent == self.name else replace(event, agent=self.name))
            case _:
                self._outer.branch.emit(event)


def step_call(number: int, outer: Call, branch: FlowBranch, step: str) -> Call:
    """Return the call of one step of the workflow call ``outer``; its questions are asked in that call's name."""

    async def consult(question: Question) -> Reply:
        reason = f"Step {step} of {branch.trail[-1]}. {question.reason}".rstrip()
        return await outer.ask(replace(question, call_id=outer.id, reason=reason))

    return Call(f"{outer.id}.{number}", branch, consults=(consult,))


def stored_text(results: Reader, ref: str) -> str:
    """Return a stored result, up to ``MAX_BYTES``. Raises StorageError."""
    parts: list[str] = []
    at = 0
    while at < MAX_BYTES:
        page = results.read(ref, at, 1_000_000)
        parts.append(page.text)
        if page.last or page.upto <= at:
            break
        at = page.upto
    return "".join(parts)
