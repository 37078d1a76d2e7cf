"""What a person can choose from before there is a conversation: models, servers, keys. Protocols only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ba_tui.core.provider import ModelInfo
from ba_tui.core.values import frozen

SLOTS: Mapping[str, str] = {"small": "small work such as summaries", "reasoning": "answers in plan mode"}
"""The slots beside the model of the conversation, and what each is for."""


@frozen
class LocalServer:
    """A model server found on loopback, and the ids (``openai/…``) it offers."""

    name: str
    base_url: str
    models: tuple[str, ...]


class Catalogue(Protocol):
    """What can be chosen: models."""

    def models(self) -> Sequence[ModelInfo]: ...


class Setup(Protocol):
    """The way to a first answer."""

    def missing(self, model: str) -> str:
        """Why ``model`` can't be asked yet, as one line; empty when it can."""
        ...

    def first_model(self, provider: str) -> str:
        """The id of the model to begin with at ``provider``; empty when none is known."""
        ...

    async def local_servers(self) -> Sequence[LocalServer]: ...

    def save_key(self, provider: str, key: str) -> str:
        """Keep an API key for later starts; says where it went. Raises StorageError."""
        ...

    def use_server(self, server: LocalServer, model: str) -> str:
        """Make a local server's model the default of later starts; returns its id."""
        ...

    def in_slot(self, slot: str, main: str) -> str:
        """The id of the model that does the work of ``slot`` in a conversation with ``main``. Raises UsageError."""
        ...

    def remember(self, key: str, value: str) -> None:
        """Set one preference (``theme``, ``model``) in the person's config.yaml. The model of a slot (``small.model``,
        ``reasoning.model``; empty for its default) counts at once. Raises StorageError, UsageError."""
        ...
