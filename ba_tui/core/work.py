"""What is to be done and by which instructions, as pure values: todo items, active skills."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ba_tui.core.values import frozen

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]
Priority: TypeAlias = Literal["low", "medium", "high"]


@frozen
class Todo:
    id: str
    content: str
    status: TodoStatus = "pending"
    priority: Priority = "medium"
    broken: str = ""
    """The command that had failed last when the item was set to completed."""

    @property
    def done(self) -> bool:
        """Completed, and no failure says otherwise."""
        return self.status == "completed" and not self.broken


@frozen
class ActiveSkill:
    """A skill on the activation stack. ``digest`` is the hash of the content that was activated; ``allowed_tools`` what
    its front matter names (``exclusive``: nothing else may be used), ``model`` its override, empty for none.
    ``by``: who started it; ``core`` ones do not count as depth."""

    id: str
    activation: str
    digest: str
    parameters: str = ""
    allowed_tools: tuple[str, ...] = ()
    exclusive: bool = False
    model: str = ""
    by: Literal["model", "person", "file", "core"] = "model"
