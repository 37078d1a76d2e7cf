"""What is to be done, as pure values: todo items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]
Priority: TypeAlias = Literal["low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class Todo:
    id: str
    content: str
    status: TodoStatus = "pending"
    priority: Priority = "medium"
