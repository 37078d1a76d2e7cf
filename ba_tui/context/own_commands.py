"""The user's commands in one conversation: how they are expanded, run (judged as any shell call) and admitted."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from ba_tui.context.attachments import AttachmentInterceptor
from ba_tui.context.commands import CommandFile, CommandFiles, parse_call
from ba_tui.context.ports import Confirmations, ServerPrompts
from ba_tui.core.calls import run_call
from ba_tui.core.effects import READ_ONLY
from ba_tui.core.errors import BaError, PromptRefused, StopTurn, StorageError, UsageError
from ba_tui.core.events import Event, Notice, TurnEnded, TurnStarted
from ba_tui.core.messages import STANDS_FOR, Message, Text, ToolUse, new_id, user
from ba_tui.core.ports.brain import AdmittedPrompt
from ba_tui.core.ports.context import CommandLine, Skills
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import failure
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.ingress import Owner
from ba_tui.resources import there

SHOWN = 80
NOT_HERE = "are not here or can't be allowed beforehand"


@frozen
class CommandContext:
    """What commands need: the ``shell`` within its guards, the ``skills``, why a model can't be used (``missing``);
    what the user ``confirmed``, whether confirming tools would change anything (``asks``), the allow rules of tool
    names in front matter and those without effect here (``rules``), and the function that makes texts of files safe for
    a model (``clean``)."""

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
    """``notes`` are added to the prompt; ``spoken`` is the part of them that no command printed, written by a file of
    ``owner``; ``model`` answers, empty for the session's."""

    notes: tuple[Message, ...] = ()
    spoken: str = ""
    owner: Owner = "project"
    model: str = ""


