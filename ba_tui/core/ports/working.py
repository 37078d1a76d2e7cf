"""Working memory: the values of the task at hand, and parameters that subtasks pass on. A protocol only."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from ba_tui.core.ports.memory import Memory
from ba_tui.core.turn import Branch


class WorkingMemory(Protocol):
    """Keys and JSON values of one task, or of the whole session. It is empty again once the task has ended.

    Its methods raise UsageError for values that are no JSON or too large, StorageError when a server does not answer.
    """

    async def get(self, key: str, default: Any = None) -> Any: ...

    async def set(self, key: str, value: Any) -> None: ...

    async def update(self, values: Mapping[str, Any]) -> None:
        """Set several keys as one change."""
        ...

    async def clear(self) -> None: ...

    async def to_dict(self) -> dict[str, Any]:
        """A copy of all values."""
        ...


class TaskMemory(Protocol):
    """What features that run tasks use of memory: entries across sessions, and values of one task."""

    @property
    def memory(self) -> Memory: ...

    def off(self) -> str:
        """Return why nothing is stored or recalled; empty while memory is on."""
        ...

    def working(self, branch: Branch, task: str) -> AbstractAsyncContextManager[WorkingMemory]:
        """Return the working memory of ``task``."""
        ...
