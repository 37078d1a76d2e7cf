"""The commands of one conversation that run now: those a call waits for, and those in the background.

Processes belong to the room processes; the tools over this are shell.py and shell_output.py.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ba_tui.core.errors import UsageError
from ba_tui.core.events import MAIN, PERSON, Steered
from ba_tui.core.messages import Message, reminder
from ba_tui.core.ports.jobs import Job
from ba_tui.core.results import CommandText
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Call
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.processes.supervised import Program
from ba_tui.tools.failed import Failed
from ba_tui.tools.running.verdicts import Verdict, judged

if TYPE_CHECKING:
    from ba_tui.processes.children import Listener, Process
    from ba_tui.processes.output import OutputSpill

MAX_SHELLS = 16
"""Shells that may run in the background at a time, and ended ones whose output is kept."""
END_SECONDS = 6.0
"""Seconds until a shell that is being ended is let go; its supervisor gives up before."""
COMMAND_CHARS = 100


class Work:
    """A command and its process, run for ``call``. ``seen``: bytes the model has read; ``told``: it knows that this one
    has ended. A ``private`` one is the person's alone."""

    def __init__(self, command: str, process: Process, call: Call) -> None:
        self.command = command
        self.process = process
        self.owner = MAIN if call.branch.name == PERSON else call.branch.name
        """The agent that is told of its end; the main one where the person shares it."""
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
        code = self.process.exit_code
        return 128 - code if code is not None and code < 0 else code

    @cached_property
    def verdict(self) -> Verdict:
        """Whether it failed; to be asked once it has ended."""
        return judged(self.command, self.exit_code, self.process.pipe_codes, self.process.notes)

    def ending(self, cwd: str, output: str) -> CommandText:
        """The command as results show it."""
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
    """How waiting for a command ended: with its end, with the time limit, or ``moved``: it goes on under that id."""

    job: Work
    timed_out: bool = False
    moved: str = ""


class Shells:
    """core.ports.jobs.Jobs, one for a conversation.

    ``spill`` opens a file for the output of a call, given its id, when that grows large.
    """

    def __init__(self, spill: Callable[[str], OutputSpill] | None = None) -> None:
        self._spill = spill
        self._jobs: dict[str, Work] = {}
        self._awaited: dict[str, Work] = {}
        self._listeners: set[Callable[[], None]] = set()
        self._closed = False

    def list(self) -> tuple[Job, ...]:
        """The background shells, oldest first."""
        return tuple(job.shown() for job in self._jobs.values())

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Hear that the list changed: one began or ended. Call what comes back to stop."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def output(self, id: str) -> str:
        """What is in memory of a shell's output, colours included. Raises UsageError when there is no such shell."""
        return self._known(id).process.output.text()

    async def end(self, id: str) -> None:
        """As ``kill``, for people. Raises UsageError when there is no such shell."""
        await self._kill(self._known(id))

    def _known(self, id: str) -> Work:
        if job := self._jobs.get(id):
            return job
        raise UsageError(f"There is no background shell {id!r}.", "/shells lists those that run.")

    def find(self, id: str) -> Work:
        """A shell that models may know of. Raises Failed when there is no such shell."""
        open_ones = [job for job in self._jobs.values() if not job.private]
        if job := next((job for job in open_ones if job.id == id), None):
            return job
        known = ", ".join(f"{job.id} ({one_line(job.command, COMMAND_CHARS)})" for job in open_ones)
        hint = f"There are: {known}." if known else "None was started since the session was opened."
        raise Failed("not_found", f"There is no background shell {id!r}.", hint)

    async def run(self, program: Program, command: str, seconds: float, call: Call) -> ShellResult:
        """Run it for at most ``seconds``, its output to the call's pane. Cancelling returns at once.

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
        """Run it in the background until it ends, is killed, or the conversation closes.

        Raises:
            OSError: it could not be started. Failed: too many run.
        """
        running = [job.id for job in self._jobs.values() if not job.ended]
        if len(running) >= MAX_SHELLS:
            message = f"{MAX_SHELLS} background shells run already: {', '.join(running)}."
            raise Failed("resource_error", message, "End one with shell_kill, or run this in the foreground.")
        return self._adopt(self._begin(program, command, call))

    def detach(self, call_id: str) -> bool:
        """Move the command that a call waits for to the background. False when it waits for none."""
        job = self._awaited.get(call_id)
        if job is None or job.process.freed.is_set():
            return False
        self._adopt(job)
        job.process.freed.set()
        return True

    async def kill(self, id: str) -> Work:
        """End a shell and all it started; what it prints on the way is kept. Raises Failed when there is none."""
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
        """End everything. The supervisors see to it, also when ba is gone before them."""
        self._closed = True
        running = [job.process for job in (*self._jobs.values(), *self._awaited.values()) if not job.ended]
        for process in running:
            process.let_go(keep=False)
        for process in running:
            await process.ended.wait()

    def news(self, owner: str) -> tuple[Work, ...]:
        """Shells of this agent that ended by themselves and that it was not told of yet; they count as told now."""
        known = (job for job in self._jobs.values() if job.owner == owner and not job.private)
        found = tuple(job for job in known if job.ended and not job.told)
        for job in found:
            job.told = True
        return found

    def _begin(self, program: Program, command: str, call: Call, listener: Listener | None = None) -> Work:
        from ba_tui.processes.children import Process  # noqa: PLC0415 - not before a command runs

        if self._closed:
            raise Failed("resource_error", "The session is being closed; nothing is started any more.")
        # Models may read what is stored.
        spill = partial(self._spill, call.id) if self._spill and not call.private else None
        return Work(command, Process(program, spill, listener), call)

    def _adopt(self, job: Work) -> Work:
        while not job.id or job.id in self._jobs:
            # Not counted: an id from before the session was opened again must not name another shell.
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
    """Tells the model, once and before its next request, that a background shell has ended."""

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
        """A shell may go on when the agent stops."""


async def _freed(process: Process, seconds: float, program: Program) -> None:
    """Wait for its end. Raises TimeoutError after ``seconds`` without those in which a person was asked for it."""
    counted, left = 0.0, seconds
    while True:
        try:
            async with asyncio.timeout(left):
                await process.freed.wait()
            return
        except TimeoutError:
            if program.egress is None or (waited := program.egress.waited) <= counted:
                raise
            # While it is being asked, this is looked at again twice a second.
            counted, left = waited, max(waited - counted, 0.5)


def how(job: Work) -> str:
    if job.exit_code is None:
        return ""
    return " with " + ", ".join((f"exit code {job.exit_code}", *job.verdict.parts))
