"""A provider for a model in a file on this machine: short prompts, few tools, and calls that can't be malformed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import BaError
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.core.tool import Tool
from ba_tui.providers.credentials import BoundKey
from ba_tui.providers.local.grammar import ANSWER, call_grammar
from ba_tui.providers.local.processes import LocalAddress, LocalPlace, LocalProcesses
from ba_tui.providers.local.shortening import SMALL_WINDOW, few_tools, short_prompt
from ba_tui.providers.local.steps import answer_due, call_needed, notes_first, read_lines
from ba_tui.providers.local.telling import examples, told_tools
from ba_tui.providers.openai_compat import OpenAIProvider
from ba_tui.providers.text_calls.prompting import example
from ba_tui.providers.text_calls.text_tools import TextTools
from ba_tui.providers.transfers import DIRECT, Transfer
from ba_tui.settings import LocalSettings

TEMPERATURE = 0.1
"""Where none is set: small models lose their way at llama.cpp's own 0.8."""
MOST_KEPT = 8
"""Grammars whose providers are kept: each has the body that it sent last."""


class LocalProvider:
    """core.provider.Provider. ``options`` are further fields of each request, as the API names them."""

    def __init__(
        self,
        model: ModelInfo,
        processes: LocalProcesses,
        settings: LocalSettings,
        options: Mapping[str, Any] | None = None,
        transfer: Transfer = DIRECT,
    ) -> None:
        place = LocalPlace(Path(model.name), model.window, settings.threads)
        self._small = model.window <= SMALL_WINDOW
        self._llama = LlamaCpp(model, processes, place, options or {}, transfer)
        self._text = TextTools(self._llama, "react", examples if self._small else example)
        self._few = settings.tools if self._small else ()
        self._tools: tuple[Sequence[Tool], Sequence[Tool]] = ((), ())
        """Those of the last request, and those of them that the model is told of."""

    @property
    def model(self) -> ModelInfo:
        return self._llama.model

    def connect(self) -> None:
        self._llama.connect()

    async def close(self) -> None:
        await self._text.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        if request.tools is not self._tools[0]:
            few = few_tools(request.tools, self._few)
            self._tools = (request.tools, told_tools(few) if self._small else few)
        tools = self._tools[1]
        if not request.call_tools or not tools:
            self._llama.allow("")
        elif self._small and not request.must_call and answer_due(request.messages):
            self._llama.allow(ANSWER)
        elif self._small:
            needed, lines = request.must_call or call_needed(request.messages), read_lines(request.messages)
            self._llama.allow(call_grammar(tools, needed=needed, lines=lines))
        else:
            self._llama.allow(call_grammar(tools, needed=request.must_call))
        system = short_prompt(request.system) if self._few and request.tools else request.system
        messages = notes_first(request.messages) if self._small else request.messages
        short = ModelRequest(system, messages, tools, request.call_tools)
        async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", self._text.stream(short))) as chunks:
            async for chunk in chunks:
                yield chunk


class LlamaCpp:
    """core.provider.Provider: the model as llama.cpp has it, without tools, held to the grammar of those allowed."""

    def __init__(
        self,
        model: ModelInfo,
        processes: LocalProcesses,
        place: LocalPlace,
        options: Mapping[str, Any],
        transfer: Transfer,
    ) -> None:
        self.model = model
        self._processes = processes
        self._place = place
        self._options = {"max_tokens": model.max_output, "temperature": TEMPERATURE, "return_progress": True, **options}
        self._transfer = transfer
        self._grammar = ""
        self._providers: dict[str, OpenAIProvider] = {}
        """By their grammar; each keeps the body that it sent last."""
        self._address: LocalAddress | None = None
        self._loading: asyncio.Task[LocalAddress] | None = None
        processes.enter(place)

    def allow(self, grammar: str) -> None:
        """What the next answers may be; empty for free text."""
        self._grammar = grammar

    def connect(self) -> None:
        """See core.provider.Provider: loads the model while the person still types."""
        if self._loading is None:
            self._loading = asyncio.create_task(self._processes.load(self._place), name="local model")

    async def close(self) -> None:
        if self._loading:
            self._loading.cancel()
            with suppress(asyncio.CancelledError, BaError):
                await self._loading
        await self._forget()
        self._processes.leave(self._place)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """See core.provider.Provider."""
        address = await self._loaded()
        if address != self._address:
            await self._forget()
            self._address = address
        async with self._processes.watched(self._place):
            answer = cast("AsyncGenerator[ReplyChunk, None]", (await self._provider(address)).stream(request))
            async with aclosing(answer) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def _loaded(self) -> LocalAddress:
        begun, self._loading = self._loading, None
        if begun:
            await begun
        # Again, as the process may have ended since then.
        return await self._processes.load(self._place)

    async def _provider(self, address: LocalAddress) -> OpenAIProvider:
        grammar = self._grammar
        if grammar not in self._providers:
            while len(self._providers) >= MOST_KEPT:
                await self._providers.pop(next(iter(self._providers))).close()
            options = {**self._options, "grammar": grammar} if grammar else self._options
            self._providers[grammar] = OpenAIProvider(
                self.model,
                api_key=BoundKey(address.key, address.url),
                base_url=address.url,
                options=options,
                transfer=self._transfer,
            )
        return self._providers[grammar]

    async def _forget(self) -> None:
        for provider in self._providers.values():
            await provider.close()
        self._providers.clear()
