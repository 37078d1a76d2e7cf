"""The tool python with a kernel, which keeps variables, or the stateless one where there can be none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ba_tui.core.errors import off_loop
from ba_tui.core.events import MAIN
from ba_tui.core.ports.rooms import JoiningTool, ToolsFound
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.tools.python_place import PythonPlace, python_memory
from ba_tui.processes.terminal_text import plain
from ba_tui.tools.builtin.shell import MAX_SECONDS, check, command_tool
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed
from ba_tui.tools.modalities import Modalities

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.kernel.client import PythonKernel

NAME = "python"
INSTEAD = "Query tables with query_data; the tool shell can run Python, and asks where it must."
RESTARTED = "ba was started again: variables of earlier Python calls are gone; tables are still there"


class Kernels:
    """The kernels of one session: one for the conversation, and one of its own for each sub-agent, as they would
    overwrite each other's variables. A sub-agent's ends with it."""

    def __init__(self, place: PythonPlace, engine: Analysis) -> None:
        self.place = place
        self._engine = engine
        self._main: PythonKernel | None = None
        self._others: WeakKeyDictionary[Branch, PythonKernel] = WeakKeyDictionary()
        self._begun = False

    @property
    def main(self) -> PythonKernel:
        """The kernel of the conversation itself."""
        self._main = self._main or self._new()
        return self._main

    def of(self, branch: Branch) -> PythonKernel:
        """The kernel for calls of the agent of ``branch``."""
        if branch.name == MAIN:
            return self.main
        return self._others.setdefault(branch, self._new())

    def lost(self, transcript: Transcript, call_id: str) -> str:
        """What to say, once, of variables that were set before ba was started."""
        first, self._begun = not self._begun, True
        calls = (call for message in transcript.messages for call in message.calls)
        earlier = first and any(call.name == NAME and call.id != call_id for call in calls)
        return RESTARTED if earlier else ""

    async def close(self) -> None:
        for kernel in filter(None, (self._main, *self._others.values())):
            await kernel.close()
        await off_loop(self.place.close)

    def _new(self) -> PythonKernel:
        from ba_tui.features.data.analysis.kernel.client import PythonKernel  # noqa: PLC0415 - not before the first call

        return PythonKernel(lambda: self.place.made(self._engine), self._engine)


def kernel_tool(definition: Definition, kernels: Kernels, modalities: Modalities) -> Tool:
    place = kernels.place

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        from ba_tui.features.data.tools.python_result import PythonCall, python_result  # noqa: PLC0415 - as the kernel

        code: str = args["code"]
        check(code, "code")
        if why := await asyncio.to_thread(place.lacking):
            raise Failed("permission_denied", f"Python was not run, because {why}.", INSTEAD)
        kernel = kernels.of(call.branch)
        if args.get("reset"):
            await kernel.reset()
        seconds = min(float(args.get("timeout", place.settings.analysis.python_seconds)), MAX_SECONDS)
        lost = kernels.lost(call.branch.transcript, call.id) if call.branch.name == MAIN else ""
        ran = await kernel.run(code, seconds, lambda text: call.report(plain(text)))
        shown = PythonCall(code, place.files, python_memory(place.settings), seconds, lost)
        return await asyncio.to_thread(python_result, ran, shown, modalities)

    tool = command_tool(NAME, "code", definition, run)
    return replace(tool, facts=replace(tool.facts, reads=True))


class PythonSource:
    """Brings one of both tools: the one with a kernel where that can be held to reading, else the ``stateless`` one.
    Once there was a kernel, it stays."""

    def __init__(self, definition: Definition, kernels: Kernels, modalities: Modalities, stateless: Tool) -> None:
        self._stateless = ToolsFound((JoiningTool(stateless),))
        self._kernel = ToolsFound((JoiningTool(kernel_tool(definition, kernels, modalities)),))
        self._lacking = kernels.place.lacking
        self._begun = self._chosen = False

    def look(self) -> ToolsFound:
        """The first look comes with the start of a session, which must not wait for a sandbox."""
        self._chosen = self._chosen or (self._begun and not self._lacking())
        self._begun = True
        return self._kernel if self._chosen else self._stateless
