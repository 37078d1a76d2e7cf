"""bash, its variables and start folder, the running commands of a conversation, and whether a command failed."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.errors import UsageError
from ba_tui.core.events import MAIN, PERSON, Steered
from ba_tui.core.messages import Message, reminder
from ba_tui.core.ports.tools import Job
from ba_tui.core.results import CommandText
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Call
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen, late
from ba_tui.permissions.paths import PathRefused, Workspace
from ba_tui.processes.values import ProcessLimits, Program
from ba_tui.settings.environment import holds_key, steers
from ba_tui.tools.failures import ToolFailure

if TYPE_CHECKING:
    from ba_tui.core.ports.tools import OutputSpill
    from ba_tui.processes.children import Listener, Process

# Loaded with the first command, and with the first pipe that fails.
make_process = late("ba_tui.processes.children:Process")
piped_words = late("ba_tui.permissions.shell.parser:piped_words")

# Whether a command failed. It failed if bash would have stopped it under ``set -e -o pipefail``. bash reports the exit
# statuses when it ends (``reporting``); the names of the parts come from bash or from the command text. Output is never
# read.

PIPE_CLOSED = 141
"""Exit status of a part of a pipe that was ended because its reader ended, such as ``head``."""
ANSWERS = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "git grep", "pgrep"), "no match"),
    **dict.fromkeys(("diff", "cmp", "comm", "git diff"), "they differ"),
}
"""Programs for which exit status 1 is an answer and no failure, with its meaning."""
CONDITIONS = frozenset({"test", "[", "[[", "((", "let", "read", "expr"})
"""Programs for which exit status 1 means a false condition: no failure within a command, but one at its end."""
LONGEST = 60

_PROGRAM = '"${BASH_COMMAND%%[!A-Za-z0-9_./+=|\\$(\\"[[:space:]-]*}"'
"""The beginning of the running command."""
_NOTE = 'case ${#_ba_ends} in ?|??|???) _ba_ends+="${PIPESTATUS[@]} '
"""Adds the statuses of the last pipe, up to a thousand characters."""
# Without output: ``set -x`` would show the commands of traps.
_ON_FAILURE = f'{{ {_NOTE}"; builtin printf -v _ba_ends "%s%.80s;" "$_ba_ends" {_PROGRAM};; esac; }} 2>/dev/null'
_BEFORE_EACH = (
    '{ case "${#PIPESTATUS[@]} ${PIPESTATUS[@]}" in "1 "*) ;; '
    f'*" "*[1-9]*" 0") {_NOTE};";; esac;; esac; }} 2>/dev/null'
)
"""Reports pipes of which the last part succeeded, which do not raise ERR."""
_LAST_WORDS = (
    f'{{ builtin printf "%.2000s " "${{_ba_ends-}}" {_PROGRAM} "!" "${{PIPESTATUS[@]}}"; builtin pwd -P; }}'
    " >&98 2>/dev/null"
)
"""Reports at the end of bash. It is expanded first, so the statuses are those of the command's own pipe."""
_END = regex(r"((?:\d{1,3} )+)([^;]*);", re.ASCII)
_MIDDLE_PIPE = regex(r"[^|]\|(?!\|)[^;&\n]*(?:;|&|\|\||\n)")
_ASSIGNED = regex(r"\w+\+?=(?!\"?\$\()\S*\s+", re.ASCII)
_SUBSTITUTED = regex(r'\w+\+?="?\$\(\s*', re.ASCII)


@frozen
class CommandVerdict:
    """The verdict on a command that ended: whether it ``failed``. ``parts``: "`pytest` exited 1" for each failed
    part that the command's exit status hides; ``answer``: the meaning of an exit status that is an answer."""

    failed: bool
    parts: tuple[str, ...] = ()
    answer: str = ""


def reporting(script: str) -> str:
    """Return ``script`` with traps that report how its parts ended. They are in the script's first line, so that
    line numbers stay; but before a script of one line, which bash repeats in syntax errors."""
    between = "; " if "\n" in script.strip() else "\n"
    traps = ["_ba_ends=", f"trap '{_LAST_WORDS}' EXIT", f"trap '{_ON_FAILURE}' ERR"]
    if _MIDDLE_PIPE.search(script.strip()):
        # The trap runs before each command and slows long loops, so it is set only if a pipe may not be the end.
        traps.append(f"trap '{_BEFORE_EACH}' DEBUG")
    return "; ".join(traps) + between + script


