"""What goes with a prompt of one conversation: what a command stands for, what hooks add, what else is attached.

How commands are read and filled in is the context room's; what they run is judged as any call of the shell.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ba_tui.assembly.skilling import names_of_ours
from ba_tui.context.attachments import Attaching
from ba_tui.context.commands import CommandFile, CommandFiles, called, folders
from ba_tui.context.expansion import expand
from ba_tui.core.calls import run_call
from ba_tui.core.conversation import Admit
from ba_tui.core.errors import PromptRefused, StopTurn, StorageError, UsageError
from ba_tui.core.events import Event, Notice, TurnEnded, TurnStarted
from ba_tui.core.messages import STANDS_FOR, Message, Text, ToolUse, new_id, user
from ba_tui.core.ports.commands import CommandLine
from ba_tui.core.ports.skills import Skills
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import failure
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.ingress import Ingress, Owner
from ba_tui.permissions.rules.rule import Rule, read_rule
from ba_tui.permissions.trust.grants import Trust
from ba_tui.resources import Places, user_home
from ba_tui.skills.activation import rule_of
from ba_tui.skills.confirmed import Confirmed

log = logging.getLogger(__name__)
SHOWN = 80


def command_files(where: Places, ingress: Ingress) -> CommandFiles:
    """Those of the person and of the project, which counts while it is trusted."""
    trust, root = Trust(where), ingress.root
    return CommandFiles(folders(user_home(), where.config, root, lambda: trust.trusted(root)), ingress)


@frozen
class CommandContext:
    """What commands need: the ``shell`` within its guards, the ``skills``, why a model can't be asked; what the person
    ``confirmed``, whether confirming tools would change anything, and what makes words of files fit for a model."""

    shell: Callable[[], Tool | None]
    skills: Callable[[], Skills | None]
    missing: Callable[[str], str]
    confirmed: Confirmed
    asks: Callable[[], bool]
    clean: Callable[[str], str]


@frozen
class Sent:
    """``notes`` go with the prompt, ``spoken`` is the part of them that no command printed, in the words of a file of
    ``owner``; ``model`` answers, empty for the one of the session."""

    notes: tuple[Message, ...] = ()
    spoken: str = ""
    owner: Owner = "project"
    model: str = ""


class CommandExpander:
    """core.commands.Commands, and what is sent for one."""

    def __init__(self, files: CommandFiles, means: CommandContext) -> None:
        self._files = files
        self._means = means
        self.granted: tuple[Rule, ...] = ()
        """What the command of this turn may use without asking."""

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
            return Sent()
        name, arguments = found
        command = await asyncio.to_thread(self._files.find, name)
        if command is None:
            await self._start_skill(name, arguments)
            return Sent()
        if command.trouble:
            raise PromptRefused(f"/{name} can't be used: {command.trouble}.", "Correct the file.")
        self.granted = await self._confirmed(command, branch)
        done = await expand(command.body, arguments, partial(self._run, command, branch), self._means.clean)
        if done.ran:
            branch.emit(Notice(f"/{command.name} ran: {', '.join(map(_short, done.ran))}"))
        text = f"{STANDS_FOR}{command.name} stands for:\n\n{done.text}"
        model = await self._model(command, branch)
        return Sent((Message("user", (Text(text),), hidden=True),), done.spoken, command.source, model)

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

    async def _confirmed(self, command: CommandFile, branch: Branch) -> tuple[Rule, ...]:
        """What its front matter asks for, if the person said yes to just this content of the file."""
        if not command.tools or not self._means.asks():
            return ()
        names, id = names_of_ours(), f"/{command.name}"
        texts = tuple(dict.fromkeys(rule_of(tool, names) for tool in command.tools))
        if not await asyncio.to_thread(self._means.confirmed.has, id, command.digest):
            reply = await branch.ask(_question(command, texts))
            if reply.choice in {"deny", "text"}:
                return ()
            try:
                await asyncio.to_thread(self._means.confirmed.add, id, command.digest, texts)
            except StorageError as error:
                branch.emit(Notice(f"That could not be kept for later: {error}", "warning", error.hint))
        return tuple(rule for text in texts if (rule := _rule(text, command)))

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
        beside, refusals = branch.aside(f"/{command.name}"), list[str]()

        async def consult(question: Question) -> Reply:
            """The person is told that their command makes the call, not the model."""
            reply = await beside.ask(
                replace(question, reason=f"{question.reason} It stands in {command.shown}.".lstrip())
            )
            if reply.choice in {"deny", "text"}:
                said = {"nobody": "Nobody was here to allow it.", "person": "You did not allow it."}
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
            raise PromptRefused(text, f"It stands in {command.shown}.")
        return self._means.clean(result.text)


class Admission:
    """core.conversation.Admit, and a listener: commands first, then hooks, who see all that is sent. ``attaching``
    hears what was said, to attach what it mentions."""

    def __init__(self, commands: CommandExpander, hooks: Admit | None, attaching: Attaching) -> None:
        self._commands = commands
        self._hooks = hooks
        self._attaching = attaching
        self._sent = Sent()
        self.choose: Callable[[str], object] = bool
        """Told which model answers the turn."""
        self.opening = False
        """A turn is about to begin."""

    async def admit(self, prompt: Message, branch: Branch) -> Sequence[Message]:
        """See core.conversation.Admit."""
        self.opening, self._sent, self._commands.granted = True, Sent(), ()
        try:
            sent = await self._commands.sent(prompt, branch)
            notes = [*sent.notes]
            if self._hooks:
                whole = "\n\n".join([prompt.text, *(note.text for note in sent.notes)])
                notes += await self._hooks(_saying(prompt, whole), branch)
        except BaseException:
            self._commands.granted = ()
            raise
        finally:
            self.opening = False
        self._sent = sent
        self.choose(sent.model)
        return notes

    def apply(self, event: Event) -> None:
        self._attaching.apply(event)
        match event:
            case TurnStarted(agent="main") if self._sent.spoken:
                # Files that a command names come with it, as far as its own file may reach.
                self._attaching.bring(self._sent.spoken, self._sent.owner)
            case TurnEnded(agent="main"):
                self._commands.granted = ()
            case _:
                pass


def _saying(prompt: Message, text: str) -> Message:
    """``prompt`` with other words."""
    if text == prompt.text:
        return prompt
    rest = tuple(block for block in prompt.blocks if not isinstance(block, Text))
    return replace(user(text, origin=prompt.origin), blocks=(Text(text), *rest), id=prompt.id, at=prompt.at)


def _question(command: CommandFile, tools: Sequence[str]) -> Question:
    return Question(
        "permission",
        f"Let /{command.name} use its tools without asking?",
        tool="command",
        args={"command": command.shown, "allowed_tools": list(tools)},
        reason="“yes” holds for this file as it is now, also in later sessions; “no” sends it and asks as usual",
        fixed=True,
    )


def _rule(text: str, command: CommandFile) -> Rule | None:
    try:
        return read_rule(text, "allow", command.shown)
    except UsageError as error:
        log.info("%s names %s: %s", command.shown, text, error)
        return None


def _is_path(name: str) -> bool:
    return "." in name or os.path.lexists(f"/{name}")


def _short(script: str) -> str:
    line = " ".join(script.split())
    return f"`{line if len(line) <= SHOWN else line[: SHOWN - 1] + '…'}`"
