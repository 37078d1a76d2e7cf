"""The slots main, small, reasoning and fallback with their models and settings; rate limits of providers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.messages import Usage
from ba_tui.core.ports.settings import SLOTS
from ba_tui.core.provider import ModelInfo
from ba_tui.core.values import frozen
from ba_tui.providers.catalog import ModelCatalog
from ba_tui.settings import LoadedSettings, ModelProfile, Settings

SlotName: TypeAlias = Literal["main", "small", "reasoning"]
SMALL: SlotName = "small"
REASONING: SlotName = "reasoning"
PLAN = "plan"
"""The mode in which the model of the slot reasoning answers."""


class Slots:
    """The slots of the settings, until the user chooses otherwise. ``model`` finds a model by its name, ``profile`` its
    profile."""

    def __init__(
        self,
        loaded: LoadedSettings,
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
        """Set the model of a slot until the process ends."""
        self._chosen[slot] = model

    def small(self, main: ModelInfo) -> ModelInfo:
        """Return the small model beside ``main``: the set one, else its vendor's cheap one, else ``main``.

        Raises:
            UsageError: the set one is no valid model.
        """
        return self._set(SMALL) or self._cheap(main) or main

    def reasoning(self) -> ModelInfo:
        """Return the model of plan mode. Raises UsageError when none is set, or as ``small``."""
        if found := self._set(REASONING):
            return found
        raise UsageError("No model is set for reasoning.", "Set one: /model reasoning PROVIDER/MODEL.")

    def fallback(self) -> str:
        """Return the id of the fallback model; empty when none is set, or no valid one."""
        try:
            found = self._found("fallback_model", self._loaded.settings.fallback_model)
        except UsageError:
            return ""
        return found.id if found else ""

    def problems(self, *, strict: bool) -> Sequence[Notice]:
        """Return settings with invalid models, with their place. Raises the first when ``strict``."""
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
        """Return the model that is set for ``slot``, empty without one."""
        if slot in self._chosen:
            return self._chosen[slot]
        settings = self._loaded.settings
        return (settings.small if slot == SMALL else settings.reasoning).model

    def settings(self, slot: SlotName) -> Settings:
        """Return the settings with those of ``slot`` in place of main's."""
        settings = self._loaded.settings
        if slot == "main":
            return settings
        own = settings.small if slot == SMALL else settings.reasoning
        return replace(settings, temperature=own.temperature, effort=own.effort, max_output_tokens=own.max_tokens)

    def _cheap(self, main: ModelInfo) -> ModelInfo | None:
        """Return the cheap model of the vendor of ``main``, if the vendor serves ``main`` and it is no cheaper."""
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
    """Raise UsageError for an effort or a temperature that ``info`` does not take."""
    temperature, cure = settings.temperature, "Take it out of the settings, or choose another model with /model."
    if settings.effort and not info.thinking:
        raise UsageError(f"{info.id} takes no effort, and {settings.effort} is set.", cure)
    if temperature is None:
        return
    if not info.temperature:
        raise UsageError(f"{info.id} takes no temperature, and {temperature:g} is set.", cure)
    if format == "anthropic" and temperature > 1:
        raise UsageError(f"{info.id} takes a temperature from 0 to 1, and {temperature:g} is set.", "Set a lower one.")


MINUTE = 60.0


class Bucket:
    """A token bucket: ``size`` may be taken within a minute. It may be overdrawn: then the next request waits for the
    debt."""

    def __init__(self, size: int, clock: Callable[[], float]) -> None:
        self._size = size
        self._clock = clock
        self._left = float(size)
        self._at = clock()

    def wait(self, least: float) -> float:
        """Return the seconds until ``least`` is left."""
        now = self._clock()
        self._left = min(self._size, self._left + (now - self._at) * self._size / MINUTE)
        self._at = now
        return max(0.0, (least - self._left) * MINUTE / self._size)

    def take(self, amount: float) -> None:
        self._left -= amount


@frozen
class Wait:
    """``seconds`` to wait, and the limit that is the reason."""

    seconds: float
    reason: str


class RateLimit:
    """The limits of one provider on requests and tokens a minute; without limits no request waits."""

    def __init__(self, name: str, profile: ModelProfile, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._profile = profile
        self._requests = Bucket(profile.requests_per_minute, clock) if profile.requests_per_minute else None
        self._tokens = Bucket(profile.tokens_per_minute, clock) if profile.tokens_per_minute else None

    def next(self) -> Wait | None:
        """Return how long the next request has to wait; None when it may be sent, which takes it from the limit."""
        requests = self._requests.wait(1) if self._requests else 0.0
        tokens = self._tokens.wait(1) if self._tokens else 0.0
        if wait := max(requests, tokens):
            most, what = self._profile.tokens_per_minute, "tokens"
            if requests >= tokens:
                most, what = self._profile.requests_per_minute, "requests"
            return Wait(wait, f"{self._name} is limited to {most:,} {what} a minute in the settings.")
        if self._requests:
            self._requests.take(1)
        return None

    def used(self, usage: Usage | None) -> None:
        """Take the tokens of an answer from the limit."""
        if usage and self._tokens:
            self._tokens.take(usage.prompt + usage.output)


class RateLimits:
    """One limit for each provider, shared by all its connections in this process."""

    def __init__(self) -> None:
        self._limits: dict[str, RateLimit] = {}

    def of(self, name: str, profile: ModelProfile) -> RateLimit:
        if name not in self._limits:
            self._limits[name] = RateLimit(name, profile)
        return self._limits[name]
