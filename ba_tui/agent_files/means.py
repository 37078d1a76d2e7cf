"""The tools and models that files of agents can name."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ba_tui.core.provider import ModelInfo
    from ba_tui.providers.access import ProviderAccess

MAX_NAME = 64


class AgentMeans:
    """The tools of a session and the models of the settings. ``tools`` returns the names of all tools."""

    def __init__(self, tools: Callable[[], Collection[str]], access: ProviderAccess) -> None:
        self.tools = tools
        self._access = access

    def missing(self, model: str) -> str:
        """Return why a file can't use ``model``; empty when it can."""
        return self._access.missing(model, in_file=True)

    def model(self, name: str) -> ModelInfo:
        """Return the facts of a model. Raises UsageError."""
        return self._access.model(name)

    def slot(self, slot: str) -> str:
        """Return the model that the user set for small work or reasoning; empty without one."""
        return self._access.slots.named(slot)
