"""Working memory of a task: in the session's journal, or on a Redis server for a team of several processes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

from ba_tui.core.errors import UsageError
from ba_tui.core.events import WorkingChanged
from ba_tui.core.ports.working import WorkingMemory
from ba_tui.core.turn import Branch
from ba_tui.features.memory.tools.working_values import check_size, storable

SESSION = ""
"""The scope of values that belong to no task: they stay until the session ends, and come back when it goes on."""


class JournaledWorking:
    """core.ports.working.WorkingMemory in the transcript of ``branch``: each change is an event of the session."""

    def __init__(self, branch: Branch, scope: str = SESSION) -> None:
        self._branch = branch
        self._scope = scope

    async def get(self, key: str, default: Any = None) -> Any:
        return deepcopy(self._values.get(key, default))

    async def set(self, key: str, value: Any) -> None:
        await self.update({key: value})

    async def update(self, values: Mapping[str, Any]) -> None:
        self._write({**self._values, **storable(values)})

    async def clear(self) -> None:
        if self._values:
            self._write({})

    async def to_dict(self) -> dict[str, Any]:
        return deepcopy(dict(self._values))

    @property
    def _values(self) -> Mapping[str, Any]:
        return self._branch.transcript.working.get(self._scope, {})

    def _write(self, values: dict[str, Any]) -> None:
        check_size(values)
        self._branch.emit(WorkingChanged(self._scope, values))


@asynccontextmanager
async def task_memory(branch: Branch, task: str, url: str | None = None) -> AsyncGenerator[WorkingMemory]:
    """The working memory of ``task`` until the block is left: then it is cleared, and the journal keeps what it held.

    With ``url``, that of a Redis server, other processes share it under the same name.

    Raises:
        UsageError: the task has no name, or the package for Redis is missing. StorageError: the server does not answer.
    """
    if not task.strip():
        raise UsageError("A task needs a name for its working memory.")
    if url is None:
        memory = JournaledWorking(branch, task)
        try:
            yield memory
        finally:
            await memory.clear()
        return
    from ba_tui.features.memory.tools.redis_working import connected  # noqa: PLC0415 - few teams span processes

    async with connected(url, task) as shared:
        try:
            yield shared
        finally:
            if held := await shared.to_dict():
                branch.emit(WorkingChanged(task, held))
                branch.emit(WorkingChanged(task, {}))
            await shared.clear()
