"""The model that one agent uses now, and what follows from it: its provider, what it sees, how long its answers are."""

from __future__ import annotations

from collections.abc import Callable

from ba_tui.core.ports.exchanges import Recorder
from ba_tui.core.provider import ModelInfo, Provider
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.retrying import Persistent
from ba_tui.providers.vendors import provider_for
from ba_tui.settings import Settings


class ModelInUse:
    """The default model until another is chosen. ``recorder`` makes what keeps the requests to a model by its id."""

    def __init__(self, access: ProviderAccess, settings: Settings, recorder: Callable[[str], Recorder]) -> None:
        self._access = access
        self._settings = settings
        self._recorder = recorder
        self._chosen: ModelInfo | None = None

    def choose(self, name: str) -> None:
        """Raises UsageError when ``name`` can't be a model."""
        self._chosen = self._access.model(name)

    def info(self) -> ModelInfo:
        return self._chosen or self._access.model(self._access.default_model())

    def longest(self) -> int:
        """Tokens that an answer may have."""
        most = self.info().max_output
        return min(self._settings.max_output_tokens or most, most)

    def sees_pictures(self) -> bool:
        return self._chosen is not None and self._chosen.vision

    def reads_documents(self) -> bool:
        """Whether its provider takes whole PDF files."""
        return (
            self._chosen is not None and self._chosen.vision and self._access.profile(self._chosen).kind == "anthropic"
        )

    def filled(self, tokens: int) -> float:
        """The share of the window, from 0 to 1, that ``tokens`` fill; 0 while no model is chosen."""
        return tokens / self._chosen.window if self._chosen and self._chosen.window else 0.0

    def provider(self, name: str) -> Provider:
        """A new connection to the model ``name``. Call it off the loop. Raises UsageError, AuthFailed."""
        info = self._access.model(name)
        return Persistent(provider_for(info, self._settings, self._access, self._recorder(info.id)))
