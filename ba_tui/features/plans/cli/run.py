"""``ba run FLOW``: runs a workflow without a model. Nobody is asked: what would ask is denied, listed, and exits 4.

stdout carries the output only; what happens meanwhile goes to stderr.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from ba_tui.cli.application import Allow, AsRoot, PermissionMode, WorkingFolder
from ba_tui.cli.config import folder_of, say
from ba_tui.cli.streams import read_input
from ba_tui.core.errors import ErrorInfo, StopTurn, UsageError, run_loop
from ba_tui.core.events import Asked, Event, Notice, ToolProgress, TurnEnded
from ba_tui.core.results import ToolResult
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import correction, with_hint
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.faces.headless import denial
from ba_tui.faces.run_result import DENIED, INFRASTRUCTURE, INTERRUPTED, LIMIT, OK, USAGE
from ba_tui.features.plans.engine.flow_checks import check, name_conflict
from ba_tui.features.plans.engine.flow_files import load_flows, read_flow
from ba_tui.features.plans.engine.flow_run import Runtime, arguments, run_flow
from ba_tui.features.plans.engine.workflows import Flow, Invocation, walk
from ba_tui.flags import ChatFlags
from ba_tui.permissions.trust.grants import Trust
from ba_tui.permissions.verdicts import check_bypass
from ba_tui.processes.scratch import scratch
from ba_tui.processes.signals import interrupts
from ba_tui.resources import bundled, places, project_root

if TYPE_CHECKING:
    from ba_tui.assembly.tools import SessionTools
    from ba_tui.settings.document import Problem

SCHEMA = 1
KINDS = {"Conditional": "if", "Loop": "for_each"}
Format = Literal["text", "json"]


def run(  # noqa: PLR0913 - typer reads one parameter a flag
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="A workflow file, or the name of a workflow.")],
    param: Annotated[
        list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="Set a parameter. Repeatable.")
    ] = None,
    params_json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Parameters as a JSON object; - reads stdin.")
    ] = None,
    output_format: Annotated[Format, typer.Option(help="What is printed.")] = "text",
    allow: Allow = None,
    permission_mode: PermissionMode = None,
    yes_bypass_as_root: AsRoot = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check it and list its steps, without running it.")
    ] = False,
    cwd: WorkingFolder = None,
) -> int:
    """Run a workflow: checked as a whole first, then step by step.

    \b
    Exit codes:
      0 ok · 1 the file or a parameter is wrong · 2 a step failed
      3 stopped at a limit · 4 an approval was denied · 130 interrupted
    """
    from ba_tui.assembly import tools_alone  # noqa: PLC0415 - a quarter of a second, and --help needs none

    folder = folder_of(cwd)
    if permission_mode == "bypass":
        check_bypass(yes_bypass_as_root)
    flags = ChatFlags(allow=allow or None, permission_mode=permission_mode).settings()
    chosen, flows, problems = _find(flow, project_root(folder))
    with scratch("run") as kept, tools_alone(folder, flags, kept) as alone:
        # Workflows are not among the tools here: one within another is run by its steps, each of which is judged.
        entries, results = alone.registry.entries(), alone.guarded.results
        tools = {entry.tool.name: entry.tool for entry in entries if entry.origin != "workflow"}
        if chosen and not problems:
            flows = {name: one for name, one in flows.items() if name not in tools}
            problems = name_conflict(chosen, tools) or check(chosen, tools, flows)
        if chosen is None or problems:
            return _refused(problems, output_format)
        given, wrong = arguments(chosen, _given(chosen, param or (), params_json))
        if wrong:
            raise UsageError(f"The parameters do not fit: {' '.join(wrong)}", _takes(chosen))
        if dry_run:
            return _plan(chosen, tools, output_format)
        work = _perform(chosen, given, Runtime(lambda: tools, flows, results), output_format)
        return run_loop(_then_close(work, alone))


def _find(named: str, root: Path) -> tuple[Flow | None, Mapping[str, Flow], Sequence[Problem]]:
    """Return the workflow with that name or file, and all known workflows. A file given by path needs no trust.

    Raises:
        UsageError: there is no such workflow.
    """
    from ba_tui.features.plans.engine.plan_mode import flow_folders  # noqa: PLC0415

    own = places().config
    trusted = Trust(places()).trusted(root)
    flows, broken = load_flows(flow_folders(bundled("config"), own, root if trusted else None))
    path = Path(named)
    if path.suffix in {".yaml", ".yml"} or path.exists():
        if path.is_dir():
            raise UsageError(f"{named} is a folder.", "Name a workflow file.")
        chosen, problems = read_flow(path)
        return chosen, flows | ({chosen.name: chosen} if chosen else {}), problems
    if named in flows:
        return flows[named], flows, ()
    if at_fault := [problem for problem in broken if Path(problem.where).stem == named]:
        return None, flows, at_fault
    hint = correction(named, flows, "Name a .yaml file, or put it into a workflows folder.")
    hint = f'To ask the model: ba -p "{named}".' if " " in named else hint
    if not trusted and (root / ".ba" / "workflows").is_dir():
        hint += f" Those of {root} have changed or are not trusted: run ba trust."
    raise UsageError(f"There is no workflow {named!r}.", hint)


def _given(flow: Flow, params: Sequence[str], file: Path | None) -> dict[str, Any]:
    """Return the parameters of the command line, merged over those of the file."""
    given: dict[str, Any] = {}
    if file is not None:
        try:
            text = read_input().decode("utf-8-sig") if str(file) == "-" else file.read_text("utf-8-sig")
            loaded: Any = json.loads(text)
        except (OSError, ValueError) as error:
            raise UsageError(f"{file} can't be read as JSON: {error}.", "It must hold one JSON object.") from error
        if not isinstance(loaded, dict):
            raise UsageError(f"{file} does not hold a JSON object.", 'Write {"name": value, …}.')
        given = cast("dict[str, Any]", loaded)
    typed: dict[str, Any] = {}
    for text in params:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UsageError(f"--param {text!r} is not NAME=VALUE.", _takes(flow))
        if name in typed:
            raise UsageError(f"--param {name} is given twice.", 'Give a list as JSON: --param \'names=["a", "b"]\'.')
        typed[name] = _value(value, flow.takes.get(name))
    return given | typed


def _value(text: str, schema: Any) -> Any:
    """Return ``text`` as the parameter's type: a text stays unchanged, everything else is parsed as JSON."""
    kinds: Any = cast("dict[str, Any]", schema).get("type", "string") if isinstance(schema, dict) else "string"
    if "string" in kinds:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _takes(flow: Flow) -> str:
    return f"{flow.name} takes {', '.join(flow.takes)}." if flow.takes else f"{flow.name} takes no parameters."


