"""Instructions that count only for some files: they are said once a tool was called for one of these, or the person
mentioned one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from ba_tui.context.instruction_files import InstructionPlace
from ba_tui.context.instructions import Instructions, read_instructions, said, sources
from ba_tui.core.events import Notice, Steered
from ba_tui.core.messages import Message
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch
from ba_tui.ingress import Ingress

MOST = 300
"""Files that are remembered, the newest ones: what was said for others stands in the conversation."""


class TouchedFiles:
    """The files that calls and mentions named, as absolute paths, the newest last."""

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
        """Whether one was added since this was asked last."""
        fresh, self._fresh = self._fresh, False
        return fresh


def instructions_now(place: InstructionPlace, ingress: Ingress, touched: TouchedFiles) -> Sequence[Instructions]:
    """Return those that count now: for all files, or for one that was touched."""
    files = touched.files
    return [each for each in read_instructions(place, ingress, files) if each.concerns(files, place.root)]


class NestedInstructions:
    """core.agent.Interceptor: after a call for a file, or a mention of one, says what is to be followed there, before
    the next request. ``read`` gives the instructions that count now."""

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
        note = await asyncio.to_thread(lambda: said(self._read(), messages))
        if note:
            # Nobody has seen these files listed when the folder was trusted.
            branch.emit(Notice(f"Instructions count from now on: {', '.join(sources(note.text))}."))
            branch.emit(Steered(note))

    async def after(self, reply: Message, branch: Branch) -> None:
        """An answer without calls touches nothing."""