class CommandExpander:
    """core.ports.context.OwnCommands, and the expansion of commands. Listens to the events of the conversation."""

    def __init__(self, files: CommandFiles, context: CommandContext) -> None:
        self._files = files
        self._context = context
        self._granted: tuple[str, ...] = ()

    def granted(self) -> tuple[str, ...]:
        """Return the allow rules of this turn's command."""
        return self._granted

    def forget(self) -> None:
        """Revoke the command's rules: its turn is over or does not begin."""
        self._granted = ()

    def apply(self, event: Event) -> None:
        if isinstance(event, TurnEnded) and event.agent == "main":
            self.forget()

    def lines(self) -> Sequence[CommandLine]:
        prompts = self._context.prompts
        return (*self._files.lines(), *(prompts.lines() if prompts else ()))

    def check(self, text: str) -> None:
        found = parse_call(text)
        if found is None:
            return
        name = found[0]
        if command := self._files.find(name):
            if command.trouble:
                raise UsageError(f"/{name} can't be used: {command.trouble}.", "Correct the file.")
        elif not (self._offered(name) or self._skill(name) or "." in name or os.path.lexists(f"/{name}")):
            near = self._files.nearest(name, [line.id for line in self._context.skills.lines()])
            raise UsageError(
                f"There is no command /{name}.", near or 'To send text that starts with "/", type a space before it.'
            )

    async def sent(self, prompt: Message, branch: Branch) -> Sent:
        """Return what is sent for ``prompt``. Raises PromptRefused: the command is broken, or may not run something."""
        self.forget()
        found = parse_call(prompt.text)
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
        if not command.codex:
            return await expand(command.body, arguments, partial(self._run, command, branch), self._context.clean)
        try:
            return expand_prompt(command.body, arguments, self._context.clean)
        except UsageError as error:
            raise PromptRefused(f"/{command.name} was not sent. {error}", error.hint) from None

    async def _own_prompt(self, command: CommandFile, arguments: str, branch: Branch) -> Expansion:
        """Expand a command that ships with ba. Raises PromptRefused when there is nothing to apply it to."""
        prepare = _for_init if command.name == INIT else partial(_for_review, command.name)
        given, facts = await asyncio.to_thread(prepare, arguments, self._files.root)
        printed: dict[str, str] = {}
        if command.name in READING:
            branch.ceiling = branch.ceiling.within(READ_ONLY)

        async def run(script: str) -> str:
            printed[script] = await self._run(command, branch, script)
            return printed[script]

        done = await expand(command.body, given, run, self._context.clean)
        check_printed(command.name, arguments, printed)
        # Last: the user's words must not be expanded or run.
        return replace(done, text=done.text.replace(FACTS, facts, 1))

    def _offered(self, name: str) -> bool:
        return self._context.prompts is not None and self._context.prompts.has(name)

    async def _server_prompt(self, name: str, arguments: str) -> Sent:
        """Expand a prompt of an MCP server. Raises PromptRefused."""
        assert self._context.prompts
        try:
            said = self._context.clean(await self._context.prompts.text(name, arguments))
        except BaError as error:
            raise PromptRefused(f"/{name} was not sent: {error}", error.hint) from None
        text = f"{STANDS_FOR}{name} stands for:\n\n{said}"
        return Sent((Message("user", (Text(text),), hidden=True),))

    def _skill(self, name: str) -> bool:
        try:
            return bool(self._context.skills.body(name))
        except UsageError:
            return False

    async def _start_skill(self, name: str, arguments: str) -> None:
        if not await asyncio.to_thread(self._skill, name):
            return
        try:
            await asyncio.to_thread(self._context.skills.activate, name, arguments)
        except UsageError as error:
            raise PromptRefused(str(error), error.hint) from None

    async def _confirmed(self, command: CommandFile, branch: Branch) -> tuple[str, ...]:
        """Return the requests of its front matter if the user accepted them for this content of the file."""
        if not command.tools or not self._context.asks():
            return ()
        id, (texts, unknown) = f"/{command.name}", self._context.rules(command.tools)
        if unknown:
            text = f"Of the tools that /{command.name} names, these {NOT_HERE}: {', '.join(unknown)}"
            branch.emit(Notice(f"{text}."))
        if texts and not await asyncio.to_thread(self._context.confirmed.has, id, command.digest, texts):
            reply = await branch.ask(_question(command, texts))
            if reply.choice in {"deny", "text"}:
                return ()
            try:
                await asyncio.to_thread(self._context.confirmed.add, id, command.digest, texts)
            except StorageError as error:
                branch.emit(Notice(f"Your answer could not be saved: {error}", "warning", error.hint))
        return texts

    async def _model(self, command: CommandFile, branch: Branch) -> str:
        if not command.model:
            return ""
        if missing := await asyncio.to_thread(self._context.missing, command.model):
            text = f"/{command.name} asks for the model {command.model}; the session's model is used instead: {missing}"
            branch.emit(Notice(text, "warning"))
            return ""
        return command.model

    async def _run(self, command: CommandFile, branch: Branch, script: str) -> str:
        """Return the output of ``script`` for the model. It is a call of the shell like any other."""
        shell = self._context.shell()
        if shell is None:
            raise PromptRefused(f"/{command.name} was not sent: bash is missing, and it runs {_short(script)}.")
        beside, refusals = branch.aside(f"/{command.name}"), list[str]()

        async def consult(question: Question) -> Reply:
            """Tell the user that their command makes the call, not the model."""
            reply = await beside.ask(replace(question, reason=f"{question.reason} It is in {command.shown}.".lstrip()))
            if reply.choice in {"deny", "text"}:
                said = {"nobody": "No user was there to be asked.", "person": "You did not allow it."}
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
        return self._context.clean(result.text)


def _question(command: CommandFile, tools: Sequence[str]) -> Question:
    return Question(
        "permission",
        f"Let /{command.name} use its tools without asking?",
        tool="command",
        args={"command": command.shown, "allowed_tools": list(tools)},
        reason="“Yes” applies until the file changes, also in later sessions; “no” sends it and asks as usual",
        fixed=True,
    )


def _short(script: str) -> str:
    return f"`{one_line(script, SHOWN)}`"


# Expansion: a command's text with its arguments, and with the output of the commands in it, which ``run`` runs so that
# each is judged.

RunShell: TypeAlias = Callable[[str], Awaitable[str]]
LONGEST = 100_000
"""Characters that commands may print into one prompt."""
_COMMAND = regex(r"^```!\s*\n(.*?)\n```[ \t]*$|(?:^|(?<=\s))!`([^`\n]+)`", re.MULTILINE | re.DOTALL)
_ARGUMENT = regex(r"\\(\$(?:ARGUMENTS\b|[1-9]))|\$ARGUMENTS\b|\$([1-9])(?!\w|[.,]\d)")
_PROMPT_ARGUMENT = regex(r"\$\$|\$ARGUMENTS\b|\$([1-9])(?!\w|[.,]\d)|\$([A-Z][A-Z0-9_]*)\b")


@frozen
class Expansion:
    """``text`` is the whole; ``spoken`` the part of it that no command printed; ``ran`` the commands."""

    text: str
    spoken: str
    ran: tuple[str, ...] = ()


