"""The system prompt, the notes that are added to prompts, and instructions that apply to some files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from ba_tui.context.instructions import (
    InstructionPlace,
    Instructions,
    instruction_note,
    name_of,
    read_instructions,
    sources,
)
from ba_tui.core.agent import Interceptor
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice, Steered
from ba_tui.core.instruction_names import AGENTS, LOADED
from ba_tui.core.ledger import rough
from ba_tui.core.messages import Message, reminder
from ba_tui.core.ports.context import ContextFile
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import neutralized, paintable
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.ingress import Ingress, from_home
from ba_tui.resources import bundled, read_regular, there
from ba_tui.settings import LoadedSettings, Settings
from ba_tui.write_ahead import RecoveryOutcome

PROMPTS = ("system_prompt_file", "append_system_prompt")
"""Settings that a trusted project may make."""
_HEAD = regex(r"ref: refs/heads/([^\s~^:?*\[\\<>\x00-\x20\x7f]{1,120})")
"""A branch name that git itself accepts: without spaces and on one line."""
LARGEST = 1_000_000
"""Bytes of a system prompt of the user's own."""


def system_prompt(loaded: LoadedSettings, cwd: Path, ingress: Ingress) -> str:
    """Return the stable part of every request, made once for a conversation, so that the provider's cache can be used.

    Raises:
        UsageError: the prompt file that the settings name can't be read.
    """
    settings = loaded.settings
    theirs = [key for key in PROMPTS if _of_project(loaded.sources[key], ingress)]
    text = settings.system_prompt
    if text is None:
        text = _of_file(settings.system_prompt_file, cwd, ingress, theirs=PROMPTS[0] in theirs)
    added = settings.append_system_prompt
    return join_parts(text, ingress.clean(added) if PROMPTS[1] in theirs else added)


def _of_file(named: Path | None, cwd: Path, ingress: Ingress, *, theirs: bool) -> str:
    """Return the prompt of the file in the settings, else ba's own with the facts of this start."""
    path = named or bundled("config") / "prompts" / "system.md"
    try:
        text = ingress.text(path, LARGEST, "project") if theirs else _named_prompt(path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"The system prompt {path} can't be read: {why}.", "Check system_prompt_file.") from error
    if named is not None:
        return text
    machine = os.uname()
    facts = {
        "cwd": neutralized(paintable(_folder(cwd), newlines=False)),
        "platform": f"{machine.sysname} {machine.machine}",
        "shell": "bash",
        "date": f"{datetime.now().astimezone():%Y-%m-%d}",
        "git": _branch(ingress),
    }
    for name, value in facts.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _folder(cwd: Path) -> str:
    """Return the folder for the model: its path from the home folder, else its name. Paths start there anyway."""
    shown = from_home(cwd)
    return shown if shown.startswith("~") else cwd.name or shown


def _named_prompt(path: Path) -> str:
    """Return the text of the user's prompt file, or of the one that ships with ba."""
    # A pipe that the shell opens, <(command), ends; another one may not.
    handed = path.is_relative_to("/dev/fd")
    return path.read_text("utf-8") if handed else read_regular(path, LARGEST).decode("utf-8")


def _of_project(source: str, ingress: Ingress) -> bool:
    """Whether a setting is from a project's file, not the user's."""
    return source.startswith("/") and not any(map(Path(source).is_relative_to, ingress.own))


def join_parts(*parts: str) -> str:
    """Join the parts that are not empty."""
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _branch(ingress: Ingress) -> str:
    try:
        head = _HEAD.fullmatch(ingress.text(ingress.root / ".git" / "HEAD", 4_096, "project").strip())
    except OSError:
        return ""
    return f"Git branch at the start: {head[1]}" if head else ""


def prompt_origin(settings: Settings) -> str:
    """Return the origin of the system prompt, for users."""
    own = str(settings.system_prompt_file) if settings.system_prompt_file else "built in"
    own = own if settings.system_prompt is None else "system_prompt"
    return f"{own}, append_system_prompt" if settings.append_system_prompt else own


MOST = 300
"""The newest files that are remembered: instructions for older ones are in the conversation already."""


