"""What goes with a prompt of one conversation: what a command stands for, what hooks add, what else is attached.

How commands are read and filled in is the context room's; what they run is judged as any call of the shell.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ba_tui.context.commands import CommandFile, CommandFiles, called, folders
from ba_tui.context.expansion import expand
from ba_tui.core.commands import CommandLine
from ba_tui.core.conversation import Admit
from ba_tui.core.errors import PromptRefused, StopTurn, UsageError
from ba_tui.core.events import Notice, ToolFinished, ToolStarted
from ba_tui.core.messages import Message, Text, ToolUse, new_id, user
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.skills import Skills
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.permissions.trust import Trust
from ba_tui.resources import Places, user_home

AGENT = "command"
"""Who runs what a command holds, in the events of a session."""
SHOWN = 80


def command_files(where: Places, root: Path) -> CommandFiles:
    """Those of the person and of the project at ``root``, which counts while it is trusted."""
    return CommandFiles(folders(user_home(), where.config, root, lambda: Trust(where).trusted(root)))


@dataclass(frozen=True, slots=True)
class Means:
    """What commands need: the ``shell`` within its guards, the ``skills``, why a model can't be asked, and where to
    say which model answers the turn."""

    shell: Callable[[], Tool | None]
    skills: Callable[[], Skills | None]
    missing: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Sent:
    """``notes`` go with the prompt, ``spoken`` is the part of all of it that nobody but the person wrote; ``model``
    answers, empty for the one of the session."""

    spoken: str
    notes: tuple[Message, ...] = ()
    model: str = ""


class OwnCommands:
    """core.commands.Commands, and what is sent for one."""

    def __init__(self, files: CommandFiles, means: Means) -> None:
        self._files = files
        self._means = means

    def lines(self) -> Sequence[CommandLine]:
        return self._files.lines()

    def check(self, text: str) -> None:
        found = called(text)
        if found is None:
            return
        name = found[0]
        if command := self._files.find(name):
            if command.trouble:
                raise UsageError(f"/{name} can't be used: {command.trouble}.", "Correct the file.")
        elif not self._skill(name) and not _is_path(name):
            skills = self._means.skills()
            ids = [line.id for line in skills.lines()] if skills else []
            near = self._files.nearest(name, ids)
            raise UsageError(f"There is no command /{name}.", near or "What is no command may begin with a space.")

    async def sent(self, prompt: Message, branch: Branch) -> Sent:
        """What to send for ``prompt``; a prompt that calls no command is sent as it is.

        Raises:
            PromptRefused: the command is broken, or something in it may not run.
        """
        found = called(prompt.text)
        if found is None or prompt.hidden:
            return Sent(prompt.text)
        name, arguments = found
        command = await asyncio.to_thread(self._files.find, name)
        if command is None:
            await self._start_skill(name, arguments)
            return Sent(prompt.text)
        if command.trouble:
            raise PromptRefused(f"/{name} can't be used: {command.trouble}.", "Correct the file.")
        done = await expand(command.body, arguments, partial(self._run, command, branch))
        if done.ran:
            branch.emit(Notice(f"/{command.name} ran: {', '.join(map(_short, done.ran))}"))
        text = f"The command /{command.name} stands for:\n\n{done.text}"
        model = await self._model(command, branch)
        return Sent(done.spoken, (Message("user", (Text(text),), hidden=True),), model)

    def _skill(self, name: str) -> bool:
        skills = self._means.skills()
        try:
            return bool(skills and skills.body(name))
        except UsageError:
            return False

    async def _start_skill(self, name: str, arguments: str) -> None:
        skills = self._means.skills()
        if skills is None or not await asyncio.to_thread(self._skill, name):
            return
        try:
            await asyncio.to_thread(skills.activate, name, arguments)
        except UsageError as error:
            raise PromptRefused(str(error), error.hint) from None

    async def _model(self, command: CommandFile, branch: Branch) -> str:
        if not command.model:
            return ""
        if missing := await asyncio.to_thread(self._means.missing, command.model):
            text = f"/{command.name} asks for the model {command.model}, but the one of the session answers: {missing}"
            branch.emit(Notice(text, "warning"))
            return ""
        return command.model

    async def _run(self, command: CommandFile, branch: Branch, script: str) -> str:
        """What ``script`` prints, as the model is to read it. It is a call of the shell like any other."""
        shell = self._means.shell()
        if shell is None:
            raise PromptRefused(f"/{command.name} was not sent: there is no shell to run {_short(script)} with.")
        fork = branch.fork(AGENT)
        fork.transcript.cwd = branch.transcript.cwd
        call = CommandCall(command, fork)
        result = await call.done(shell, script)
        if result.error and result.error.kind in {"permission_denied", "interrupted"}:
            text = f"/{command.name} was not sent, as {_short(script)} was not run: {result.error.message}"
            raise PromptRefused(text, f"It stands in {command.shown}.")
        return result.text


class CommandCall(Call):
    """A call that the person's command makes, not the model; questions say so."""

    def __init__(self, command: CommandFile, branch: Branch) -> None:
        super().__init__(new_id(), branch)
        self._command = command

    async def ask(self, question: Question) -> Reply:
        reason = f"It stands in {self._command.shown}. {question.reason}".rstrip()
        return await super().ask(replace(question, reason=reason))

    async def done(self, shell: Tool, script: str) -> ToolResult:
        """The result, whatever happens; only cancellation passes through."""
        use, begun = ToolUse(self.id, shell.name, {"command": script}), time.monotonic()
        self.branch.emit(ToolStarted(use, shell.target(use.input)))
        result = failure("interrupted", "Interrupted by the person.")
        try:
            result = await shell.run(use.input, self)
        except StopTurn as stop:
            result = failure("interrupted", str(stop))
        except Exception as error:  # noqa: BLE001 - a tool's failure becomes a result
            result = failure("internal_error", f"{type(error).__name__}: {error}")
        finally:
            duration = max(0.0, time.monotonic() - begun - self.waited)
            self.branch.emit(ToolFinished(self.id, result, duration))
        return result


class Admission:
    """core.conversation.Admit: commands first, then hooks, who see all that is sent, then what else is attached."""

    def __init__(self, commands: OwnCommands, hooks: Admit | None, choose: Callable[[str], None]) -> None:
        self._commands = commands
        self._hooks = hooks
        self._choose = choose
        self.attach: Admit | None = None
        """What goes with the words of the person: files they mention."""
        self.opening = False
        """A turn is about to begin."""

    async def admit(self, prompt: Message, branch: Branch) -> Sequence[Message]:
        """See core.conversation.Admit."""
        self.opening = True
        try:
            sent = await self._commands.sent(prompt, branch)
            notes = [*sent.notes]
            if self.attach:
                notes += await self.attach(_saying(prompt, sent.spoken), branch)
            if self._hooks:
                whole = "\n\n".join([prompt.text, *(note.text for note in sent.notes)])
                notes += await self._hooks(_saying(prompt, whole), branch)
        finally:
            self.opening = False
        self._choose(sent.model)
        return notes


def _saying(prompt: Message, text: str) -> Message:
    """``prompt`` with other words."""
    if text == prompt.text:
        return prompt
    rest = tuple(block for block in prompt.blocks if not isinstance(block, Text))
    return replace(user(text, origin=prompt.origin), blocks=(Text(text), *rest), id=prompt.id, at=prompt.at)


def _is_path(name: str) -> bool:
    return "." in name or os.path.lexists(f"/{name}")


def _short(script: str) -> str:
    line = " ".join(script.split())
    return f"`{line if len(line) <= SHOWN else line[: SHOWN - 1] + '…'}`"
