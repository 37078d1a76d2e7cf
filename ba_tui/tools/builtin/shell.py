"""The tool shell: one bash command in the session's folder, and what the model reads of it.

The room processes starts and ends them; whether a command may run is the permission guard's business.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from ba_tui.core.events import PERSON
from ba_tui.core.results import UNREAD, CommandText, Display, StateChange, ToolResult, failure
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Call, Effect, Run, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import PathRefused, Workspace
from ba_tui.processes.limits import ProcessLimits
from ba_tui.processes.supervised import Program
from ba_tui.processes.terminal_text import Capture, lines_cut, plain, shortened
from ba_tui.settings.variable_names import holds_key, steers
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed
from ba_tui.tools.running.background import ShellResult, Shells, Work
from ba_tui.tools.running.command_runner import UNCONFINED, CommandRunner, RunRequest
from ba_tui.tools.running.verdicts import reporting

RunIn: TypeAlias = Callable[[str, Path, float, Call], Awaitable[ToolResult]]
"""Runs a text in a folder for at most so many seconds, in the profile of a call."""


async def run_steps(
    workspace: Workspace, call: Call, run: RunIn, begin: tuple[Path, float], undecided: Callable[[], bool]
) -> ToolResult:
    """The results of ``call.steps`` as one. ``begin``: the folder that the first one starts in, and the seconds that
    all of them have. ``undecided``: whether a step changed protected files, and the user has not agreed to that."""
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
    # A step that failed before a `;` fails the list, whatever came of the steps after it.
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
"""Bytes of a command; beyond, systems refuse to start a program."""
DEFAULT_SECONDS = 120
MAX_SECONDS = 600
OWN_SECONDS = 7 * 86_400.0
"""How long a command of the person's own may run: they see it and can stop it."""
OUTPUT_CHARS = 29_000


@frozen
class Shell:
    """``path`` of bash, None where there is none; ``environment`` of ba; ``secret``: more variables to keep back;
    ``keep``: variables to hand on all the same, by name or pattern; ``limits`` of what a command may use; ``more``:
    variables of the settings."""

    path: str | None
    environment: Mapping[str, str]
    secret: Collection[str] = ()
    keep: Collection[str] = ()
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    more: Mapping[str, str] = field(default_factory=dict[str, str])

    def inherited(self) -> dict[str, str]:
        """What commands see: no key, token or password, nothing that makes bash run or read something first, or that
        makes their words mean something else than was judged."""
        kept = {name: value for name, value in {**self.environment, **self.more}.items() if self._open(name)}
        return {**kept, "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}

    def withheld(self) -> tuple[str, ...]:
        """The values of the variables that commands do not see because they hold keys."""
        given = {**self.environment, **self.more}
        return tuple(value for name, value in given.items() if not steers(name) and not self._open(name))

    def program(self, script: str, folder: Path, seconds: float | None = None) -> Program:
        """``script`` in ``folder``; ``seconds`` bound its processor time."""
        if self.path is None:
            raise Failed("dependency_error", "bash is not installed, so the shell tool is off.", "Use the file tools.")
        # What bash says goes to the supervisor: how the parts of the script ended, and where the next command starts.
        argv = (self.path, "--noprofile", "--norc", "-c", reporting(script))
        return Program(argv, folder, self.inherited(), self.limits.for_seconds(seconds))

    def _open(self, name: str) -> bool:
        if steers(name):
            return False
        if any(fnmatchcase(name, pattern) for pattern in self.keep):
            return True
        return name not in self.secret and not holds_key(name)


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
            raise Failed("resource_error", f"The command could not be started: {error.strerror or error}.") from error

    tool = command_tool("shell", "command", definition, run)
    return tool


def command_tool(name: str, argument: str, definition: Definition, run: Run) -> Tool:
    """A tool that runs the text in ``argument`` and sees to its time limit itself."""

    async def preview(args: Mapping[str, Any]) -> Display | None:
        return CommandText(args[argument])

    facts = ToolFacts(category="shell", target=argument, bulky=True)
    schema = definition.input_schema
    return Tool(name, definition.description, schema, run, Effect.EXECUTE, timeout=None, facts=facts, preview=preview)


def start_folder(workspace: Workspace, kept: str | None) -> Path:
    """The folder the session's last command ended in, while it can be entered inside the workspace; else the root."""
    with suppress(PathRefused):
        # What was kept may have replacement characters for bytes of a name that are no text.
        if kept and _enterable(folder := workspace.named(kept)) and workspace.contains(folder.resolve()):
            return folder
    return workspace.root


def started_in(workspace: Workspace, call: Call) -> Path:
    """The folder that a command of ``call`` starts in."""
    return start_folder(workspace, call.branch.transcript.cwd)


def check(text: str, what: str) -> None:
    """Refuse what no program can be given as an argument."""
    if not text.strip():
        raise Failed("invalid_parameters", f"The {what} is empty.")
    if "\0" in text:
        raise Failed("invalid_parameters", f"The {what} holds a NUL character.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise Failed("invalid_parameters", f"The {what} holds text that is no Unicode.") from error
    if size > MAX_COMMAND_BYTES:
        message = f"The {what} is longer than {MAX_COMMAND_BYTES // 1000} KB."
        raise Failed("invalid_parameters", message, "Write a script with write_file and run that.")


def _begun(job: Work, shown: str) -> ToolResult:
    where = " and in the sandbox" if job.process.confined else ""
    text = (
        f"Started in the background{where} as {job.id}. shell_output reads what it prints, shell_kill ends it; "
        "you are told when it has ended."
    )
    return ToolResult(text, CommandText(job.command, shown), summary=job.id)


def _result(workspace: Workspace, folder: Path, ran: tuple[ShellResult, list[str]], seconds: float) -> ToolResult:
    outcome, notes = ran
    process = outcome.job.process
    now, note = _moved(workspace, folder, process.folder)
    if process.over:
        notes.append(f"ended: more than {process.over} processes ran")
    if process.left:
        notes.append(f"{process.left} process{'' if process.left == 1 else 'es'} left in the background: ended")
    if note:
        notes.append(note)
    result = observed(outcome, workspace.shown(folder), seconds, notes)
    if result.is_error or outcome.moved or now is None:
        return result
    return replace(result, changes=StateChange(cwd=now))


def observed(outcome: ShellResult, shown: str, seconds: float, notes: list[str]) -> ToolResult:
    """What the model reads of a command in the folder ``shown``, with ``notes`` at the end when it ran through."""
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
    """Words about an output that is kept whole, or should be."""
    printed = job.process.output
    size = f"{printed.total:,} bytes"
    how = f"{printed.trouble} of {size}" if printed.trouble else f"all {size}"
    return [f"{how}: read_artifact {printed.ref}"] if printed.ref else [printed.trouble] if printed.trouble else []


def _enterable(folder: Path) -> bool:
    """Whether a command can start there. It may be gone, or its rights taken away, or those of one above it."""
    return os.access(folder, os.X_OK) and folder.is_dir()


def _moved(workspace: Workspace, before: Path, after: str) -> tuple[str | None, str]:
    """Where the next command starts, when that is another folder, and words for it."""
    if not after or after == str(before):
        return None, ""
    folder = Path(after)
    if not _enterable(folder) or folder.resolve() == before.resolve():
        return None, ""
    if workspace.contains(folder.resolve()):
        return after, f"the folder is now {workspace.shown(folder)}"
    return str(workspace.root), f"{after} is outside the workspace; the next command starts in its root"
