"""The pipeline of a model's requests: a vendor's provider, and the stages in front of it.

Each stage is a Provider in front of the next one. A request passes them in this order, an answer in reverse:

1. ``MediaFilter`` (media.py) leaves out pictures and documents that servers refuse.
2. ``OverflowRetry`` compresses a conversation that the server refused as too long, and sends the request again.
3. ``ModelSwitch`` sends a request to another model while a skill or the mode of permissions asks for one.
4. ``FallbackModel`` sends requests to the fallback model for some minutes after the main one was overloaded.
5. ``Retries`` waits for the rate limit, and repeats a request after errors that may pass.
6. ``FactsRefresh`` asks the server for facts of the model, and makes the stages after it again when they have changed.
7. ``UsageEstimator`` estimates the tokens of answers without token counts.
8. ``CallDetector`` (text_calls/detection.py) or ``TextTools`` (text_calls/text_tools.py) makes tool calls of calls that
   the model writes as text.

An agent has stages 1 to 3 once (``agent_pipeline``). Its main model has 4 to 8, each other model that it is switched to
5 to 8 (``retried``), the small model 5, 7 and 8. ``vendor_for`` alone imports modules of vendors, each when a model of
its kind is first used.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ba_tui.core.errors import BaError, ContextOverflow, ServerOverloaded, TransientError, UsageError
from ba_tui.core.events import Compressed, MessageRestarted, Notice, Retrying
from ba_tui.core.messages import Message, Usage
from ba_tui.core.ports.sessions import Recorder
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider, ProviderStage, ReplyChunk
from ba_tui.core.values import frozen
from ba_tui.providers.access import DEMO, ProviderAccess, RateLimit
from ba_tui.providers.credentials import CLOUDS, lacking
from ba_tui.providers.local_files import lacking_library
from ba_tui.providers.media import MediaFilter
from ba_tui.providers.text_calls.detection import CallDetector
from ba_tui.providers.token_counter import DynamicTokenCounter, Pixels
from ba_tui.resources import bundled
from ba_tui.settings import Settings

if TYPE_CHECKING:
    from ba_tui.providers.token_encodings import ExactCounts


log = logging.getLogger(__name__)
Shorten: TypeAlias = Callable[[ModelRequest, str], Awaitable[tuple[Compressed, ModelRequest] | None]]
"""Returns the compression of a request that a server refused as too long in these words, and the shorter request; None
when it can't be shortened."""


def agent_pipeline(
    provider: Provider,
    wanted: Callable[[ModelRequest], str],
    make: Callable[[str], Provider],
    shorten: Shorten,
    pixels: Pixels,
) -> Provider:
    """Return ``provider`` (stages 4 to 8) behind the stages that only agents have. ``wanted`` names the model of a
    request, empty for ``provider``; ``make`` makes its provider; ``pixels`` measures a picture."""
    return MediaFilter(OverflowRetry(ModelSwitch(provider, wanted, make), shorten), pixels)


def retried(
    info: ModelInfo,
    settings: Settings,
    access: ProviderAccess,
    recorder: Callable[[str], Recorder],
    overloads: int = 0,
) -> Provider:
    """Return the stages 5 to 8 for a model; ``recorder`` makes the recorder of its requests by its id. After
    ``overloads`` Overloaded errors in a row no further attempt is made, unless it is 0."""

    def make(known: ModelInfo) -> Provider:
        return provider_for(known, settings, access, recorder(known.id))

    rate = access.limits.of(info.provider, access.profile(info))
    return Retries(FactsRefresh(info.id, access, make), rate=rate, overloads=overloads)


def provider_for(
    info: ModelInfo, settings: Settings, access: ProviderAccess, recorder: Recorder | None = None
) -> Provider:
    """Return stages 7 and 8 and the vendor's provider. Raises AuthFailed without a key, UsageError for a bad script."""
    provider, profile = vendor_for(info, settings, access, recorder), access.profile(info)
    if profile.kind == "scripted":
        return provider
    return UsageEstimator(provider if profile.kind == "local" else _with_text_calls(provider, info, access))


def _with_text_calls(provider: Provider, info: ModelInfo, access: ProviderAccess) -> Provider:
    """Return ``provider`` behind the stage for the way in which the model calls tools."""
    if info.tools == "native":
        return provider
    if info.tools == "auto":
        return CallDetector(provider, access.formats)
    from ba_tui.providers.text_calls.text_tools import TextTools  # noqa: PLC0415 - most models never need it

    return TextTools(provider, info.tools)


