"""Working memory: the values of the task at hand, and parameters that subtasks pass on. A protocol only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


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
