"""The tools shell, shell_output, shell_kill and python: commands and code in the session's folder.

``processes`` starts and ends commands; the permission guard decides whether they may run.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from ba_tui.core.events import PERSON
from ba_tui.core.results import UNREAD, CommandText, Display, StateChange, ToolResult, failure
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Call, Run, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.processes.terminal_text import Capture, lines_cut, plain, shortened
from ba_tui.processes.values import ProcessLimits, Program
from ba_tui.tools.command_runner import UNCONFINED, CommandRunner, RunRequest
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failures import ToolFailure
from ba_tui.tools.shells import Shell, ShellResult, Shells, Work, enterable, start_folder

RunIn: TypeAlias = Callable[[str, Path, float, Call], Awaitable[ToolResult]]
"""Runs a command in a folder for at most so many seconds, in the profile of a call."""


async def run_steps(
    workspace: Workspace, call: Call, run: RunIn, begin: tuple[Path, float], undecided: Callable[[], bool]
) -> ToolResult:
    """Run ``call.steps`` and return their results as one. ``begin``: the first folder, and the seconds for all steps.
    ``undecided``: whether a step changed protected files without the user's consent."""
    folder, seconds = begin
    until = time.monotonic() + seconds
    done: list[ToolResult] = []
    failed = False
    for number, step in enumerate(call.steps):
        if done and await asyncio.to_thread(undecided):
            rest = "; ".join(each.text for each in call.steps[number:])
            done[-1] = replace(done[-1], text=f"{done[-1].text}\n[not run because of that: {rest}]")
            break
        if failed and step.joined:
            continue
        within = replace(call, profile=step.profile)
        result = await run(step.text, folder, max(until - time.monotonic(), 0.1), within)
        done.append(result)
        failed = result.exit_status != 0
        if result.is_error or (isinstance(result.display, CommandText) and result.display.exit_code is None):
            break
        if result.changes and result.changes.cwd:
            folder = Path(result.changes.cwd)
    return _together(workspace, done, begin[0])


def _together(workspace: Workspace, done: list[ToolResult], begun: Path) -> ToolResult:
    last = done[-1]
    texts = [result.text for result in done if result.text != "(no output)"]
    shown = [result.display for result in done if isinstance(result.display, CommandText)]
    display = last.display
    if isinstance(display, CommandText):
        command = "\n".join(each.command for each in shown)
        display = replace(display, command=command, cwd=workspace.shown(begun), output="".join(e.output for e in shown))
    summary = last.summary
    # A step that failed before a `;` fails the list, whatever the later steps return.
    if lost := [result for result in done[:-1] if result.failed and not result.is_error]:
        failed = [each.display.command for each in lost if isinstance(each.display, CommandText)]
        parts = [f"`{one_line(command, 60)}` failed" for command in failed]
        summary = " · ".join((summary, *parts))
        if isinstance(display, CommandText) and not display.broke:
            display = replace(display, failed=True)
    cwd = next((result.changes.cwd for result in reversed(done) if result.changes and result.changes.cwd), None)
    changes = StateChange(cwd=cwd) if cwd and not last.is_error else None
    return replace(last, text="\n".join(texts) or "(no output)", display=display, changes=changes, summary=summary)


MAX_COMMAND_BYTES = 100_000
"""Bytes of a command; systems refuse to start programs with longer arguments."""
DEFAULT_SECONDS = 120
MAX_SECONDS = 600
OWN_SECONDS = 7 * 86_400.0
"""Time limit of the user's own commands, which the user can stop."""
OUTPUT_CHARS = 29_000