class TouchedFiles:
    """The absolute paths that calls and mentions named, the newest last."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._files: dict[Path, None] = {}
        self._fresh = False

    @property
    def files(self) -> Sequence[Path]:
        return tuple(self._files)

    def add(self, path: str) -> None:
        file = Path(self._cwd, path)
        if ".." in file.parts:
            file = file.resolve()
        if file in self._files:
            return
        self._files[file], self._fresh = None, True
        while len(self._files) > MOST:
            del self._files[next(iter(self._files))]

    def take_fresh(self) -> bool:
        """Whether one was added since the last call."""
        fresh, self._fresh = self._fresh, False
        return fresh


def instructions_now(place: InstructionPlace, ingress: Ingress, touched: TouchedFiles) -> Sequence[Instructions]:
    """Return the instructions that apply now: to all files, or to one in ``touched``."""
    files = touched.files
    return [each for each in read_instructions(place, ingress, files) if each.concerns(files, place.root)]


class NestedInstructions(Interceptor):
    """After a call for a file, or a mention of one, sends the instructions that ``read`` returns."""

    def __init__(
        self,
        touched: TouchedFiles,
        tool: Callable[[str], Tool | None],
        read: Callable[[], Sequence[Instructions]],
    ) -> None:
        self._touched = touched
        self._tool = tool
        self._read = read

    async def before(self, branch: Branch) -> None:
        messages = branch.transcript.messages
        calls = next((message.calls for message in reversed(messages[-2:]) if message.role == "assistant"), ())
        tools = [(tool, call.input) for call in calls if (tool := self._tool(call.name))]
        for path in (path for tool, given in tools for path in tool.paths(given)):
            self._touched.add(path)
        if not self._touched.take_fresh():
            return
        note = await asyncio.to_thread(lambda: instruction_note(self._read(), messages))
        if note:
            # These files were not listed when the user trusted the folder.
            branch.emit(Notice(f"Instructions apply from now on: {', '.join(sources(note.text))}."))
            branch.emit(Steered(note))


CLOSED = "not read: this folder is not trusted (/trust)"


@frozen
class InstructionList:
    """core.ports.context.ContextFiles: the files of one conversation: those that are read, those that are not with
    the reason, and where one could be written."""

    place: InstructionPlace
    ingress: Ingress
    touched: TouchedFiles

    def files(self) -> Sequence[ContextFile]:
        touched = self.touched.files
        whole = replace(self.place, closed=False)
        found = [self._file(each, touched) for each in read_instructions(whole, self.ingress, touched)]
        return [*found, *self._missing()]

    def _file(self, item: Instructions, touched: Sequence[Path]) -> ContextFile:
        owner = "user" if item.owner == "user" else "project"
        note = item.note or ("" if item.text else "it is empty")
        off = not item.text
        if owner == "project" and self.place.closed:
            note, off = CLOSED, True
        elif not item.concerns(touched, self.place.root):
            note, off = "applies once the agent uses one of its files", True
        tokens = 0 if off else rough(item.text)
        return ContextFile(item.path, item.shown, owner, "off" if off else "read", tokens, note, _details(item))

    def _missing(self) -> Sequence[ContextFile]:
        """Return AGENTS.md of the project and of the user where there is no such file."""
        folders: dict[Literal["user", "project"], Path | None] = {"user": self.place.person, "project": self.place.root}
        return [
            ContextFile(folder / AGENTS, name_of(folder / AGENTS, owner, self.ingress), owner, "missing")
            for owner, folder in folders.items()
            if folder and not any(there(folder / name) for name in LOADED)
        ]


def _details(item: Instructions) -> tuple[str, ...]:
    lines = [f"for {', '.join(item.paths)}"] if item.paths else []
    lines += [f"imports {name}" for name in item.imports] + list(item.refused)
    return (*lines, f"a link to {item.target}") if item.target else tuple(lines)


UNREAD, CUT = "The model can't see it.", "The model can't see the rest: shorten the file."


class PendingNotices(Interceptor):
    """Shows each notice once, before the next request."""

    def __init__(self, notices: Iterable[Notice] = ()) -> None:
        self._notices = list(notices)

    def add(self, notice: Notice) -> None:
        self._notices.append(notice)

    async def before(self, branch: Branch) -> None:
        while self._notices:
            branch.emit(self._notices.pop(0))


class PromptNotes:
    """The notes of a prompt: the time and the project's instructions, which ``read`` reads for each prompt. Problems
    with their files are reported once, through ``notices``; each of ``outcomes``, about changes during which ba was
    killed, is added to one prompt."""

    def __init__(
        self,
        read: Callable[[], Sequence[Instructions]],
        notices: PendingNotices,
        outcomes: Callable[[], Sequence[RecoveryOutcome]] = tuple,
    ) -> None:
        self._read = read
        self._notices = notices
        self._outcomes = outcomes
        self._warned: set[str] = set()

    def notes(self, transcript: Transcript) -> Sequence[Message]:
        """Return hidden notes for a new prompt. Reads files."""
        now = datetime.now().astimezone()
        instructions = self._read()
        for item in instructions:
            if item.note:
                line = f"{item.shown} was {item.note}." if item.text else f"{item.shown} {item.note}."
                self._warn(line, CUT if item.text else UNREAD)
            for why in item.refused:
                self._warn(f"{item.shown}: {why}.", UNREAD)
        told = instruction_note(instructions, transcript.messages)
        known = [reminder(f"It is {now:%A, %Y-%m-%d %H:%M} ({now:%Z})."), *([told] if told else [])]
        for outcome in self._outcomes():
            known.append(reminder(f"In an earlier run: {outcome.text} Read a file again before you change it."))
            outcome.forget()
        return known

    def again(self, transcript: Transcript) -> Sequence[Message]:
        """Return the instructions that a compression removed from the conversation."""
        told = instruction_note(self._read(), transcript.messages)
        return [told] if told else []

    def _warn(self, line: str, hint: str) -> None:
        if line not in self._warned:
            self._warned.add(line)
            self._notices.add(Notice(line, "warning", hint))
