"""The list of instruction files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar

from textual.binding import BindingType

from ba_tui.core.ports.context import ContextFile, ContextFiles
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.screens.list_screen import RELOAD, ListContent, ListRow, ListScreen

OWNERS = {"user": "Yours, in every folder", "project": "This project's"}
EDITED = "What you changed counts from your next message."
EditFile = Callable[[Path], Awaitable[None]]
"""Opens a file in the user's editor. Raises UsageError."""


class ContextFileList(ListScreen[ContextFile]):
    """Instruction files, grouped by their owner."""

    FILTERED: ClassVar[bool] = False
    ENTER: ClassVar[str] = "edit"
    BINDINGS: ClassVar[list[BindingType]] = [RELOAD]

    def __init__(self, files: ContextFiles, edit: EditFile) -> None:
        super().__init__("Instruction files")
        self._files = files
        self._edit = edit

    def read(self) -> ListContent[ContextFile]:
        files = self._files.files()
        used = [file for file in files if file.state == "read"]
        tokens = short_count(sum(file.tokens for file in used))
        title = f"{count(len(used), 'context file')} read, about {tokens} tokens" if used else "nothing is read"
        rows = [_file_row(file) for owner in OWNERS for file in files if file.owner == owner]
        return ListContent(rows, f"Instruction files: {title}")

    def choose(self, row: ListRow[ContextFile]) -> None:
        if file := row.value:
            self.perform(lambda: self._edit(file.path), EDITED)


def _file_row(file: ContextFile) -> ListRow[ContextFile]:
    id, group = str(file.path), OWNERS[file.owner]
    if file.state == "missing":
        return ListRow(id, (file.shown, "not there", ""), "Enter creates it", value=file, group=group)
    size = f"~{short_count(file.tokens)} tokens" if file.tokens else ""
    below = " · ".join(filter(None, (file.note, *file.details)))
    cells = (file.shown, "read" if file.state == "read" else "not read", size)
    return ListRow(id, cells, below, value=file, group=group)