def shell_tool(
    definition: Definition,
    workspace: Workspace,
    shell: Shell,
    shells: Shells | None = None,
    runner: CommandRunner = UNCONFINED,
) -> Tool:
    kept = shells or Shells()

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        script: str = args["command"]
        check(script, "command")
        folder = await asyncio.to_thread(start_folder, workspace, call.branch.transcript.cwd)
        own = call.branch.name == PERSON
        seconds = OWN_SECONDS if own else min(float(args.get("timeout", DEFAULT_SECONDS)), MAX_SECONDS)
        try:
            if args.get("background"):
                make = partial(shell.program, folder=folder)
                begun = await runner.start(RunRequest(tool, args, "command", make, folder), kept, call)
                return _begun(begun, workspace.shown(folder))

            async def run_in(text: str, place: Path, left: float, call: Call) -> ToolResult:
                make = partial(shell.program, folder=place, seconds=left)
                request = RunRequest(tool, {**args, "command": text}, "command", make, place, left)
                ran = await runner.run(request, kept, call)
                return await asyncio.to_thread(_result, workspace, place, ran, left)

            if call.steps:
                return await run_steps(workspace, call, run_in, (folder, seconds), runner.undecided)
            return await run_in(script, folder, seconds, call)
        except OSError as error:
            raise ToolFailure(
                "resource_error", f"The command could not be started: {error.strerror or error}."
            ) from error

    tool = command_tool(definition, run)
    return tool


def command_tool(definition: Definition, run: Run) -> Tool:
    """Return a tool that runs the text in its target argument and enforces its own time limit."""

    async def preview(args: Mapping[str, Any]) -> Display | None:
        return CommandText(args[definition.facts.target])

    return definition.tool(run, preview=preview)


