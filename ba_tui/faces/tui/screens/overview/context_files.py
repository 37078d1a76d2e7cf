"""What the model is told from files in every session: the context files that count, and where one could be written.

Enter opens one in the editor. Which files count is the inventory's affair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from textual.widgets import Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.instructions import ContextFile, ContextFiles
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.screens.overview.grouped import GroupedPicker, PickerGroup
from ba_tui.faces.tui.screens.picker import PickerChoice

KEYS = "Enter edit · r refresh · Esc close"
HEADS = {"user": "Yours, in every folder", "project": "This project's"}
EDITED = "What you changed counts from your next message."
EditFile = Callable[[Path], Awaitable[None]]
"""Opens a file in the person's editor. Raises UsageError."""


class ContextFileList(GroupedPicker):
    """Files under whose they are."""

    def __init__(self, files: ContextFiles, edit: EditFile) -> None:
        super().__init__("Instruction files", keys=KEYS)
        self._source = files
        self._edit = edit
        self._files: dict[str, ContextFile] = {}

    def action_reload(self) -> None:
        """Look again which files there are."""
        self.run_worker(self._load, group="files", exclusive=True, exit_on_error=False)

    async def _load(self, told: str = KEYS) -> None:
        try:
            files = await asyncio.to_thread(self._source.files)
        except BaError as error:
            self.say(error.with_hint)
            return
        self._files = {str(file.path): file for file in files}
        of = {owner: [_choice(id, file) for id, file in self._files.items() if file.owner == owner] for owner in HEADS}
        self.groups = [PickerGroup(HEADS[owner], choices) for owner, choices in of.items() if choices]
        self.query_one(".title", Static).update(f"Instruction files: {_title(files)}")
        self.refill()
        self.say(told)

    def choose(self, id: str) -> None:
        if file := self._files.get(id):
            self.run_worker(partial(self._open, file), group="edit", exclusive=True, exit_on_error=False)

    async def _open(self, file: ContextFile) -> None:
        try:
            await self._edit(file.path)
        except BaError as error:
            self.say(error.with_hint)
            return
        await self._load(EDITED)


def _title(files: Sequence[ContextFile]) -> str:
    read = [file for file in files if file.state == "read"]
    tokens = sum(file.tokens for file in read)
    return f"{count(len(read), 'context file')} read, about {short_count(tokens)} tokens" if read else "nothing is read"


def _choice(id: str, file: ContextFile) -> PickerChoice:
    if file.state == "missing":
        return PickerChoice(id, (file.shown, "not there", ""), "Enter creates it")
    size = f"~{short_count(file.tokens)} tokens" if file.tokens else ""
    below = " · ".join(filter(None, (file.note, *file.details)))
    return PickerChoice(id, (file.shown, "read" if file.state == "read" else "not read", size), below)