async def expand(body: str, arguments: str, run: RunShell, clean: Callable[[str], str]) -> Expansion:
    """Expand ``body`` with ``arguments``. Errors of ``run`` are passed on: then nothing is sent.

    Commands are found before arguments are inserted, and never in the output of other commands. ``clean`` makes the
    file's text safe for a model; arguments are the user's own, and stay unchanged.
    """
    given = words_of(arguments)
    text, spoken, ran, left, used = list[str](), list[str](), list[str](), LONGEST, False
    for words, command in _pieces(body):
        filled, taken = put_in(command or clean(words), arguments, given)
        used = used or taken
        if not command:
            text.append(filled)
            spoken.append(filled)
            continue
        printed = await run(filled)
        ran.append(filled)
        text.append(printed if len(printed) <= left else f"{printed[:left]}\n[cut: commands printed too much]")
        left = max(0, left - len(printed))
    if arguments and not used:
        text.append(f"\n\nArguments: {arguments}")
        spoken.append(f"\n\nArguments: {arguments}")
    return Expansion("".join(text).strip(), "".join(spoken).strip(), tuple(ran))


def expand_prompt(body: str, arguments: str, clean: Callable[[str], str]) -> Expansion:
    """Expand a prompt of Codex: nothing is run, ``$NAME`` becomes the value of ``NAME=value``, ``$1`` and
    ``$ARGUMENTS`` the other words, ``$$`` a dollar sign. Raises UsageError naming missing values."""
    text = clean(body)
    names = dict.fromkeys(found[2] for found in _PROMPT_ARGUMENT.finditer(text) if found[2])
    pairs = [(word, *word.partition("=")[::2]) for word in words_of(arguments)]
    values = {name: value for word, name, value in pairs if name in names and "=" in word}
    if missing := [name for name in names if name not in values]:
        usage = " ".join(f"{name}=…" for name in names)
        raise UsageError(f"It needs {', '.join(missing)}.", f"Write the values behind it: {usage}")
    rest = [word for word, name, _ in pairs if name not in values]
    used = bool(values)

    def value(found: re.Match[str]) -> str:
        nonlocal used
        if found[0] == "$$":
            return "$"
        if found[2]:
            return values[found[2]]
        used = True
        if not found[1]:
            return " ".join(rest)
        place = int(found[1]) - 1
        return rest[place] if place < len(rest) else ""

    filled = _PROMPT_ARGUMENT.sub(value, text).strip()
    if arguments and not used:
        filled += f"\n\nArguments: {arguments}"
    return Expansion(filled, filled)


def _pieces(body: str) -> Iterator[tuple[str, str]]:
    """Return texts and commands alternately; one of each pair is empty."""
    at = 0
    for found in _COMMAND.finditer(body):
        yield body[at : found.start()], ""
        yield "", (found[1] or found[2]).strip()
        at = found.end()
    yield body[at:], ""


def put_in(text: str, arguments: str, given: list[str]) -> tuple[str, bool]:
    r"""Return ``text`` with ``$ARGUMENTS``, ``$1`` … replaced, and whether there was any; ``\$1`` stays ``$1``, and so
    do amounts such as $1,000."""
    taken = False

    def value(found: re.Match[str]) -> str:
        nonlocal taken
        if found[1]:
            return found[1]
        taken = True
        if not found[2]:
            return arguments
        place = int(found[2]) - 1
        return given[place] if place < len(given) else ""

    return _ARGUMENT.sub(value, text), taken


def words_of(arguments: str) -> list[str]:
    """Split arguments; quotes keep words together."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()


# Commands that ship with ba as prompts about the project (``config/commands``): whether one makes sense now, and its
# facts. What they run is judged like any other command.

INIT = "init"
FACTS = "$FACTS"
"""Replaced in a text by facts of the project."""
READING: frozenset[str] = frozenset({"review", "security-review"})
"""Prompts whose turn changes nothing, whatever the mode."""
NO_OUTPUT = "(no output)"
"""The shell's result of a command that printed nothing."""
_FAULT = regex(r"\s*(?:fatal|error): (.+?)\.?$", re.MULTILINE)
_NEW, _WORKING = "AGENTS.md", "HEAD"
_EXISTING = (_NEW, "CLAUDE.md", ".claude/CLAUDE.md")
_NOTHING_YET = frozenset({".git", ".ba", ".claude", ".agents", ".DS_Store", ".gitignore"})


