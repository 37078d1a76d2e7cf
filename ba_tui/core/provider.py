"""The seam to models: one method. Retrying(provider) is again a Provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol, TypeAlias

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
    """US dollars per million tokens, of the price list of ``date`` (ISO; empty when not known).

    A request whose prompt has more than ``above`` tokens costs ``long`` prices as a whole, where there are any.
    """

    input: float
    output: float
    cache_read: float
    cache_write: float
    date: str = ""
    above: int = 0
    long: Prices | None = None

    def cost(self, usage: Usage) -> float:
        """US dollars for ``usage`` of one request."""
        if self.long and usage.prompt > self.above:
            return self.long.cost(usage)
        return (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        ) / 1_000_000


def charged(prices: Prices | None, usage: Usage | None) -> tuple[float | None, float | None]:
    """Return what one request cost in US dollars, None when unknown, and the estimate of it where ba had to estimate
    the tokens: limits count the estimate, nobody is shown it as a cost."""
    if prices is None or usage is None:
        return None, None
    cost = prices.cost(usage)
    return (None, cost) if usage.estimated else (cost, None)


ASSUMED = Prices(10, 50, 10, 12.5)
"""What a limit in dollars takes a model to cost whose prices are not known: as much as the dearest ones."""
WINDOW = 200_000
"""Tokens of a window that nobody told: what hosted models have nearly all. They refuse what is too long."""
LOCAL_WINDOW = 8_192
"""The same for a model on a server of the person's own, which may drop the beginning of a prompt without a word."""
LOCAL_OUTPUT = 2_048
"""Tokens that are kept free for its answer then."""


ToolCalling: TypeAlias = Literal["auto", "native", "text", "react", "tags", "command"]
"""How a model calls tools: ``native`` by its API, ``text`` by writing calls in the form that suits its family, the
three after it in that form. ``auto``: natively, until it turns out that it can't."""


@frozen
class ModelInfo:
    """Facts of one model. ``id`` is what people write (``anthropic/claude-…``), ``name`` what the vendor is sent.

    ``window`` and ``max_output`` in tokens; ``prices`` None when unknown, and then no cost is ever shown. ``thinking``:
    takes an effort; ``temperature``: takes one. ``tools``: how it calls them.
    """

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
    """False when nothing told us about this model and ``window`` is an assumption."""


@frozen
class ModelRequest:
    """Everything a model is sent. ``call_tools`` False forbids calls while the tools stay listed (prompt cache).
    ``reasoning``: the model of the slot reasoning is to answer, where one is set. ``must_call``: only a call is an
    answer; a provider that holds its model to a grammar leaves nothing else, the others rely on the prompt."""

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
"""Compressed: the prompt was too long, so this is what was sent instead. MediaLeftOut: pictures or
documents that were not sent, or were refused. Notice: what the user should know of it."""


class Provider(Protocol):
    @property
    def model(self) -> ModelInfo: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """Deltas as they come, then the whole Message, last and once.

        Raises:
            ProviderError: in our words; deltas that came before stay with the caller.
        """
        ...

    def connect(self) -> None:
        """Start to connect, on the running loop, before there is a request. Sends nothing, and never fails."""
        ...

    async def close(self) -> None:
        """Let go of connections; nothing is asked afterwards."""
        ...


class ProviderWrapper:
    """The base of a provider that does something of its own with the requests or answers of another one."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    @property
    def model(self) -> ModelInfo:
        return self._provider.model

    def connect(self) -> None:
        self._provider.connect()

    async def close(self) -> None:
        await self._provider.close()