def _refused(problems: Sequence[Problem], format: Format) -> int:
    if format == "json":
        told = [{"file": item.where, "line": item.line, "key": item.key, "message": item.text} for item in problems]
        _print({"schema_version": SCHEMA, "ok": False, "stop_reason": "invalid", "problems": told})
    for problem in problems:
        say(str(problem))
    return USAGE


def _plan(flow: Flow, tools: Mapping[str, Tool], format: Format) -> int:
    """Return every step with its line and its effect."""
    steps: list[dict[str, Any]] = []
    for step in walk(flow.steps):
        use = step.work if isinstance(step.work, Invocation) else None
        effect = (tools[use.name].effect.value if use.name in tools else "workflow") if use else ""
        what = use.name if use else KINDS.get(type(step.work).__name__, "approval")
        steps.append({"step": step.id, "line": flow.line(step), "does": what, "effect": effect})
    if format == "json":
        _print({"schema_version": SCHEMA, "flow": flow.name, "version": flow.version, "ok": True, "steps": steps})
        return OK
    for row in steps:
        sys.stdout.write(f"{row['line']:>4}  {row['step']:<24}  {row['does']}  {row['effect']}".rstrip() + "\n")
    return OK


@dataclass
class _RunOutcome:
    """The outcome of a run."""

    reason: str = "error"
    result: ToolResult | None = None
    error: ErrorInfo | None = None
    denied: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    @property
    def facts(self) -> dict[str, Any]:
        return self.result.meta.get("flow", {}) if self.result else {}

    @property
    def refused(self) -> list[dict[str, str]]:
        """Record a call that a rule or the mode denied without a question."""
        if self.error is None or self.error.kind != "permission_denied":
            return []
        steps: list[dict[str, Any]] = self.facts.get("steps", [])
        failed = next((row for row in steps if not row["ok"]), None) or dict[str, Any]()
        return [{"tool": failed.get("tool", ""), "question": "", "reason": self.error.message, "rule": ""}]

    @property
    def code(self) -> int:
        if self.reason in {"cancelled", "limit"}:
            return INTERRUPTED if self.reason == "cancelled" else LIMIT
        if self.denied or self.refused:
            return DENIED
        if self.error is None:
            return OK
        return INFRASTRUCTURE if self.facts else USAGE