def judged(script: str, code: int | None, codes: Sequence[int] = (), notes: str = "") -> CommandVerdict:
    """Judge a command. ``code``: its exit status; ``codes``: those of its last pipe; ``notes``: bash's report."""
    ends = [(tuple(map(int, numbers.split())), _program(text)) for numbers, text in _END.findall(notes)]
    program = _program(notes.rpartition(";")[2]) if code else ""
    last = tuple(codes) if len(codes) > 1 else ()
    if code and (tuple(codes), program) in ends:
        # The last command is also in bash's list of failures.
        place = len(ends) - 1 - ends[::-1].index((tuple(codes), program))
        del ends[place]
    said = dict.fromkeys(words for ended, name in ends for words in _failed_parts(script, ended, name))
    said |= dict.fromkeys(_failed_parts(script, (*last[:-1], 0), program) if last else ())
    answer = ANSWERS.get(program, "") if code == 1 else ""
    return CommandVerdict(bool(said) or bool(code and not answer), tuple(said), answer)


def _failed_parts(script: str, ended: tuple[int, ...], program: str) -> Iterator[str]:
    """Yield "`pytest` exited 1" for each failed part of a pipe. ``program`` is the last part."""
    if not any(ended):
        return
    names = _names(script, len(ended)) if len(ended) > 1 else [""]
    for place, code in enumerate(ended):
        last = place == len(ended) - 1
        name = program if last and program else names[place] if names else ""
        if not code or (code == PIPE_CLOSED and not last) or (code == 1 and (name in ANSWERS or name in CONDITIONS)):
            continue
        said = f"`{name[:LONGEST]}`" if name else f"part {place + 1} of the pipe" if len(ended) > 1 else "a command"
        yield f"{said} exited {code}"


def _program(text: str) -> str:
    """Return the program of a command without its folder; for git with the subcommand."""
    text = text.strip()
    if text.startswith("(("):
        return "(("
    if found := _SUBSTITUTED.match(text):
        text = text[found.end() :].rpartition("|")[2]
    return _named(_ASSIGNED.sub("", text).replace('"', "").split())


def _named(words: Sequence[str]) -> str:
    name = words[0].rpartition("/")[2] if words else ""
    return f"git {words[1]}" if name == "git" and len(words) > 1 else name


def _names(script: str, parts: int) -> list[str]:
    """Return the programs of the only pipe in ``script`` with ``parts`` parts; none if it is ambiguous or the script
    can't be parsed."""
    found = [pipe for pipe in piped_words(script) if len(pipe) == parts]
    return [_named(words) for words in found[0]] if len(found) == 1 else []


MAX_SHELLS = 16
"""Most shells that run in the background, and most ended ones whose output is kept."""
END_SECONDS = 6.0
"""Seconds to wait for a shell to end; its supervisor gives up earlier."""
COMMAND_CHARS = 100


class Work:
    """A command and its process, run for ``call``. ``seen``: bytes that the model has read; ``told``: whether the
    model knows of its end. The output of a ``private`` one is only for the user."""

    def __init__(self, command: str, process: Process, call: Call) -> None:
        self.command = command
        self.process = process
        self.owner = MAIN if call.branch.name == PERSON else call.branch.name
        """The agent that is notified of its end; the main agent for commands that the user shares."""
        self.private = call.private
        self.id = ""
        self.since = time.time()
        self.until: float | None = None
        self.seen = 0
        self.told = False
        self.killed = False

    @property
    def ended(self) -> bool:
        return self.process.ended.is_set()

    @property
    def exit_code(self) -> int | None:
        code = self.process.program.exit_code
        return 128 - code if code is not None and code < 0 else code

    @cached_property
    def verdict(self) -> CommandVerdict:
        """Whether the command failed; valid after its end."""
        return judged(self.command, self.exit_code, self.process.program.pipe_codes, self.process.program.notes)

    def ending(self, cwd: str, output: str) -> CommandText:
        """Return the command as results display it."""
        told = not self.ended or self.exit_code is None or self.verdict.failed == bool(self.exit_code)
        failed = None if told else self.verdict.failed
        return CommandText(self.command, cwd, output, self.exit_code, failed=failed)

    def shown(self) -> Job:
        output = self.process.output
        state = "running" if not self.ended else "killed" if self.killed else "ended"
        failed = state == "ended" and self.verdict.failed
        ended = (self.since, self.until, state, self.exit_code)
        return Job(self.id, self.command, *ended, output.total, output.ref, failed)


@frozen
class ShellResult:
    """The end of waiting for a command: normal, by the time limit, or ``moved`` to the background under that id."""

    job: Work
    timed_out: bool = False
    moved: str = ""


