"""The interface of models. Providers have one method for requests; a stage in front of a provider is one, too."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Literal, Protocol, TypeAlias, cast

from ba_tui.core.events import (
    Compressed,
    MediaLeftOut,
    MessageRestarted,
    Notice,
    PromptProgress,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from ba_tui.core.messages import Message, Usage
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen


@frozen
class Prices:
    """US dollars per million tokens, from the price list of ``date`` (ISO; empty if unknown). A request with more than
    ``above`` prompt tokens costs ``long`` prices in full, if there are any."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    date: str = ""
    above: int = 0
    long: Prices | None = None

    def cost(self, usage: Usage) -> float:
        """Return the cost of one request in US dollars."""
        if self.long and usage.prompt > self.above:
            return self.long.cost(usage)
        return (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        ) / 1_000_000


def charged(prices: Prices | None, usage: Usage | None) -> tuple[float | None, float | None]:
    """Return the cost of one request in US dollars, None if unknown, and its estimate if ba estimated the tokens.
    Limits use the estimate; it is never shown as a cost."""
    if prices is None or usage is None:
        return None, None
    cost = prices.cost(usage)
    return (None, cost) if usage.estimated else (cost, None)


ASSUMED = Prices(10, 50, 10, 12.5)
"""Prices that dollar limits assume for a model without known prices: those of the most expensive models."""
WINDOW = 200_000
"""Window in tokens for models without a known one: nearly all hosted models have it, and they refuse longer prompts."""
LOCAL_WINDOW = 8_192
"""The same for a model on a server of the user, which may silently drop the start of a prompt."""
LOCAL_OUTPUT = 2_048
"""Tokens reserved for the answer of such a model."""


ToolCalling: TypeAlias = Literal["auto", "native", "text", "react", "tags", "command"]
"""How a model calls tools: ``native`` through its API, ``text`` by writing calls in the form of its family, the last
three in that form. ``auto``: natively, until that fails."""


@frozen
class ModelInfo:
    """Facts about a model. ``id`` is the name for people (``anthropic/claude-…``), ``name`` the name for the vendor.
    ``window`` and ``max_output`` in tokens; ``prices`` None if unknown, and then no cost is shown. ``thinking``:
    accepts an effort; ``temperature``: accepts one. ``tools``: how it calls them."""

    id: str
    provider: str
    name: str
    family: str = "custom"
    window: int = WINDOW
    max_output: int = 8_192
    prices: Prices | None = None
    vision: bool = False
    thinking: bool = False
    temperature: bool = True
    tools: ToolCalling = "auto"
    known: bool = False
    """False if nothing is known about this model and ``window`` is an assumption."""


@frozen
class ModelRequest:
    """A request to a model. ``call_tools`` False forbids calls but still lists the tools (prompt cache). ``reasoning``:
    the model of the slot ``reasoning`` should answer, if there is one. ``must_call``: the answer must be a call;
    providers with grammars enforce it, the others rely on the prompt."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[Tool]
    call_tools: bool = True
    reasoning: bool = False
    must_call: bool = False


ReplyChunk: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | ToolInputDelta
    | PromptProgress
    | Retrying
    | MessageRestarted
    | Compressed
    | MediaLeftOut
    | Notice
    | Message
)
"""Compressed: the prompt was too long and was replaced. MediaLeftOut: pictures or documents that were not sent, or were
refused. Notice: a message for the user."""


class Provider(Protocol):
    @property
    def model(self) -> ModelInfo: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """Yield deltas as they arrive, then the complete Message as the last item.

        Raises:
            ProviderError: deltas before it stay with the caller.
        """
        ...

    def connect(self) -> None:
        """Start to connect, on the running loop, before there is a request. Sends nothing and never fails."""
        ...

    async def close(self) -> None:
        """Close connections; no request may follow."""
        ...


def answer_of(provider: Provider, request: ModelRequest) -> aclosing[AsyncGenerator[ReplyChunk, None]]:
    """Return the answer to ``request`` as a context, which closes the answer also when it was not read to its end: else
    the event loop closes it later, in a task that nothing waits for."""
    return aclosing(cast("AsyncGenerator[ReplyChunk, None]", provider.stream(request)))


class ProviderStage:
    """The base of a stage in the pipeline of a model's requests: a Provider in front of the provider ``provider``.

    A stage defines ``stream``, which changes, repeats or delays requests and reads ``self._answer``. Until a stage says
    otherwise, its model and its connection are those of the next provider.
    """

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    @property
    def model(self) -> ModelInfo:
        return self._provider.model

    def connect(self) -> None:
        self._provider.connect()

    async def close(self) -> None:
        await self._provider.close()

    def _answer(self, request: ModelRequest) -> aclosing[AsyncGenerator[ReplyChunk, None]]:
        """Return the next provider's answer: see ``answer_of``."""
        return answer_of(self._provider, request)


def _never() -> bool:
    return False


@frozen
class Modalities:
    """The media that the model in use accepts besides text. Checked for each call, as the model may change between
    turns.

    ``pictures``: the model sees images; ``documents``: its provider accepts whole PDF files.
    """

    pictures: Callable[[], bool] = _never
    documents: Callable[[], bool] = _never
