"""The slots main, small and reasoning: which model each kind of work asks, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.setup import SLOTS
from ba_tui.core.provider import ModelInfo
from ba_tui.providers.catalog import ModelCatalog
from ba_tui.settings import Loaded, ModelProfile, Settings

SlotName: TypeAlias = Literal["main", "small", "reasoning"]
SMALL: SlotName = "small"
REASONING: SlotName = "reasoning"
PLAN = "plan"
"""The mode in which the model of the slot reasoning answers."""


class Slots:
    """As the settings say, until the person chooses otherwise. ``model`` finds one by its name, ``profile`` the way to
    it."""

    def __init__(
        self,
        loaded: Loaded,
        catalog: ModelCatalog,
        model: Callable[[str], ModelInfo],
        profile: Callable[[ModelInfo], ModelProfile],
    ) -> None:
        self._loaded = loaded
        self._catalog = catalog
        self._model = model
        self._profile = profile
        self._chosen: dict[str, str] = {}

    def choose(self, slot: str, model: str) -> None:
        """From now on, until the process ends."""
        self._chosen[slot] = model

    def small(self, main: ModelInfo) -> ModelInfo:
        """The model for small work beside ``main``: the one that was set, else its vendor's cheap one, else itself.

        Raises:
            UsageError: the one that was set can't be a model.
        """
        return self._set(SMALL) or self._cheap(main) or main

    def reasoning(self) -> ModelInfo:
        """The model of plan mode. Raises UsageError where none was set, or as ``small``."""
        if found := self._set(REASONING):
            return found
        raise UsageError("No model is set for reasoning.", "Set one: /model reasoning PROVIDER/MODEL.")

    def fallback(self) -> str:
        """The id of the fallback model; empty where none was set, or one that can't be."""
        try:
            found = self._found("fallback_model", self._loaded.settings.fallback_model)
        except UsageError:
            return ""
        return found.id if found else ""

    def problems(self, *, strict: bool) -> Sequence[Notice]:
        """Settings that name a model that can't be, with their place. Raises the first when ``strict``."""
        found: list[UsageError] = []
        named = {f"{slot}.model": self.named(slot) for slot in SLOTS}
        for key, name in {**named, "fallback_model": self._loaded.settings.fallback_model}.items():
            try:
                self._found(key, name)
            except UsageError as error:
                found.append(error)
        if strict and found:
            raise found[0]
        return [Notice(str(error), "warning", error.hint) for error in found]

    def named(self, slot: str) -> str:
        """What was set for ``slot``, empty when nothing was."""
        if slot in self._chosen:
            return self._chosen[slot]
        settings = self._loaded.settings
        return (settings.small if slot == SMALL else settings.reasoning).model

    def settings(self, slot: SlotName) -> Settings:
        """The settings with how ``slot`` asks its model in place of how main does."""
        settings = self._loaded.settings
        if slot == "main":
            return settings
        own = settings.small if slot == SMALL else settings.reasoning
        return replace(settings, temperature=own.temperature, effort=own.effort, max_output_tokens=own.max_tokens)

    def _cheap(self, main: ModelInfo) -> ModelInfo | None:
        """The cheap model of the vendor of ``main``, where the vendor itself is asked and it costs no more."""
        name, profile = self._catalog.small(main.provider), self._profile(main)
        if not name or profile.kind != main.provider or profile.base_url or not (main.known and main.prices):
            return None
        small = self._model(name)
        return small if small.prices and small.prices.input <= main.prices.input else None

    def _set(self, slot: SlotName) -> ModelInfo | None:
        return self._found(f"{slot}.model", self.named(slot))

    def _found(self, key: str, name: str) -> ModelInfo | None:
        try:
            return self._model(name) if name else None
        except UsageError as error:
            place = self._loaded.sources.get(key, "")
            raise UsageError(f"{place}: {key}: {error}", error.hint) from error


def check_options(info: ModelInfo, settings: Settings, format: str) -> None:
    """Raises UsageError for an effort or a temperature that ``info`` does not take."""
    temperature, cure = settings.temperature, "Take it out of the settings, or choose another model with /model."
    if settings.effort and not info.thinking:
        raise UsageError(f"{info.id} takes no effort, and {settings.effort} is set.", cure)
    if temperature is None:
        return
    if not info.temperature:
        raise UsageError(f"{info.id} takes no temperature, and {temperature:g} is set.", cure)
    if format == "anthropic" and temperature > 1:
        raise UsageError(f"{info.id} takes a temperature from 0 to 1, and {temperature:g} is set.", "Set a lower one.")