def check(text: str, what: str) -> None:
    """Raise ToolFailure for text that can't be the argument of a program."""
    if not text.strip():
        raise ToolFailure("invalid_parameters", f"The {what} is empty.")
    if "\0" in text:
        raise ToolFailure("invalid_parameters", f"The {what} holds a NUL character.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise ToolFailure("invalid_parameters", f"The {what} holds text that is no Unicode.") from error
    if size > MAX_COMMAND_BYTES:
        message = f"The {what} is longer than {MAX_COMMAND_BYTES // 1000} KB."
        raise ToolFailure("invalid_parameters", message, "Write a script with write_file and run that.")


def _begun(job: Work, shown: str) -> ToolResult:
    where = " and in the sandbox" if job.process.confined else ""
    text = (
        f"Started in the background{where} as {job.id}. shell_output reads what it prints, shell_kill ends it; "
        "you get a notice when it has ended."
    )
    return ToolResult(text, CommandText(job.command, shown), summary=job.id)


def _result(workspace: Workspace, folder: Path, ran: tuple[ShellResult, list[str]], seconds: float) -> ToolResult:
    outcome, notes = ran
    process = outcome.job.process
    now, note = _moved(workspace, folder, process.program.folder)
    if process.program.over:
        notes.append(f"ended: more than {process.program.over} processes ran")
    if process.program.left:
        notes.append(
            f"{process.program.left} process{'' if process.program.left == 1 else 'es'} left in the background: ended"
        )
    if note:
        notes.append(note)
    result = observed(outcome, workspace.shown(folder), seconds, notes)
    if result.is_error or outcome.moved or now is None:
        return result
    return replace(result, changes=StateChange(cwd=now))


def observed(outcome: ShellResult, shown: str, seconds: float, notes: list[str]) -> ToolResult:
    """Return the result of a command in the folder ``shown``; ``notes`` are added if the command was not stopped."""
    job = outcome.job
    if note := job.process.memory.note:
        notes = [*notes, note]
    printed, output, code = job.process.output, job.process.output.text(), job.exit_code
    display = replace(job.ending(shown, output), lines=printed.lines if printed.total > Capture.HEAD else 0)
    text = plain(output).rstrip("\n")
    if printed.total > Capture.HEAD:
        text = shortened(text, OUTPUT_CHARS)
    unread = lines_cut(text) if printed.total > Capture.HEAD else 0
    stored = _stored(job)
    if outcome.moved:
        job.seen = printed.total
        head = f"Moved to the background by the user, as {job.id}: shell_output reads what else it prints."
        text = f"{head}\nOutput so far:\n{text or '(none)'}"
        return ToolResult(text, display, summary=job.id)
    if outcome.timed_out or code is None:
        message = f"The command ran longer than {seconds:g} s and was ended."
        if not outcome.timed_out:
            message = "The command was ended together with its supervisor."
        failed = failure("timeout" if outcome.timed_out else "execution_error", message, display=display)
        said = [f"[{note}]" for note in (*notes, *stored)]
        so_far = "\n".join([failed.text, "Output so far (partial):", text or "(none)", *said])
        return replace(failed, text=so_far, artifact=printed.ref, meta={"partial": bool(printed.total)})
    verdict = job.verdict
    notes = [*([f"exit code {code}"] if code else []), *verdict.parts, *notes, *stored]
    text = text or "(no output)"
    if notes:
        text += f"\n[{'; '.join(notes)}]"
    cut = f", {printed.trouble}" if printed.trouble else ""
    cut += "".join(f" · {part}" for part in (*([verdict.answer] if verdict.answer else ()), *verdict.parts))
    meta = {UNREAD: unread} if unread else {}
    return ToolResult(text, display, summary=f"exit {code}{cut}", artifact=printed.ref, meta=meta)


def _stored(job: Work) -> list[str]:
    """Return a note on where the whole output is stored, or why it is not."""
    printed = job.process.output
    size = f"{printed.total:,} bytes"
    how = f"{printed.trouble} of {size}" if printed.trouble else f"all {size}"
    return [f"{how}: read_artifact {printed.ref}"] if printed.ref else [printed.trouble] if printed.trouble else []


def _moved(workspace: Workspace, before: Path, after: str) -> tuple[str | None, str]:
    """Return the next command's folder if it changed, and a note."""
    if not after or after == str(before):
        return None, ""
    folder = Path(after)
    if not enterable(folder) or folder.resolve() == before.resolve():
        return None, ""
    if workspace.contains(folder.resolve()):
        return after, f"the folder is now {workspace.shown(folder)}"
    return str(workspace.root), f"{after} is outside the workspace; the next command starts in its root"


MAX_WAIT_SECONDS = 300.0
NOTHING = "(nothing new)"


def shell_output_tool(definition: Definition, shells: Shells) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        job = shells.find(args["id"])
        await _wait(job, min(float(args.get("wait", 0)), MAX_WAIT_SECONDS), args)
        ended, ref = job.ended, job.process.output.ref
        text = await asyncio.to_thread(_read, job, args)
        if ended:
            job.told = True
        display = job.ending("", await asyncio.to_thread(shells.output, job.id))
        return ToolResult(f"[{state(job)}]\n{text}", display, summary=_summary(job), artifact=ref)

    return definition.tool(run)


def shell_kill_tool(definition: Definition, shells: Shells) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        job = shells.find(args["id"])
        already = job.ended
        await shells.kill(job.id)
        text = await asyncio.to_thread(_read, job, {})
        said = f"{job.id} had ended already" if already else f"{job.id} was ended, and all it had started"
        display = job.ending("", await asyncio.to_thread(shells.output, job.id))
        printed = f"\nNot read yet:\n{text}" if text != NOTHING else ""
        ref = job.process.output.ref
        return ToolResult(f"{said}.\n[{state(job)}]{printed}", display, summary=_summary(job), artifact=ref)

    return definition.tool(run)


def state(job: Work) -> str:
    """Return one line about a shell: its state, duration, amount of output, and where the output is stored."""
    output = job.process.output
    seconds = (job.until or time.time()) - job.since
    if not job.ended:
        doing = "running"
    elif job.killed:
        doing = "was killed"
    else:
        doing = "ended" if job.exit_code is None else f"ended with exit code {job.exit_code}"
        doing = ", ".join((doing, *job.verdict.parts))
    parts = [f"{job.id} {doing}", f"{seconds:.0f} s", f"{output.total:,} bytes printed"]
    if output.ref:
        parts.append(f"{'' if output.trouble else 'all of them: '}read_artifact {output.ref}")
    if output.trouble:
        parts.append(output.trouble)
    return ", ".join(parts)


def _summary(job: Work) -> str:
    if not job.ended:
        return "running"
    if job.killed:
        return "killed"
    if job.exit_code is None:
        return "ended"
    return " · ".join((f"exit {job.exit_code}", *job.verdict.parts))


async def _wait(job: Work, seconds: float, args: Mapping[str, Any]) -> None:
    """Wait for output, for the end of the command, or for the time limit."""
    stirred = asyncio.Event()
    stop = job.process.listen(lambda text: stirred.set())
    try:
        async with asyncio.timeout(seconds):
            while seconds and not job.ended:
                stirred.clear()
                if await asyncio.to_thread(_new, job, args):
                    return
                await stirred.wait()
    except TimeoutError:
        return
    finally:
        stop()


def _new(job: Work, args: Mapping[str, Any]) -> str:
    """Return the unread output that ``args`` select, without marking it as read."""
    return _chosen(_unread(job, lines="filter" in args)[1], args)


def _read(job: Work, args: Mapping[str, Any]) -> str:
    if args.get("all"):
        job.seen = job.process.output.total
        text = plain(job.process.output.text())
    else:
        gone, text, job.seen = _unread(job, lines="filter" in args)
        if gone:
            text = f"[… {gone:,} bytes before this are no longer in memory …]\n{text}"
    text = _chosen(text, args)
    return shortened(text.rstrip("\n"), OUTPUT_CHARS) or ("(nothing)" if args.get("all") else NOTHING)


def _unread(job: Work, *, lines: bool) -> tuple[int, str, int]:
    """Return the lost bytes, the unread text and its end, which never splits a character, or with ``lines`` a line."""
    ended = job.ended
    gone, data = job.process.output.after(job.seen)
    if not ended:
        if lines:
            data = data[: data.rfind(b"\n") + 1]
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        decoder.decode(data[-4:])
        data = data[: len(data) - len(decoder.getstate()[0])]
    return gone, plain(data.decode("utf-8", "replace")), job.seen + gone + len(data)


def _chosen(text: str, args: Mapping[str, Any]) -> str:
    """Return the lines that contain ``filter``, and of these the last ``tail``."""
    wanted, tail = args.get("filter"), args.get("tail")
    if wanted is None and tail is None:
        return text
    lines = text.rstrip("\n").split("\n")
    if wanted is not None:
        lines = [line for line in lines if wanted.lower() in line.lower()]
    return "\n".join(lines[-tail:] if tail else lines)


RUNNER = Path(__file__).with_name("python_runner.py")
VENVS = (".venv", "venv")


@frozen
class Python:
    """``path`` of the interpreter; None: the project's, or the one that runs ba. ``runner`` runs the program."""

    path: Path | None = None
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    runner: CommandRunner = UNCONFINED

    def interpreter(self, root: Path) -> Path:
        if self.path is not None:
            return self.path
        places = [root / venv / "bin" / "python" for venv in VENVS]
        return next((place for place in places if os.access(place, os.X_OK)), Path(sys.executable))


def python_tool(definition: Definition, workspace: Workspace, shell: Shell, python: Python, shells: Shells) -> Tool:
    """Return the tool. ``shell`` determines the environment variables."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        code: str = args["code"]
        check(code, "code")
        folder = await asyncio.to_thread(start_folder, workspace, call.branch.transcript.cwd)
        interpreter = await asyncio.to_thread(python.interpreter, workspace.root)
        seconds = min(float(args.get("timeout", DEFAULT_SECONDS)), MAX_SECONDS)

        def program(text: str) -> Program:
            environment = {"MPLBACKEND": "Agg", **shell.inherited()}
            limits = {"core": 0, **python.limits.for_seconds(seconds)}
            return Program((str(interpreter), str(RUNNER), text), folder, environment, limits)

        request = RunRequest(tool, args, "code", program, folder, seconds)
        try:
            outcome, notes = await python.runner.run(request, shells, call)
        except OSError as error:
            message = f"The interpreter {interpreter} could not be started: {error.strerror or error}."
            raise ToolFailure("resource_error", message) from error
        if outcome.job.exit_code == 128 + signal.SIGXCPU:
            notes = ["ended: it used up its processor time", *notes]
        return await asyncio.to_thread(observed, outcome, workspace.shown(folder), seconds, notes)

    tool = command_tool(definition, run)
    return tool


def limited_python_tool(
    definition: Definition,
    workspace: Workspace,
    shell: Shell,
    limits: ProcessLimits,
    runner: CommandRunner,
    shells: Shells,
) -> Tool:
    """Return the tool with the project's interpreter, or the one that runs ba."""
    return python_tool(definition, workspace, shell, Python(None, limits, runner), shells)
