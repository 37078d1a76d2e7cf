"""The model that one agent uses now, and what follows from it: its provider, what it sees, how long its answers are."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Protocol, cast

from ba_tui.core.errors import BaError, Overloaded, UsageError
from ba_tui.core.events import MessageRestarted, Notice
from ba_tui.core.ports.exchanges import Recorder
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider, ReplyChunk
from ba_tui.core.tool import Tool
from ba_tui.providers.access import SCRIPTED, ProviderAccess
from ba_tui.providers.facts.servers import ModelServer
from ba_tui.providers.facts.values import Listed
from ba_tui.providers.local.model_files import LOCAL
from ba_tui.providers.local.shortening import SMALL_WINDOW, few_tools, short_prompt
from ba_tui.providers.retrying import Limits, Persistent
from ba_tui.providers.slots import PLAN, REASONING, check_options
from ba_tui.providers.vendors import provider_for
from ba_tui.resources import Places
from ba_tui.settings import Settings
from ba_tui.settings.keys import kept_keys

log = logging.getLogger(__name__)
LEARNING = "model facts"
"""The name of the task that asks."""
AFTER = 0.4
"""Seconds after the first piece of an answer: quick first steps must not share the processor with the asking."""
GRACE = 1.0
"""Seconds that closing waits for an answer."""
SET_WINDOW = "Set it in your models.yaml: models: [{match: [NAME], window: TOKENS}]. See ba guide prices."


class Informed:
    """core.provider.Provider: what ``make`` made of the facts known by now of the model ``name``."""

    def __init__(self, name: str, access: ProviderAccess, make: Callable[[ModelInfo], Provider]) -> None:
        self._name = name
        self._access = access
        self._make = make
        self._provider = make(access.model(name))
        self._asking: asyncio.Task[None] | None = None
        self._notices: list[Notice] = []

    @property
    def model(self) -> ModelInfo:
        return self._provider.model

    def connect(self) -> None:
        self._provider.connect()

    async def close(self) -> None:
        if self._asking:
            # A connection that is cancelled while it is made leaves its socket open.
            await asyncio.wait([self._asking], timeout=GRACE)
            self._asking.cancel()
            with suppress(asyncio.CancelledError):
                await self._asking
        await self._provider.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        await self._renew()
        while self._notices:
            yield self._notices.pop(0)
        async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", self._provider.stream(request))) as chunks:
            async for chunk in chunks:
                self._ask()
                yield chunk

    async def _renew(self) -> None:
        info = self._access.model(self._name)
        if info == self._provider.model:
            return
        before, self._provider = self._provider, await asyncio.to_thread(self._make, info)
        await before.close()

    def _ask(self) -> None:
        """Begin to ask, once: the request is out by now, and the server has time while it writes."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._learn(), name=LEARNING)

    async def _learn(self) -> None:
        await asyncio.sleep(AFTER)
        try:
            self._notices += await learn(self._access, self._access.model(self._name))
        except (BaError, OSError) as error:
            log.info("%s tells nothing of itself: %s", self._name, error)


async def learn(access: ProviderAccess, info: ModelInfo) -> Sequence[Notice]:
    """Ask the server of ``info`` for its facts and keep them, unless it was asked of late; what a person should know.

    Raises:
        BaError: nobody answers, or what comes can't be read.
    """
    server = await asyncio.to_thread(access.server, info)
    if server is None or not access.facts.wanted(server, info.name):
        return ()
    from ba_tui.providers.facts.asking import ask_facts  # noqa: PLC0415 - an HTTP client; the provider has one by now

    listed = await ask_facts(server, info.name)
    told = listed.find(info.name)
    if told:
        # Under the name that was asked for: the server's own may have a tag behind it.
        await asyncio.to_thread(access.facts.learn, server, replace(told, name=info.name))
    return _notices(access.model(info.id), server, listed)


def _notices(info: ModelInfo, server: ModelServer, listed: Listed) -> list[Notice]:
    notices = [Notice(line, "warning") for line in listed.problems]
    if not info.known:
        text = f"{server.host} does not say how large the window of {info.id} is. ba assumes {info.window:,} tokens."
        notices.append(Notice(text, "warning", SET_WINDOW.replace("NAME", info.name)))
    return notices


REST = 300.0
"""Seconds after which the main model is asked again."""


class WithFallback:
    """core.provider.Provider: ``own``, and for a while after it raised Overloaded the model ``name``."""

    def __init__(
        self,
        own: Provider,
        name: str,
        make: Callable[[str], Provider],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._own = own
        self._name = name
        self._make = make
        self._clock = clock
        self._other: Provider | None = None
        self._now = own
        self._until = 0.0

    @property
    def model(self) -> ModelInfo:
        """The one that answered last, or answers now."""
        return self._now.model

    def connect(self) -> None:
        self._now.connect()

    async def close(self) -> None:
        await self._own.close()
        if self._other:
            await self._other.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider. Raises what ``own`` raised where the fallback model can't be asked."""
        shown = False
        if self._clock() >= self._until:
            if self._now is not self._own:
                yield Notice(f"{self._own.model.id} is used again.")
            self._now = self._own
            try:
                async with aclosing(_answer(self._own, request)) as chunks:
                    async for chunk in chunks:
                        shown = True
                        yield chunk
                return
            except Overloaded as error:
                try:
                    self._now = await self._fallback()
                except BaError as other:
                    raise Overloaded(str(error), f"The fallback model can't be asked: {other}") from error
            self._until = self._clock() + REST
            yield Notice(
                f"{self._own.model.id} is overloaded. {self._now.model.id} is used for the next minutes.", "warning"
            )
            if shown:
                yield MessageRestarted()
        async with aclosing(_answer(self._now, request)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _fallback(self) -> Provider:
        if self._other is None:
            self._other = await asyncio.to_thread(self._make, self._name)
        return self._other


def _answer(provider: Provider, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
    return cast("AsyncGenerator[ReplyChunk, None]", provider.stream(request))


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
