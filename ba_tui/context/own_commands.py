"""The person's own commands in one conversation: what is sent for one, and the commands that it runs.

How files are read and filled in stands in commands and expansion; what they run is judged as any call of the shell.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ba_tui.context.commands import CommandFile, CommandFiles, called
from ba_tui.core.calls import run_call
from ba_tui.core.effects import READ_ONLY
from ba_tui.core.errors import BaError, PromptRefused, StopTurn, StorageError, UsageError
from ba_tui.core.events import Event, Notice, TurnEnded
from ba_tui.core.messages import STANDS_FOR, Message, Text, ToolUse, new_id
from ba_tui.core.ports.commands import CommandLine
from ba_tui.core.ports.skills import Skills
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import failure
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.ingress import Owner

if TYPE_CHECKING:
    from ba_tui.context.expansion import Expansion

SHOWN = 80
NOT_HERE = "are not here or can't be allowed beforehand"


class ServerPrompts(Protocol):
    """Prompts that MCP servers offer, called ``/server:name``."""

    def lines(self) -> Sequence[CommandLine]: ...

    def has(self, name: str) -> bool: ...

    async def text(self, name: str, arguments: str) -> str:
        """Return what the prompt stands for. Raises BaError."""
        ...


class Confirmations(Protocol):
    """The tools that the person let a file use without being asked, by its content."""

    def has(self, id: str, digest: str, tools: Iterable[str]) -> bool: ...

    def add(self, id: str, digest: str, tools: Sequence[str]) -> None:
        """Raises StorageError."""
        ...


@frozen
class CommandContext:
    """What commands need: the ``shell`` within its guards, the ``skills``, why a model can't be asked (``missing``);
    what the person ``confirmed``, whether confirming tools would change anything (``asks``), the allow rules of tool
    names in front matter and those that allow nothing here (``rules``), and what makes words of files fit for a model
    (``clean``)."""

    shell: Callable[[], Tool | None]
    skills: Skills
    missing: Callable[[str], str]
    confirmed: Confirmations
    asks: Callable[[], bool]
    rules: Callable[[Iterable[str]], tuple[tuple[str, ...], tuple[str, ...]]]
    clean: Callable[[str], str]
    prompts: ServerPrompts | None = None


@frozen
class Sent:
    """``notes`` go with the prompt, ``spoken`` is the part of them that no command printed, in the words of a file of
    ``owner``; ``model`` answers, empty for the one of the session."""

    notes: tuple[Message, ...] = ()
    spoken: str = ""
    owner: Owner = "project"
    model: str = ""


class CommandExpander:
    """core.ports.commands.OwnCommands, and what is sent for one. Listens to the events of the conversation."""

    def __init__(self, files: CommandFiles, means: CommandContext) -> None:
        self._files = files
        self._means = means
        self._granted: tuple[str, ...] = ()

    def granted(self) -> tuple[str, ...]:
        """The allow rules that the command of this turn brought."""
        return self._granted

    def forget(self) -> None:
        """Take back what the command may use: its turn is over or does not begin."""
        self._granted = ()

    def apply(self, event: Event) -> None:
        if isinstance(event, TurnEnded) and event.agent == "main":
            self.forget()

    def lines(self) -> Sequence[CommandLine]:
        prompts = self._means.prompts
        return (*self._files.lines(), *(prompts.lines() if prompts else ()))

    def check(self, text: str) -> None:
        found = called(text)
        if found is None:
            return
        name = found[0]
        if command := self._files.find(name):
            if command.trouble:
                raise UsageError(f"/{name} can't be used: {command.trouble}.", "Correct the file.")
        elif not self._offered(name) and not self._skill(name) and not _is_path(name):
            near = self._files.nearest(name, [line.id for line in self._means.skills.lines()])
            raise UsageError(
                f"There is no command /{name}.", near or 'To send text that starts with "/", type a space before it.'
            )

    async def sent(self, prompt: Message, branch: Branch) -> Sent:
        """What to send for ``prompt``; a prompt that calls no command is sent as it is.

        Raises:
            PromptRefused: the command is broken, or something in it may not run.
        """
        self.forget()
        found = called(prompt.text)
        if found is None or prompt.hidden:
            return Sent()
        name, arguments = found
        command = await asyncio.to_thread(self._files.find, name)
        if command is None and self._offered(name):
            return await self._server_prompt(name, arguments)
        if command is None:
            await self._start_skill(name, arguments)
            return Sent()
        if command.trouble:
            raise PromptRefused(f"/{name} can't be used: {command.trouble}.", "Correct the file.")
        if command.ignored:
            fields = ", ".join(command.ignored)
            branch.emit(Notice(f"/{command.name}: these fields of its file have no effect in ba: {fields}."))
        if command.source == "bundled":
            done = await self._own_prompt(command, arguments, branch)
        else:
            self._granted = await self._confirmed(command, branch)
            done = await self._expanded(command, arguments, branch)
        if done.ran:
            branch.emit(Notice(f"/{command.name} ran: {', '.join(map(_short, done.ran))}"))
        text = f"{STANDS_FOR}{command.name} stands for:\n\n{done.text}"
        model = await self._model(command, branch)
        return Sent((Message("user", (Text(text),), hidden=True),), done.spoken, command.source, model)

    async def _expanded(self, command: CommandFile, arguments: str, branch: Branch) -> Expansion:
        from ba_tui.context.expansion import expand, expand_prompt  # noqa: PLC0415 - most prompts call no command

        if not command.codex:
            return await expand(command.body, arguments, partial(self._run, command, branch), self._means.clean)
        try:
            return expand_prompt(command.body, arguments, self._means.clean)
        except UsageError as error:
            raise PromptRefused(f"/{command.name} was not sent. {error}", error.hint) from None

    async def _own_prompt(self, command: CommandFile, arguments: str, branch: Branch) -> Expansion:
        """What a command of ba's own stands for. Raises PromptRefused when there is nothing to do it with."""
        from ba_tui.context.expansion import expand  # noqa: PLC0415 - most prompts call no command
        from ba_tui.context.project_prompts import FACTS, READING, check_printed, prepared  # noqa: PLC0415 - see above

        ready, printed = await asyncio.to_thread(prepared, command.name, arguments, self._files.root), dict[str, str]()
        if command.name in READING:
            branch.ceiling = branch.ceiling.within(READ_ONLY)

        async def run(script: str) -> str:
            printed[script] = await self._run(command, branch, script)
            return printed[script]

        done = await expand(command.body, ready.arguments, run, self._means.clean)
        check_printed(command.name, arguments, printed)
        # Last: words of the person's are not to be filled in, or run.
        return replace(done, text=done.text.replace(FACTS, ready.facts, 1))

    def _offered(self, name: str) -> bool:
        return self._means.prompts is not None and self._means.prompts.has(name)

    async def _server_prompt(self, name: str, arguments: str) -> Sent:
        """What a prompt of an MCP server stands for. Raises PromptRefused."""
        assert self._means.prompts
        try:
            said = self._means.clean(await self._means.prompts.text(name, arguments))
        except BaError as error:
            raise PromptRefused(f"/{name} was not sent: {error}", error.hint) from None
        text = f"{STANDS_FOR}{name} stands for:\n\n{said}"
        return Sent((Message("user", (Text(text),), hidden=True),))

    def _skill(self, name: str) -> bool:
        try:
            return bool(self._means.skills.body(name))
        except UsageError:
            return False

    async def _start_skill(self, name: str, arguments: str) -> None:
        if not await asyncio.to_thread(self._skill, name):
            return
        try:
            await asyncio.to_thread(self._means.skills.activate, name, arguments)
        except UsageError as error:
            raise PromptRefused(str(error), error.hint) from None

    async def _confirmed(self, command: CommandFile, branch: Branch) -> tuple[str, ...]:
        """What its front matter asks for, if the person said yes to just this content of the file."""
        if not command.tools or not self._means.asks():
            return ()
        id, (texts, unknown) = f"/{command.name}", self._means.rules(command.tools)
        if unknown:
            text = f"Of the tools that /{command.name} names, these {NOT_HERE}: {', '.join(unknown)}"
            branch.emit(Notice(f"{text}."))
        if texts and not await asyncio.to_thread(self._means.confirmed.has, id, command.digest, texts):
            reply = await branch.ask(_question(command, texts))
            if reply.choice in {"deny", "text"}:
                return ()
            try:
                await asyncio.to_thread(self._means.confirmed.add, id, command.digest, texts)
            except StorageError as error:
                branch.emit(Notice(f"Your answer could not be saved: {error}", "warning", error.hint))
        return texts

    async def _model(self, command: CommandFile, branch: Branch) -> str:
        if not command.model:
            return ""
        if missing := await asyncio.to_thread(self._means.missing, command.model):
            text = f"/{command.name} asks for the model {command.model}; the session's model is used instead: {missing}"
            branch.emit(Notice(text, "warning"))
            return ""
        return command.model

    async def _run(self, command: CommandFile, branch: Branch, script: str) -> str:
        """What ``script`` prints, as the model is to read it. It is a call of the shell like any other."""
        shell = self._means.shell()
        if shell is None:
            raise PromptRefused(f"/{command.name} was not sent: bash is missing, and it runs {_short(script)}.")
        beside, refusals = branch.aside(f"/{command.name}"), list[str]()

        async def consult(question: Question) -> Reply:
            """The person is told that their command makes the call, not the model."""
            reply = await beside.ask(replace(question, reason=f"{question.reason} It is in {command.shown}.".lstrip()))
            if reply.choice in {"deny", "text"}:
                said = {"nobody": "Nobody could be asked.", "person": "You did not allow it."}
                refusals.append(said.get(reply.by, ""))
            return reply

        use = ToolUse(new_id(), shell.name, {"command": script})
        try:
            result = await run_call(shell, use, Call(use.id, beside, consults=(consult,)))
        except StopTurn as stop:
            result = failure("interrupted", str(stop))
        if result.error and result.error.kind in {"permission_denied", "interrupted"}:
            why = (refusals and refusals[-1]) or result.error.message
            text = f"/{command.name} was not sent, as {_short(script)} was not run: {why}"
            raise PromptRefused(text, f"It is in {command.shown}.")
        return self._means.clean(result.text)


def _question(command: CommandFile, tools: Sequence[str]) -> Question:
    return Question(
        "permission",
        f"Let /{command.name} use its tools without asking?",
        tool="command",
        args={"command": command.shown, "allowed_tools": list(tools)},
        reason="“Yes” applies until the file changes, also in later sessions; “no” sends it and asks as usual",
        fixed=True,
    )


def _is_path(name: str) -> bool:
    return "." in name or os.path.lexists(f"/{name}")


def _short(script: str) -> str:
    line = " ".join(script.split())
    return f"`{line if len(line) <= SHOWN else line[: SHOWN - 1] + '…'}`"
