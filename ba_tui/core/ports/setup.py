"""What a person can choose from before there is a conversation: models, servers, keys. Protocols only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ba_tui.core.provider import ModelInfo
from ba_tui.core.values import frozen

SLOTS: Mapping[str, str] = {"small": "small work such as summaries", "reasoning": "answers in plan mode"}
"""The slots beside the model of the conversation, and what each is for."""


@frozen
class FoundServer:
    """A model server and what it offers. ``provider`` begins the ids of its models (``ollama/llama3``);
    ``troubles`` say in one line each why it lists none, or what is wrong with some."""

    provider: str
    title: str
    base_url: str
    models: tuple[ModelInfo, ...] = ()
    troubles: tuple[str, ...] = ()


class Catalogue(Protocol):
    """What can be chosen: models."""

    def models(self) -> Sequence[ModelInfo]: ...


class Setup(Protocol):
    """The way to a first answer."""

    def missing(self, model: str) -> str:
        """Why ``model`` can't be asked yet, as one line; empty when it can. May ask a server on this machine: call it
        off the loop."""
        ...

    def first_model(self, provider: str) -> str:
        """The id of the model to begin with at ``provider``; empty when none is known."""
        ...

    async def servers(self) -> Sequence[FoundServer]:
        """The model servers on this machine's usual ports, and those of the settings, as they answer now."""
        ...

    async def find_server(self, address: str, key: str = "") -> FoundServer:
        """The server at ``address`` (``HOST:PORT``, a URL, or ``NAME URL``) with its models.

        Raises:
            AuthFailed: it wants a key, or another one. UsageError, ProviderError: it is none, or its name is taken.
        """
        ...

    async def check_key(self, provider: str, key: str) -> None:
        """Ask ``provider`` once whether it takes ``key``.

        Raises:
            UsageError: it can't be a key. AuthFailed: it is refused. ProviderError: that could not be found out.
        """
        ...

    def save_key(self, provider: str, key: str) -> str:
        """Keep an API key for later starts; says where it went. Raises StorageError, UsageError."""
        ...

    def use_server(self, server: FoundServer, model: str, key: str = "") -> str:
        """Make a server's model the default of later starts, and keep the server and its key; returns its id."""
        ...

    def use_file(self, path: str) -> str:
        """Make a model file (GGUF) on this machine the default of later starts; returns its id.

        Raises:
            UsageError: it is none, or what runs it is not installed.
        """
        ...

    def in_slot(self, slot: str, main: str) -> str:
        """The id of the model that does the work of ``slot`` in a conversation with ``main``. Raises UsageError."""
        ...

    def remember(self, key: str, value: str) -> None:
        """Set one preference (``theme``, ``model``) in the person's config.yaml. The model of a slot (``small.model``,
        ``reasoning.model``; empty for its default) counts at once. Raises StorageError, UsageError."""
        ...
