"""``ba plan``: makes and executes plans without the app; lists, shows, exports and resumes the plans of sessions.

stdout has the answer, the plan or JSON; progress goes to stderr.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ba_tui.cli.application import Allow, AsRoot, Model, PermissionMode
from ba_tui.cli.config import Cwd, folder_of, print_line, say
from ba_tui.cli.streams import write_output
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import BaError, SessionNotFound, StorageError, UsageError, run_loop
from ba_tui.core.events import Notice
from ba_tui.core.ports.agents import Work
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.questions import Question, Reply
from ba_tui.core.services import Library, Services, begin
from ba_tui.core.start import Start
from ba_tui.core.teamwork import Plan
from ba_tui.core.text.wording import one_line
from ba_tui.faces.headless import Printer, denial, print_turn
from ba_tui.faces.run_result import INFRASTRUCTURE, OK, USAGE, RunResult
from ba_tui.features.plans.session import PlanSession
from ba_tui.flags import ChatFlags, Mode
from ba_tui.plotting.plan_exports import as_json, plan_of
from ba_tui.plotting.plan_graph import graph_text, tree_text
from ba_tui.plotting.plan_signs import ASCII, STATES, UNICODE, counted, words

BRIEF = 60
"""Columns of a goal in a list."""
app = typer.Typer(no_args_is_help=True)
Session = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="Id of a session, or words of its title; else the newest with a plan."),
]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
Format = Literal["text", "json", "stream-json"]
Output = Annotated[Format, typer.Option("--output-format", help="What is printed.")]


@app.command("list")
def list_(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Look into the newest N sessions.")] = 50,
    json_: Json = False,
    cwd: Cwd = None,
) -> int:
    """Print the newest plan of each session of this folder: how far it came, and what it is for."""
    found = list(_plans(_library(ctx, cwd), limit))
    if json_:
        rows = [
            {"session_id": info.id, "plan_id": plan.id, "state": plan.state, "goal": plan.task.goal,
             "steps": len(plan.subtasks), "completed": sum(step.status == "completed" for step in plan.subtasks)}
            for info, plan in found
        ]  # fmt: skip
        print_line(json.dumps(rows, indent=2))
        return 0
    for info, plan in found:
        goal = one_line(words(plan.task.goal or plan.task.original_query), BRIEF)
        print_line(f"{info.id}  {counted(plan):<14}  {STATES[plan.state]:<12}  {goal}")
    if not found:
        say("No session of this folder has a plan. Make one: ba plan run GOAL.")
    return 0


@app.command()
def show(
    ctx: typer.Context,
    session: Session = "",
    graph: Annotated[bool, typer.Option("--graph", help="As boxes and lines, not as a tree.")] = False,
    ascii_: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters.")] = False,
    json_: Json = False,
    cwd: Cwd = None,
) -> int:
    """Print the newest plan of a session as a tree, each step with its state."""
    _, plan = _one(_library(ctx, cwd), session)
    if json_:
        print_line(json.dumps(as_json(plan), indent=2, default=str))
        return 0
    plain = ascii_ or not (sys.stdout.encoding or "utf-8").lower().replace("-", "").startswith("utf")
    signs = ASCII if plain else UNICODE
    print_line(words(plan.task.goal or plan.task.original_query))
    print_line(f"{STATES[plan.state]}, {counted(plan)} done")
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
    for line in graph_text(plan, width, signs) if graph else tree_text(plan, signs):
        print_line(line)
    for step in plan.subtasks:
        if step.error:
            print_line(f"{words(step.id)}: {words(step.error)}")
    return 0


@app.command()
def export(
    ctx: typer.Context,
    session: Session = "",
    format: Annotated[
        Literal["mermaid", "json"] | None,
        typer.Option("--format", "-f", help="By default from FILE's name, or mermaid."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Not to stdout.")] = None,
    cwd: Cwd = None,
) -> int:
    """Write the newest plan of a session as a Mermaid flowchart or as JSON. Recognised keys are left out."""
    library = _library(ctx, cwd)
    info, _ = _one(library, session)
    chosen = format or ("json" if output and output.suffix == ".json" else "mermaid")
    text = "".join(library.export(info.id, "plan-json" if chosen == "json" else chosen))
    if output is None:
        sys.stdout.write(text)
        return 0
    write_output(output, [text], private=True)
    say(f"Wrote {output}.")
    return 0


@app.command()
def run(
    goal: Annotated[list[str], typer.Argument(metavar="GOAL", help="What you want to have done.")],
    output_format: Output = "text",
    permission_mode: PermissionMode = None,
    allow: Allow = None,
    model: Model = None,
    yes_bypass_as_root: AsRoot = False,
    cwd: Cwd = None,
) -> int:
    """Plan a goal and carry the plan out. Nobody is asked: what would ask is denied, as in ba -p.

    \b
    Exit codes:
      0 every step is done · 1 usage or configuration · 2 a step failed
      3 a limit was reached · 4 an approval was denied · 130 interrupted
    """
    words = " ".join(goal).strip()
    if not words:
        raise UsageError("The goal is empty.", "Say what you want to have done: ba plan run GOAL.")
    flags = _flags(permission_mode, allow, model, yes_bypass_as_root)

    def work(conversation: Conversation) -> Work:
        return _room(conversation).plan(words)

    return _carry_out(flags, folder_of(cwd), (f"/plan {words}", "", work), output_format)


@app.command()
def resume(  # noqa: PLR0913 - typer reads one parameter a flag
    ctx: typer.Context,
    session: Session = "",
    output_format: Output = "text",
    permission_mode: PermissionMode = None,
    allow: Allow = None,
    model: Model = None,
    yes_bypass_as_root: AsRoot = False,
    cwd: Cwd = None,
) -> int:
    """Continue the newest plan of a session: what is done is kept. Exit codes as ba plan run."""
    info, plan = _one(_library(ctx, cwd), session)
    flags = _flags(permission_mode, allow, model, yes_bypass_as_root)

    def work(conversation: Conversation) -> Work:
        return _room(conversation).resume(plan.id)

    return _carry_out(flags, folder_of(cwd), ("/plan resume", info.id, work), output_format)


def _room(conversation: Conversation) -> Any:
    if conversation.inventory.feature(PlanSession) is None:
        raise UsageError("This session can't carry out plans.", "")
    return conversation.inventory.feature(PlanSession)


def _flags(mode: Mode | None, allow: list[str] | None, model: str | None, as_root: bool) -> dict[str, object]:
    if mode == "bypass":
        from ba_tui.permissions.verdicts import check_bypass  # noqa: PLC0415 - only where it is used

        check_bypass(as_root)
    return ChatFlags(permission_mode=mode, allow=allow or None, model=model).settings()


def _carry_out(
    flags: dict[str, object],
    folder: Path,
    what: tuple[str, str, Callable[[Conversation], Work]],
    format: Format,
) -> int:
    """Return the exit code. ``what``: the prompt that the session shows, the session to resume, the work."""
    from ba_tui.assembly import connect  # noqa: PLC0415 - a quarter of a second, and --help needs none

    prompt, resumed, work = what
    services = connect({**flags, "output_format": format}, folder, strict=True)
    start = Start(prompt, resumed or None, all=True)
    code = run_loop(carry_out(services, start, Printer(format, sys.stdout, sys.stderr), work))
    if services.tidy:
        services.tidy()
    return code


def _library(ctx: typer.Context, cwd: Path | None) -> Library:
    given: Any = ctx.obj
    if given is not None:
        return given
    from ba_tui.assembly import connect  # noqa: PLC0415 - see _carry_out

    return connect({}, folder_of(cwd)).library


def _plans(library: Library, limit: int) -> Iterator[tuple[SessionInfo, Plan]]:
    """The sessions of this folder that have a plan, newest first."""
    for info in list(library.sessions())[:limit]:
        plan = _plan_of(library, info.id)
        if plan:
            yield info, plan


def _plan_of(library: Library, id: str) -> Plan | None:
    try:
        return plan_of(json.loads("".join(library.export(id, "plan-json"))))
    except (UsageError, StorageError):
        return None


def _one(library: Library, session: str) -> tuple[SessionInfo, Plan]:
    """Return the session that matches. Raises UsageError if there is none, or it has no plan."""
    if not session:
        found = next(_plans(library, 50), None)
        if found is None:
            raise UsageError("No session of this folder has a plan.", "Make one: ba plan run GOAL.")
        return found
    try:
        info = library.find(session)
    except SessionNotFound as error:
        raise UsageError(str(error), error.hint) from None
    plan = _plan_of(library, info.id)
    if plan is None:
        raise UsageError(f"The session {info.id} has no plan.", "ba plan list shows which sessions have one.")
    return info, plan


async def carry_out(services: Services, start: Start, printer: Printer, work: Callable[[Conversation], Work]) -> int:
    """Run the work of ``start``'s session to its end and print it; return the exit code."""
    for notice in services.notices:
        printer.event(notice)
    try:
        conversation = begin(services.library, start)
    except BaError as error:
        printer.failed(error)
        return USAGE
    try:
        for event in await conversation.history():
            if isinstance(event, Notice) and event.damage:
                printer.event(event)
        if missing := services.setup.missing(conversation.model):
            printer.failed(BaError(missing))
            return USAGE
        turn = conversation.say(start.prompt, work(conversation))
    except BaError as error:
        await conversation.close()
        printer.failed(error)
        return USAGE if error.kind == "usage" else INFRASTRUCTURE
    outcome = RunResult(conversation.id, conversation.model)
    await print_turn(conversation, turn, printer, outcome, agreed)
    return code_of(outcome)


def agreed(question: Question) -> Reply:
    """Approve the plan that was requested on the command line; deny everything else that needs approval."""
    return Reply("once", by="mode") if question.kind == "plan" else denial(question)


def code_of(outcome: RunResult) -> int:
    """Return the run's exit code; for a successful run, whether the whole plan is completed."""
    record = outcome.plans.newest
    if outcome.code != OK or record is None:
        return outcome.code
    return OK if record.plan.state == "completed" else INFRASTRUCTURE