class OverflowRetry(ProviderStage):
    """Sends a request that was too long once more, shortened. Compressed is a chunk of the answer, for the journal."""

    def __init__(self, provider: Provider, shorten: Shorten) -> None:
        super().__init__(provider)
        self._shorten = shorten

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        shown = False
        try:
            async with self._answer(request) as chunks:
                async for chunk in chunks:
                    shown = True
                    yield chunk
                    if isinstance(chunk, Message):
                        return
            return
        except ContextOverflow as error:
            shortened = await self._shorten(request, str(error))
            if shortened is None:
                raise
        compressed, shorter = shortened
        yield compressed
        if shown:
            yield MessageRestarted()
        async with self._answer(shorter) as chunks:
            async for chunk in chunks:
                yield chunk


class ModelChoice(ProviderStage):
    """The base of stages that choose between their own model and others; ``model`` answered last. ``make`` makes the
    provider of another model by its name, in a thread, once for each."""

    def __init__(self, own: Provider, make: Callable[[str], Provider]) -> None:
        super().__init__(own)
        self._own = own
        self._make = make
        self._others: dict[str, Provider] = {}

    async def close(self) -> None:
        for provider in (self._own, *self._others.values()):
            await provider.close()

    async def _other(self, name: str) -> Provider:
        if name not in self._others:
            self._others[name] = await asyncio.to_thread(self._make, name)
        return self._others[name]


class ModelSwitch(ModelChoice):
    """Sends a request to the model that ``wanted`` names for it; to ``own`` when that is empty or can't be used."""

    def __init__(self, own: Provider, wanted: Callable[[ModelRequest], str], make: Callable[[str], Provider]) -> None:
        super().__init__(own, make)
        self._wanted = wanted

    def connect(self) -> None:
        self._own.connect()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        self._provider = await self._chosen(self._wanted(request))
        async with self._answer(request) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _chosen(self, name: str) -> Provider:
        if name and name != self._own.model.id:
            try:
                return await self._other(name)
            except BaError as error:
                log.warning("the model %s can't be used: %s", name, error)
        return self._own


REST = 300.0
"""Seconds after which the main model is used again."""