def check_printed(name: str, arguments: str, printed: Mapping[str, str]) -> None:
    """Raise PromptRefused when the output of a review's commands, ``printed`` by command, is no change or an error."""
    if name not in READING:
        return
    failed = next((found for text in printed.values() if (found := _FAULT.match(text))), None)
    if failed and not arguments and _WORKING in failed[1]:
        text = "This repository has no commit yet that the changes could be compared with."
        raise PromptRefused(text, "Commit once, or ask for it and name the files with @.")
    if failed:
        raise PromptRefused(f"git can't show that range: {failed[1]}.", f"Such as: /{name} main...HEAD")
    # New files belong to uncommitted changes, and to no range.
    shown = [text for command, text in printed.items() if command.startswith("git diff") or not arguments]
    if not any(text.strip() not in {"", NO_OUTPUT} for text in shown):
        hint = f"Name a range: /{name} main...HEAD, or /{name} HEAD~1 for the last commit."
        raise PromptRefused("There is nothing to review: no file has changed.", hint)


def _for_init(arguments: str, root: Path) -> tuple[str, str]:
    """Return arguments of the prompt and facts of the project. Raises PromptRefused in an empty folder."""
    if not arguments and not _any_file(root):
        text = "This folder is empty: there is no project to describe yet."
        raise PromptRefused(text, "Add files first, or say what it will be: /init a web shop in Go")
    existing = [name for name in _EXISTING if there(root / name)]
    if not existing:
        facts = f"There is none yet: write {_NEW}."
    else:
        others = f" {', '.join(existing[1:])} is there too: do not repeat it." if existing[1:] else ""
        facts = (
            f"{existing[0]} is there: read it first, then improve it with edit_file. Keep what is right and what the "
            f"user wrote for a reason; correct what is no longer true; add what is missing; never replace the whole "
            f"file.{others}"
        )
    return arguments, facts


def _any_file(root: Path) -> bool:
    try:
        with os.scandir(root) as entries:
            return any(entry.name not in _NOTHING_YET for entry in entries)
    except OSError:
        return True


def _for_review(name: str, arguments: str, root: Path) -> tuple[str, str]:
    """Return the same for a review. Raises PromptRefused when there is nothing to review."""
    if not any(there(folder / ".git") for folder in (root, *root.parents)):
        text = "This folder is not in a git repository, so there is no change to review."
        raise PromptRefused(text, "Ask for it, and name the files with @.")
    if arguments.startswith("-"):
        raise PromptRefused(f"{arguments!r} is no range of commits.", f"Such as: /{name} main...HEAD")
    said = f"`git diff {arguments}`" if arguments else "what is not committed yet (`git diff HEAD`)"
    return arguments or _WORKING, f"{said}."


HookNotes: TypeAlias = Callable[[Message, Branch], Awaitable[Sequence[Message]]]
"""Returns the texts that hooks add to a prompt. Raises PromptRefused when one of them blocks it."""


class Admission:
    """core.ports.brain.Brain.admit, and a listener: expands commands, then runs hooks, which see the whole prompt.
    ``attaching`` gets the text in order to attach its mentions."""

    def __init__(self, commands: CommandExpander, hooks: HookNotes | None, attaching: AttachmentInterceptor) -> None:
        self._commands = commands
        self._hooks = hooks
        self._attaching = attaching
        self._sent = Sent()

    async def admit(self, prompt: Message, branch: Branch) -> AdmittedPrompt:
        self._sent = Sent()
        try:
            sent = await self._commands.sent(prompt, branch)
            notes = [*sent.notes]
            if self._hooks:
                whole = "\n\n".join([prompt.text, *(note.text for note in sent.notes)])
                notes += await self._hooks(_saying(prompt, whole), branch)
        except BaseException:
            self._commands.forget()
            raise
        self._sent = sent
        return AdmittedPrompt(tuple(notes), sent.model)

    def apply(self, event: Event) -> None:
        self._attaching.apply(event)
        match event:
            case TurnStarted(agent="main") if self._sent.spoken:
                # Files that a command mentions are attached, if its own file may read them.
                self._attaching.bring(self._sent.spoken, self._sent.owner)
            case _:
                self._commands.apply(event)


def _saying(prompt: Message, text: str) -> Message:
    """Return ``prompt`` with another text."""
    if text == prompt.text:
        return prompt
    rest = tuple(block for block in prompt.blocks if not isinstance(block, Text))
    return replace(user(text, origin=prompt.origin), blocks=(Text(text), *rest), id=prompt.id, at=prompt.at)
