"""The models that an agent uses: its main model with its limits and abilities, and the small model for side work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from ba_tui.core.errors import BaError, ProviderError, UsageError
from ba_tui.core.events import SideRequest
from ba_tui.core.messages import Message, user
from ba_tui.core.ports.sessions import Recorder
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider, answer_of, charged
from ba_tui.core.tool import Tool
from ba_tui.providers.access import PLAN, REASONING, SCRIPTED, SMALL, ProviderAccess, check_options
from ba_tui.providers.local_files import LOCAL, SMALL_WINDOW, few_tools, short_prompt
from ba_tui.providers.pipeline import FallbackModel, Retries, provider_for, retried
from ba_tui.resources import UserFolders
from ba_tui.settings import Settings
from ba_tui.settings.keys import kept_keys

IN_SLOT = f"{REASONING}="
"""Prefix of a model's name: use it with effort and temperature of the slot reasoning."""


def keys_of(model: str, access: ProviderAccess, where: UserFolders, withheld: Iterable[str]) -> tuple[str, ...]:
    """Return all known keys: of ba's files, those ``withheld``, and that of the provider of ``model``. Blocks."""
    found = [*withheld, *kept_keys(where)]
    with suppress(BaError):
        key = access.key(access.model(model).provider)
        found.append(key.value if key else "")
    return tuple(found)


class AgentModel:
    """The main model of one agent: the default until another is chosen. ``recorder`` records the requests of an id."""

    def __init__(self, access: ProviderAccess, settings: Settings, recorder: Callable[[str], Recorder]) -> None:
        self._access = access
        self._settings = settings
        self._recorder = recorder
        self._chosen = ""

    def choose(self, name: str) -> None:
        """Choose the model ``name``. Raises UsageError when it is no valid model."""
        self._chosen = self._access.model(name).id

    def info(self) -> ModelInfo:
        """Return the facts of the model that are known now."""
        return self._access.model(self._chosen or self._access.default_model())

    def longest(self) -> int:
        """Return how many tokens an answer may have."""
        most = self.info().max_output
        return min(self._settings.max_output_tokens or most, most)

    def sees_pictures(self) -> bool:
        return bool(self._chosen) and self.info().vision

    def reads_documents(self) -> bool:
        """Whether its provider takes whole PDF files."""
        return self.sees_pictures() and self._access.profile(self.info()).format == "anthropic"

    def filled(self, tokens: int) -> float:
        """Return the share of the window, from 0 to 1, that ``tokens`` fill; 0 while no model is chosen."""
        return tokens / self.info().window if self._chosen else 0.0

    def request_head(self, system: str, tools: Sequence[Tool]) -> tuple[str, Sequence[Tool]]:
        """Return the system prompt and the tools of its requests: local models with small windows get fewer."""
        info, names = self.info(), self._settings.local.tools
        if info.provider != LOCAL or info.window > SMALL_WINDOW or not names:
            return system, tools
        return short_prompt(system), few_tools(tools, names)

    def wanted(
        self, skills: Callable[[], str], mode: Callable[[], str], *, main: bool
    ) -> Callable[[ModelRequest], str]:
        """Return a function that names the model of a request, empty for the chosen one: that of the slot reasoning
        where the request, or plan mode of the main agent, asks for it, else the one that ``skills`` name for the main
        agent."""

        def name(request: ModelRequest) -> str:
            chosen = skills() if main else ""
            if chosen and not request.reasoning:
                return chosen
            reasons = request.reasoning or (main and mode() == PLAN)
            planned = self._access.slots.named(REASONING) if reasons else ""
            return IN_SLOT + planned if planned else chosen

        return name

    def reasoning(self) -> str:
        """Return the id of the model of the slot reasoning; empty when none is set or when it is the chosen one."""
        try:
            found = self._access.slots.reasoning().id
        except UsageError:
            return ""
        return "" if found == self._chosen else found

    def provider(self, name: str, effort: str = "") -> Provider:
        """Return a new connection to ``name``, as ``wanted`` names it. Blocks. ``effort`` replaces that of settings.

        Raises:
            UsageError: the settings do not fit the model. AuthFailed: there is no key.
        """
        slots = self._access.slots
        if name.startswith(IN_SLOT):
            info, settings = slots.reasoning(), slots.settings(REASONING)
            self._check(info, settings)
            return self._retried(info, settings)
        info, settings = self._access.model(name), self._settings
        if info.id != self._chosen:
            return self._retried(info, settings)
        if effort and info.thinking:
            settings = replace(settings, effort=effort)
        self._check(info, settings)
        fallback = slots.fallback()
        if not fallback or fallback == info.id:
            return self._retried(info, settings)
        main = self._retried(info, settings, settings.fallback_after)
        return FallbackModel(main, fallback, lambda other: self._retried(self._access.model(other), self._settings))

    def _check(self, info: ModelInfo, settings: Settings) -> None:
        """Raise UsageError unless the model takes all of its settings."""
        profile = self._access.profile(info)
        if profile.kind != SCRIPTED:
            check_options(info, settings, profile.format)

    def _retried(self, info: ModelInfo, settings: Settings, overloads: int = 0) -> Provider:
        return retried(info, settings, self._access, self._recorder, overloads)


class SmallModel:
    """The model of the slot small beside the agent's ``own``, for summaries and conditions of hooks; answers have at
    most ``tokens``. Its connection is separate, since a provider reuses the body of its last request."""

    def __init__(self, access: ProviderAccess, own: Callable[[], ModelInfo], tokens: int) -> None:
        self._access = access
        self._own = own
        self._tokens = tokens
        self._provider: Provider | None = None

    def model(self) -> ModelInfo:
        """Return the model of the slot, or the agent's own when that is no valid model: the face has reported it."""
        try:
            return self._access.slots.small(self._own())
        except UsageError:
            return self._own()

    async def provider(self) -> Provider:
        info = self.model()
        if self._provider is None or self._provider.model.id != info.id:
            await self.close()
            self._provider = await asyncio.to_thread(self._made, info)
        return self._provider

    async def ask(self, system: str, text: str, purpose: str) -> tuple[str, SideRequest]:
        """Return the answer to one message and its cost. Raises ProviderError."""
        provider = await self.provider()
        answer = await one_answer(provider, system, text)
        paid = charged(provider.model.prices, answer.usage)
        return answer.text, SideRequest(purpose, answer.model, answer.usage, *paid)

    def _made(self, info: ModelInfo) -> Provider:
        chosen = self._access.slots.settings(SMALL)
        profile = self._access.profile(info)
        tokens = chosen.max_output_tokens or self._tokens
        try:
            if profile.kind != SCRIPTED:
                check_options(info, chosen, profile.format)
            provider = provider_for(info, replace(chosen, max_output_tokens=tokens), self._access)
        except UsageError as error:
            raise ProviderError(str(error), error.hint) from error
        return Retries(provider, rate=self._access.limits.of(info.provider, profile))

    async def close(self) -> None:
        if self._provider:
            await self._provider.close()
        self._provider = None


async def one_answer(provider: Provider, system: str, text: str) -> Message:
    """Return the answer to one message without tools. Raises ProviderError when it ends early."""
    request = ModelRequest(system, (user(text),), (), call_tools=False)
    async with answer_of(provider, request) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, Message):
                return chunk
    raise ProviderError("The answer broke off.")
