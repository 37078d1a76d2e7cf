"""The Python session for faces: its variables and files, saving one, keeping a DataFrame, beginning anew."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.python import PythonFile, PythonState
from ba_tui.features.data.tools.exports import ExportRules
from ba_tui.features.data.tools.python_kernels import Kernels
from ba_tui.resources import open_unlinked
from ba_tui.tools.editing.disk import place_file

KEEP_SECONDS = 60.0


class SessionPython:
    """core.ports.python.PythonSession: the kernel of the conversation itself, not those of sub-agents."""

    def __init__(self, kernels: Kernels, rules: ExportRules) -> None:
        self._kernels = kernels
        self._rules = rules

    async def state(self) -> PythonState:
        kernel = self._kernels.main
        found = await asyncio.to_thread(self._written)
        files = tuple(PythonFile(name, size) for name, (size, _) in found.items())
        if not kernel.running:
            return PythonState(files=files)
        variables = await kernel.variables()
        return PythonState(True, variables is None, variables or (), files)

    async def keep(self, name: str) -> str:
        kernel = self._kernels.main
        if not name.isidentifier() or not kernel.running:
            raise UsageError(f"There is no variable {name!r}.")
        ran = await kernel.run(f"_ = ba.keep({name}, {json.dumps(name)})", KEEP_SECONDS)
        if not ran.kept:
            raise UsageError(ran.error.line.partition(": ")[2] if ran.error else f"{name} can't be kept.")
        return ran.kept[-1].handle

    async def reset(self) -> bool:
        return await self._kernels.main.reset()

    async def save(self, name: str, path: str = "") -> PythonFile:
        return await asyncio.to_thread(self._saved, name, path)

    def _written(self) -> Mapping[str, tuple[int, int]]:
        """The files that Python has written: size and time of each."""
        from ba_tui.features.data.analysis.kernel.files import files_in  # noqa: PLC0415 - not before somebody looks

        return files_in(self._kernels.place.files)

    def _saved(self, name: str, path: str) -> PythonFile:
        target = self._rules.target(path or Path(name).name)
        shown = self._rules.workspace.shown(target)
        if why := self._rules.concern(target):
            raise UsageError(f"{shown} {why}.", "Name a new file in this folder: /python save FILE PATH")
        if name not in self._written():
            raise UsageError(f"Python has written no file {name!r}.", "/python lists the files.")
        # Through a copy of ours: the code may still run, and put a link in the place of the file.
        source = Path(os.path.realpath(self._kernels.place.files)) / name
        with tempfile.NamedTemporaryFile() as copy:
            with open_unlinked(source) as file:
                shutil.copyfileobj(file, copy)
            copy.flush()
            return PythonFile(shown, place_file(Path(copy.name), target, overwrite=False, shown=shown))