class Shells:
    """core.ports.tools.Jobs: the commands of one conversation.

    ``spill`` opens a file for the output of a call, given its id, when the output becomes large.
    """

    def __init__(self, spill: Callable[[str], OutputSpill] | None = None) -> None:
        self._spill = spill
        self._jobs: dict[str, Work] = {}
        self._awaited: dict[str, Work] = {}
        self._listeners: set[Callable[[], None]] = set()
        self._closed = False

    def list(self) -> tuple[Job, ...]:
        """Return the background shells, oldest first."""
        return tuple(job.shown() for job in self._jobs.values())

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` when a shell begins or ends. Call the result to stop."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def output(self, id: str) -> str:
        """Return the part of a shell's output that is in memory, with colours. Raises UsageError for an unknown
        shell."""
        return self._known(id).process.output.text()

    async def end(self, id: str) -> None:
        """End a shell for the user. Raises UsageError for an unknown shell."""
        await self._kill(self._known(id))

    def _known(self, id: str) -> Work:
        if job := self._jobs.get(id):
            return job
        raise UsageError(f"There is no background shell {id!r}.", "/shells lists those that run.")

    def find(self, id: str) -> Work:
        """Return a shell that models may use. Raises ToolFailure for an unknown shell."""
        open_ones = [job for job in self._jobs.values() if not job.private]
        if job := next((job for job in open_ones if job.id == id), None):
            return job
        known = ", ".join(f"{job.id} ({one_line(job.command, COMMAND_CHARS)})" for job in open_ones)
        hint = f"There are: {known}." if known else "None was started since the session was opened."
        raise ToolFailure("not_found", f"There is no background shell {id!r}.", hint)

    async def run(self, program: Program, command: str, seconds: float, call: Call) -> ShellResult:
        """Run a program for at most ``seconds`` with its output in the call's pane. A cancel returns immediately.

        Raises:
            OSError: it could not be started.
        """

        def report(text: str) -> None:
            if text:
                call.report(text)

        job = self._begin(program, command, call, report)
        stop = job.process.listen(report)
        self._awaited[call.id] = job
        try:
            await _freed(job.process, seconds, program)
        except TimeoutError:
            job.process.let_go(keep=True)
            await job.process.ended.wait()
            return ShellResult(job, timed_out=True)
        except BaseException:
            job.process.let_go(keep=False)
            raise
        finally:
            stop()
            self._awaited.pop(call.id, None)
        return ShellResult(job, moved=job.id)

    def start(self, program: Program, command: str, call: Call) -> Work:
        """Run a program in the background until it ends, is killed, or the conversation closes.

        Raises:
            OSError: it could not be started. ToolFailure: too many run.
        """
        running = [job.id for job in self._jobs.values() if not job.ended]
        if len(running) >= MAX_SHELLS:
            message = f"{MAX_SHELLS} background shells run already: {', '.join(running)}."
            raise ToolFailure("resource_error", message, "End one with shell_kill, or run this in the foreground.")
        return self._adopt(self._begin(program, command, call))

    def detach(self, call_id: str) -> bool:
        """Move a call's command to the background. Return False if the call runs none."""
        job = self._awaited.get(call_id)
        if job is None or job.process.freed.is_set():
            return False
        self._adopt(job)
        job.process.freed.set()
        return True

    async def kill(self, id: str) -> Work:
        """End a shell and all its processes; its last output is kept. Raises ToolFailure for an unknown shell."""
        return await self._kill(self.find(id))

    async def _kill(self, job: Work) -> Work:
        if not job.ended:
            job.killed = job.told = True
            job.process.end()
            try:
                async with asyncio.timeout(END_SECONDS):
                    await job.process.ended.wait()
            except TimeoutError:
                job.process.let_go(keep=True)
                await job.process.ended.wait()
        return job

    async def close(self) -> None:
        """End all commands. Their supervisors end them even if ba exits first."""
        self._closed = True
        running = [job.process for job in (*self._jobs.values(), *self._awaited.values()) if not job.ended]
        for process in running:
            process.let_go(keep=False)
        for process in running:
            await process.ended.wait()

    def news(self, owner: str) -> tuple[Work, ...]:
        """Return this agent's shells that ended and were not reported yet, and mark them as reported."""
        known = (job for job in self._jobs.values() if job.owner == owner and not job.private)
        found = tuple(job for job in known if job.ended and not job.told)
        for job in found:
            job.told = True
        return found

    def _begin(self, program: Program, command: str, call: Call, listener: Listener | None = None) -> Work:
        if self._closed:
            raise ToolFailure("resource_error", "The session is being closed; nothing is started any more.")
        # Models can read stored output.
        spill = partial(self._spill, call.id) if self._spill and not call.private else None
        return Work(command, make_process(program, spill, listener), call)

    def _adopt(self, job: Work) -> Work:
        while not job.id or job.id in self._jobs:
            # Random, because an id from before a restart must not name another shell.
            job.id = f"bg-{secrets.token_hex(2)}"
        self._jobs[job.id] = job
        job.process.on_end = lambda: self._note_end(job)
        self._tell()
        return job

    def _note_end(self, job: Work) -> None:
        job.until = time.time()
        ended = sorted((each for each in self._jobs.values() if each.ended), key=lambda each: not each.told)
        for old in ended[: max(0, len(ended) - MAX_SHELLS)]:
            del self._jobs[old.id]
        self._tell()

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()


class EndedShells:
    """core.agent.Interceptor: reports each ended background shell to the model before its next request."""

    def __init__(self, shells: Shells) -> None:
        self._shells = shells

    async def before(self, branch: Branch) -> None:
        notes = [
            f"The background shell {job.id} ({one_line(job.command, COMMAND_CHARS)}) has ended{how(job)}. "
            "shell_output reads what it printed."
            for job in self._shells.news(branch.name)
        ]
        if notes:
            branch.emit(Steered(reminder("\n".join(notes))))

    async def after(self, reply: Message, branch: Branch) -> None:
        """Do nothing: shells may outlive the turn."""


async def _freed(process: Process, seconds: float, program: Program) -> None:
    """Wait for the end. Raises TimeoutError after ``seconds``, without the time in which the user was asked about a
    host."""
    counted, left = 0.0, seconds
    while True:
        try:
            async with asyncio.timeout(left):
                await process.freed.wait()
            return
        except TimeoutError:
            if program.egress is None or (waited := program.egress.waited) <= counted:
                raise
            # While the user is being asked, check twice a second.
            counted, left = waited, max(waited - counted, 0.5)


def how(job: Work) -> str:
    if job.exit_code is None:
        return ""
    return " with " + ", ".join((f"exit code {job.exit_code}", *job.verdict.parts))


@frozen
class Shell:
    """``path`` of bash, None if missing; ``environment`` of ba; ``secret``: further variables to withhold; ``keep``:
    names or patterns of variables to pass on in any case; ``limits`` of a command's resources; ``more``: variables from
    the settings."""

    path: str | None
    environment: Mapping[str, str]
    secret: Collection[str] = ()
    keep: Collection[str] = ()
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    more: Mapping[str, str] = field(default_factory=dict[str, str])

    def inherited(self) -> dict[str, str]:
        """Return the variables for commands: without keys, tokens and passwords, and without variables that make bash
        run or read a file first or change the meaning of the judged command."""
        kept = {name: value for name, value in {**self.environment, **self.more}.items() if self._open(name)}
        return {**kept, "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}

    def withheld(self) -> tuple[str, ...]:
        """Return the values of variables that are withheld because they contain keys."""
        given = {**self.environment, **self.more}
        return tuple(value for name, value in given.items() if not steers(name) and not self._open(name))

    def program(self, script: str, folder: Path, seconds: float | None = None) -> Program:
        """Return the program that runs ``script`` in ``folder``. ``seconds`` limit its processor time."""
        if self.path is None:
            raise ToolFailure(
                "dependency_error", "bash is not installed, so the shell tool is off.", "Use the file tools."
            )
        # bash reports to the supervisor how the parts of the script ended, and the folder for the next command.
        argv = (self.path, "--noprofile", "--norc", "-c", reporting(script))
        return Program(argv, folder, self.inherited(), self.limits.for_seconds(seconds))

    def _open(self, name: str) -> bool:
        if steers(name):
            return False
        if any(fnmatchcase(name, pattern) for pattern in self.keep):
            return True
        return name not in self.secret and not holds_key(name)


def start_folder(workspace: Workspace, kept: str | None) -> Path:
    """Return the last command's final folder if it can be entered and is in the workspace; else the root."""
    with suppress(PathRefused):
        # The kept path may contain replacement characters for bytes that are not text.
        if kept and enterable(folder := workspace.named(kept)) and workspace.contains(folder.resolve()):
            return folder
    return workspace.root


def started_in(workspace: Workspace, call: Call) -> Path:
    """Return the folder in which a command of ``call`` starts."""
    return start_folder(workspace, call.branch.transcript.cwd)


def enterable(folder: Path) -> bool:
    """Return whether a command can start in ``folder``, which may be missing or inaccessible by now."""
    return os.access(folder, os.X_OK) and folder.is_dir()