async def _then_close(work: Coroutine[Any, Any, int], tools: SessionTools) -> int:
    try:
        return await work
    finally:
        await tools.close()


async def _perform(flow: Flow, given: dict[str, Any], runtime: Runtime, format: Format) -> int:
    started, ending, lines = time.monotonic(), _RunOutcome(), _StepPrinter()
    turn = Turn()
    task = asyncio.create_task(_work(flow, given, runtime, Branch(turn, Transcript()), ending))
    turn.run(task)
    with interrupts(turn.cancel):
        async for event in turn:
            lines.apply(event)
            if isinstance(event, Asked):
                asked = event.question
                facts = {"tool": asked.tool, "question": asked.text, "reason": asked.reason, "rule": asked.rule or ""}
                ending.denied.append(facts)
                turn.answer(event.ask_id, denial(asked))
    await task
    lines.finish()
    _report(flow, ending, started, format)
    return ending.code


async def _work(flow: Flow, given: dict[str, Any], runtime: Runtime, branch: Branch, ending: _RunOutcome) -> None:
    try:
        ending.result = await run_flow(flow, given, Call("run", branch), runtime)
        ending.reason, ending.error = "done", ending.result.error
    except asyncio.CancelledError:
        ending.reason = "cancelled"
    except StopTurn as stop:
        ending.reason, ending.error = "limit", stop.info()
    finally:
        branch.emit(TurnEnded("done" if ending.reason == "done" else "error"))


class _StepPrinter:
    """Prints the reports of steps to stderr, line by line."""

    def __init__(self) -> None:
        self._rest = ""

    def apply(self, event: Event) -> None:
        match event:
            case ToolProgress(text=text):
                *whole, self._rest = (self._rest + text).split("\n")
                for line in whole:
                    sys.stderr.write(paintable(line, newlines=False) + "\n")
                sys.stderr.flush()
            case Notice(text=text, hint=hint):
                say(with_hint(text, hint))
            case _:
                pass

    def finish(self) -> None:
        if self._rest:
            sys.stderr.write(paintable(self._rest, newlines=False) + "\n")


def _report(flow: Flow, ending: _RunOutcome, started: float, format: Format) -> None:
    for asked in ending.denied:
        cure = f" Allow it with --allow '{asked['rule']}'." if asked["rule"] else ""
        say(f"Denied, because nobody can be asked here: {asked['question']} {asked['reason']}{cure}")
    if ending.error:
        say(ending.error.with_hint)
    output = ending.facts.get("output")
    if format == "json":
        report: dict[str, Any] = {
            "schema_version": SCHEMA,
            "flow": flow.name,
            "version": flow.version,
            "ok": ending.reason == "done" and ending.error is None,
            "stop_reason": ending.reason,
            "output": output,
            "steps": ending.facts.get("steps", []),
            "denied": ending.denied or ending.refused,
            "duration_ms": round((time.monotonic() - started) * 1000),
        }
        if ending.error:
            report["error"] = {"kind": ending.error.kind, "message": ending.error.message, "hint": ending.error.hint}
        _print(report)
    elif output is not None:
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)
        sys.stdout.write(paintable(text).rstrip("\n") + "\n")


def _print(value: dict[str, Any]) -> None:
    # ASCII keeps control characters and bidi marks of foreign text out of a terminal.
    sys.stdout.write(json.dumps(value, ensure_ascii=True, indent=2) + "\n")
