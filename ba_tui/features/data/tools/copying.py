"""COPY … TO of a query: the rows become a result, which is exported as any other, and only to a new file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import byte_size
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.tools.exports import FORMATS, ExportRules
from ba_tui.tools.editing.disk import place_file

_COPY = regex(
    r"(?is)\s*copy\s+(?:\((?P<query>.*)\)|(?P<table>[\w.\"]+))\s+to\s+'(?P<file>[^']+)'\s*"
    r"(?:\(\s*format\s+'?(?P<format>\w+)'?\s*(?:,\s*header(?:\s+true)?\s*)?\))?\s*;?\s*"
)


@frozen
class CopyTo:
    """``query`` whose rows go to ``file``."""

    query: str
    file: str


def copy_to(sql: str) -> CopyTo | None:
    """Return what a COPY … TO asks for; None for every other statement, also one with options of its own."""
    found = _COPY.fullmatch(sql)
    if found is None or (found["format"] and not found["file"].lower().endswith(f".{found['format'].lower()}")):
        return None
    return CopyTo(found["query"] or f"FROM {found['table']}", found["file"])


@frozen
class Copying:
    """Where ``rules`` let a result of ``analysis`` be written."""

    analysis: Analysis
    rules: ExportRules

    def checked(self, copy: CopyTo) -> Path:
        """Return the file that may be written. Blocks.

        Raises:
            UsageError: it has no known ending, may not be written, or exists.
        """
        if Path(copy.file).suffix.lower() not in FORMATS:
            raise UsageError(f"{copy.file} has no ending of a known format.", f"Known are {', '.join(FORMATS)}.")
        target = self.rules.target(copy.file)
        if target.exists() or target.is_symlink():
            shown = self.rules.workspace.shown(target)
            raise UsageError(f"{shown} exists already, and a query replaces no file.", "Choose another name.")
        return target

    async def write(self, copy: CopyTo, handle: str) -> str:
        """Write the result ``handle``; returns a line that says so. Raises BaError."""
        target = await asyncio.to_thread(self.checked, copy)
        shown = self.rules.workspace.shown(target)
        async with self.analysis.exported(handle, FORMATS[target.suffix.lower()]) as file:
            size = await asyncio.to_thread(place_file, file, target, overwrite=False, shown=shown)
        return f"Written to {shown} ({byte_size(size)})."