class FallbackModel(ModelChoice):
    """Sends requests to ``own``, and for ``REST`` seconds after it raised Overloaded to the model ``name``."""

    def __init__(
        self,
        own: Provider,
        name: str,
        make: Callable[[str], Provider],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(own, make)
        self._name = name
        self._clock = clock
        self._until = 0.0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """Raise the error of ``own`` when the fallback model can't be used."""
        shown = False
        if self._clock() >= self._until:
            if self._provider is not self._own:
                yield Notice(f"{self._own.model.id} is used again.")
            self._provider = self._own
            try:
                async with self._answer(request) as chunks:
                    async for chunk in chunks:
                        shown = True
                        yield chunk
                return
            except ServerOverloaded as error:
                try:
                    self._provider = await self._other(self._name)
                except BaError as other:
                    raise ServerOverloaded(str(error), f"The fallback model can't be asked: {other}") from error
            self._until = self._clock() + REST
            yield Notice(
                f"{self._own.model.id} is overloaded. {self.model.id} is used for the next minutes.", "warning"
            )
            if shown:
                yield MessageRestarted()
        async with self._answer(request) as chunks:
            async for chunk in chunks:
                yield chunk


@frozen
class Backoff:
    """Exponential delays with full jitter, in seconds: between 0 and a bound that doubles. ``attempts`` includes the
    first one. A requested delay (``retry_after``) is respected, up to ``patience``."""

    attempts: int = 6
    first: float = 1.0
    longest: float = 30.0
    patience: float = 120.0

    def wait(self, attempt: int, chance: float, asked: float | None = None) -> float | None:
        """Return the seconds to wait after the failure of ``attempt`` (from 1); None to give up. ``chance`` in [0, 1)
        spreads the retries of clients that failed at the same moment."""
        if attempt >= self.attempts or (asked is not None and asked > self.patience):
            return None
        spread = chance * min(self.longest, self.first * 2 ** (attempt - 1))
        # Add a random part, so that clients with the same requested delay do not return together.
        return spread if asked is None else asked + min(spread, 1.0)


class Retries(ProviderStage):
    """Repeats a request after a ``TransientError``, and raises the error of the last attempt. After ``overloads``
    Overloaded errors in a row no further attempt is made, unless it is 0. Requests wait for the limit ``rate``.
    Each wait is a chunk, so that faces show a countdown and the user can cancel it."""

    def __init__(
        self,
        provider: Provider,
        backoff: Backoff | None = None,
        *,
        rate: RateLimit | None = None,
        overloads: int = 0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,  # noqa: S311 - spreads retries, guards nothing
    ) -> None:
        super().__init__(provider)
        self._backoff = backoff or Backoff()
        self._rate = rate
        self._overloads = overloads
        self._sleep = sleep
        self._chance = chance

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        attempt, overloads, shown = 0, 0, False
        while True:
            async for waiting in self._admitted():
                yield waiting
            attempt += 1
            try:
                async with self._answer(request) as chunks:
                    async for chunk in chunks:
                        shown = True
                        if isinstance(chunk, Message) and self._rate:
                            self._rate.used(chunk.usage)
                        yield chunk
                        if isinstance(chunk, Message):
                            return
                return
            except TransientError as error:
                overloads = overloads + 1 if isinstance(error, ServerOverloaded) else 0
                wait = self._backoff.wait(attempt, self._chance(), error.retry_after)
                if wait is None or overloads == self._overloads > 0:
                    raise
                log.info("attempt %d failed: %s", attempt, error)
                yield Retrying(reason=str(error), delay=wait, attempt=attempt + 1, attempts=self._backoff.attempts)
            await self._sleep(wait)
            if shown:
                shown = False
                yield MessageRestarted()

    async def _admitted(self) -> AsyncIterator[Retrying]:
        """Wait until the rate limit allows the next request."""
        while self._rate and (wait := self._rate.next()):
            yield Retrying(reason=wait.reason, delay=wait.seconds, attempt=0, attempts=0)
            await self._sleep(wait.seconds)


LEARNING = "model facts"
"""The name of the task that asks a server for facts."""
AFTER = 0.4
"""Seconds after the first piece of an answer: quick first steps must not share the processor with that task."""
SET_WINDOW = "Set it in your models.yaml: models: [{match: [NAME], window: TOKENS}]. See ba guide prices."


class FactsRefresh(ProviderStage):
    """Asks the server once for facts of the model ``name``, during its first answer. ``make`` makes the next provider
    from the facts that are known before a request."""

    def __init__(self, name: str, access: ProviderAccess, make: Callable[[ModelInfo], Provider]) -> None:
        super().__init__(make(access.model(name)))
        self._name = name
        self._access = access
        self._make = make
        self._asking: asyncio.Task[None] | None = None
        self._notices: list[Notice] = []

    async def close(self) -> None:
        if self._asking:
            # Facts can be asked for by the next session as well: the end of this one doesn't wait for them.
            self._asking.cancel()
            await asyncio.wait([self._asking])
            # A connection that was being made is closed by the loop's next turn.
            await asyncio.sleep(0)
        await super().close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        await self._renew()
        while self._notices:
            yield self._notices.pop(0)
        async with self._answer(request) as chunks:
            async for chunk in chunks:
                # The request was sent by now, and the server has time while it writes.
                self._asking = self._asking or asyncio.create_task(self._learn(), name=LEARNING)
                yield chunk

    async def _renew(self) -> None:
        info = self._access.model(self._name)
        if info == self._provider.model:
            return
        before, self._provider = self._provider, await asyncio.to_thread(self._make, info)
        await before.close()

    async def _learn(self) -> None:
        await asyncio.sleep(AFTER)
        try:
            self._notices += await learn(self._access, self._access.model(self._name))
        except (BaError, OSError) as error:
            log.info("%s reports no facts: %s", self._name, error)


async def learn(access: ProviderAccess, info: ModelInfo) -> Sequence[Notice]:
    """Save the facts that a server reports, unless it was asked lately; return notices for the user. Raises BaError."""
    server = await asyncio.to_thread(access.server, info)
    if server is None or not access.facts.wanted(server, info.name):
        return ()
    from ba_tui.providers.servers import ask_facts  # noqa: PLC0415 - an HTTP client; the provider has one by now

    listed = await ask_facts(server, info.name)
    if facts := listed.find(info.name):
        # Under the name in the request: the server's own name may have a tag behind it.
        await asyncio.to_thread(access.facts.learn, server, replace(facts, name=info.name))
    notices = [Notice(line, "warning") for line in listed.problems]
    if not (now := access.model(info.id)).known:
        text = f"{server.host} does not say how large the window of {now.id} is. ba assumes {now.window:,} tokens."
        notices.append(Notice(text, "warning", SET_WINDOW.replace("NAME", now.name)))
    return notices


class UsageEstimator(ProviderStage):
    """Estimates the tokens of answers without token counts, since limits on tokens and cost would never be reached
    without them. A prompt of 0 tokens, or an output of 0 tokens for words, counts as missing too."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider)
        self._counter: DynamicTokenCounter | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        async with self._answer(request) as chunks:
            async for chunk in chunks:
                yield await self._counted(request, chunk) if isinstance(chunk, Message) else chunk

    async def _counted(self, request: ModelRequest, answer: Message) -> Message:
        reported = answer.usage or Usage()
        if reported.prompt and (reported.output or not answer.blocks):
            return answer
        # In a thread: the first estimate of a long conversation takes longer than the screen can wait.
        return replace(answer, usage=await asyncio.to_thread(self._estimated, request, answer, reported))

    def _estimated(self, request: ModelRequest, answer: Message, reported: Usage) -> Usage:
        """Return ``reported`` with estimates for what is missing."""
        counter = self._counter = self._counter or DynamicTokenCounter()
        prompt = output = 0
        if not reported.prompt:
            fixed = counter.text(request.system) + counter.tools(request.tools)
            prompt = fixed + counter.conversation(request.messages)
        if not reported.output and answer.blocks:
            output = counter.message(answer)
        return reported + Usage(input=prompt, output=output, estimated=prompt + output)


def vendor_for(
    info: ModelInfo, settings: Settings, access: ProviderAccess, recorder: Recorder | None = None
) -> Provider:
    """Return the provider of a model without stages: it calls tools by the vendor's API. Raises as ``provider_for``."""
    profile = access.profile(info)
    if profile.kind == "scripted":
        from ba_tui.providers.scripted import ScriptedProvider, read_script  # noqa: PLC0415

        chapter = bundled("config") / "demo" / "scripts" / f"{Path(info.name).name}.yaml"
        return ScriptedProvider(read_script(chapter if info.provider == DEMO else Path(info.name)), info)
    key, url = access.key(info.provider), profile.base_url
    from ba_tui.providers.connection import Transfer  # noqa: PLC0415 - an HTTP client

    transfer = Transfer(settings.request_timeout, recorder)
    options: dict[str, Any] = {}
    if settings.max_output_tokens:
        options["max_tokens"] = min(settings.max_output_tokens, info.max_output)
    if settings.temperature is not None and info.temperature:
        options["temperature"] = settings.temperature
    if settings.effort and info.thinking:
        theirs = profile.format == "anthropic"
        options |= {"output_config": {"effort": settings.effort}} if theirs else {"reasoning_effort": settings.effort}
    if profile.kind in CLOUDS and (lack := lacking(profile.kind, url, key.value if key else None)):
        raise lack
    if profile.kind == "local":
        if lack := lacking_library():
            raise UsageError(lack)
        from ba_tui.providers.local_provider import LocalProvider  # noqa: PLC0415

        return LocalProvider(info, access.local, settings.local, options, transfer)
    if profile.kind == "anthropic":
        from ba_tui.providers.anthropic import AnthropicProvider  # noqa: PLC0415

        return AnthropicProvider(info, api_key=key, base_url=url, options=options, transfer=transfer)
    if profile.kind == "azure":
        from ba_tui.providers.openai_compat import AzureProvider  # noqa: PLC0415

        return AzureProvider(info, api_key=key, base_url=url, options=options, transfer=transfer)
    if profile.kind in CLOUDS:
        from ba_tui.providers.anthropic import CloudProvider  # noqa: PLC0415

        return CloudProvider(profile.kind, info, api_key=key, base_url=url, options=options, transfer=transfer)
    from ba_tui.providers.openai_compat import OpenAIProvider  # noqa: PLC0415

    if access.tells_progress(profile):
        options["return_progress"] = True
    return OpenAIProvider(info, api_key=key, base_url=url, options=options, transfer=transfer)


def exact_counts(model: str, url: str, prepared: Callable[[], tuple[Settings, ProviderAccess]]) -> ExactCounts:
    """Return counts of the endpoint ``url`` with the key of the model's provider. Reads settings when asked first."""
    # Imported before a count, since the import can take longer than the time-out of a count.
    from ba_tui.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - not everybody's
    from ba_tui.providers.token_encodings import ExactCounts  # noqa: PLC0415

    async def ask(request: ModelRequest) -> int:
        settings, access = prepared()
        info = access.model(model)
        provider = vendor_for(info, settings, access)
        try:
            if not isinstance(provider, AnthropicProvider):
                raise UsageError(f"{info.id} has no endpoint that counts", "Take exact_counting_api out of its entry.")
            return await provider.count_tokens(request, url)
        finally:
            await provider.close()

    return ExactCounts(ask)
