"""The model that one agent uses now, and what follows from it: its provider, what it sees, how long its answers are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.ports.exchanges import Recorder
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider
from ba_tui.core.tool import Tool
from ba_tui.providers.access import SCRIPTED, ProviderAccess
from ba_tui.providers.fallback import WithFallback
from ba_tui.providers.informed import Informed
from ba_tui.providers.local.model_files import LOCAL
from ba_tui.providers.local.shortening import SMALL_WINDOW, few_tools, short_prompt
from ba_tui.providers.retrying import Limits, Persistent
from ba_tui.providers.slots import PLAN, REASONING, check_options
from ba_tui.providers.vendors import provider_for
from ba_tui.resources import Places
from ba_tui.settings import Settings
from ba_tui.settings.keys import kept_keys

IN_SLOT = f"{REASONING}="
"""Before the name of a model that is asked as the slot reasoning is: with its effort and temperature."""


class _Shell(Protocol):
    def withheld(self) -> Sequence[str]: ...


class KeySources(Protocol):
    """What knows keys: providers, ba's own files, and the environment that commands do not see."""

    @property
    def access(self) -> ProviderAccess: ...
    @property
    def where(self) -> Places: ...
    @property
    def shell(self) -> _Shell: ...


def keys_of(sources: KeySources, model: str) -> tuple[str, ...]:
    """The keys that ``sources`` know, among them that of the provider of ``model``. Blocks."""
    found = [*sources.shell.withheld(), *kept_keys(sources.where)]
    with suppress(BaError):
        key = sources.access.key(sources.access.model(model).provider)
        found.append(key.value if key else "")
    return tuple(found)


class ModelInUse:
    """The default model until another is chosen. ``recorder`` makes what keeps the requests to a model by its id."""

    def __init__(self, access: ProviderAccess, settings: Settings, recorder: Callable[[str], Recorder]) -> None:
        self._access = access
        self._settings = settings
        self._recorder = recorder
        self._chosen = ""

    def choose(self, name: str) -> None:
        """Raises UsageError when ``name`` can't be a model."""
        self._chosen = self._access.model(name).id

    def info(self) -> ModelInfo:
        """With all that is known of it by now."""
        return self._access.model(self._chosen or self._access.default_model())

    def longest(self) -> int:
        """Tokens that an answer may have."""
        most = self.info().max_output
        return min(self._settings.max_output_tokens or most, most)

    def sees_pictures(self) -> bool:
        return bool(self._chosen) and self.info().vision

    def reads_documents(self) -> bool:
        """Whether its provider takes whole PDF files."""
        return self.sees_pictures() and self._access.profile(self.info()).format == "anthropic"

    def filled(self, tokens: int) -> float:
        """The share of the window, from 0 to 1, that ``tokens`` fill; 0 while no model is chosen."""
        return tokens / self.info().window if self._chosen else 0.0

    def told(self, system: str, tools: Sequence[Tool]) -> tuple[str, Sequence[Tool]]:
        """What of a system prompt and of the tools its requests carry: local models with small windows get less."""
        info, names = self.info(), self._settings.local.tools
        if info.provider != LOCAL or info.window > SMALL_WINDOW or not names:
            return system, tools
        return short_prompt(system), few_tools(tools, names)

    def wanted(
        self, skills: Callable[[], str], mode: Callable[[], str], *, main: bool
    ) -> Callable[[ModelRequest], str]:
        """What says which model answers a request in place of the one chosen, empty for none: that of the slot
        reasoning where the request asks for it; for the main agent also the one that ``skills`` name, or in plan mode
        that of the slot reasoning."""

        def name(request: ModelRequest) -> str:
            chosen = skills() if main else ""
            if chosen and not request.reasoning:
                return chosen
            reasons = request.reasoning or (main and mode() == PLAN)
            planned = self._access.slots.named(REASONING) if reasons else ""
            return IN_SLOT + planned if planned else chosen

        return name

    def reasoning(self) -> str:
        """The id of the model of the slot reasoning; empty when none is set, or the one that is asked anyway."""
        try:
            found = self._access.slots.reasoning().id
        except UsageError:
            return ""
        return "" if found == self._chosen else found

    def provider(self, name: str, effort: str = "") -> Provider:
        """A new connection to the model ``name``, as ``wanted`` says it; the chosen one is asked with ``effort`` in
        place of that of the settings, if it takes any. Call it off the loop.

        Raises:
            UsageError: it can't be asked with these settings. AuthFailed: there is no key.
        """
        slots = self._access.slots
        if name.startswith(IN_SLOT):
            info, settings = slots.reasoning(), slots.settings(REASONING)
            self._check(info, settings)
            return self._answering(info, settings)
        info, settings = self._access.model(name), self._settings
        if info.id != self._chosen:
            return self._answering(info, settings)
        if effort and info.thinking:
            settings = replace(settings, effort=effort)
        self._check(info, settings)
        fallback = slots.fallback()
        if not fallback or fallback == info.id:
            return self._answering(info, settings)
        return WithFallback(self._answering(info, settings, settings.fallback_after), fallback, self._falling_back)

    def _check(self, info: ModelInfo, settings: Settings) -> None:
        """The settings are for this model, so it must take all of them. Raises UsageError."""
        profile = self._access.profile(info)
        if profile.kind != SCRIPTED:
            check_options(info, settings, profile.format)

    def _falling_back(self, name: str) -> Provider:
        return self._answering(self._access.model(name), self._settings)

    def _answering(self, info: ModelInfo, settings: Settings, overloads: int = 0) -> Provider:
        def made(known: ModelInfo) -> Provider:
            return provider_for(known, settings, self._access, self._recorder(known.id))

        rate = self._access.limits.of(info.provider, self._access.profile(info))
        return Persistent(Informed(info.id, self._access, made), limits=Limits(rate, overloads))
