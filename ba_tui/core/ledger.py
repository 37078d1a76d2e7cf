"""Token usage and cost of a session: a fold over its events, by turn and by model.

Prices are applied when an answer arrives; the fill of the window is the vendor's count plus a rough estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ba_tui.core.events import (
    Compressed,
    Event,
    MessageDone,
    ModelChanged,
    PromptProgress,
    Rewound,
    SideRequest,
    Steered,
    Strategy,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message, Text, ToolOutput, Usage
from ba_tui.core.values import frozen

ASCII, OTHER = 4.0, 1.5
"""Characters per token, roughly, until the vendor counts them."""


@dataclass(slots=True)
class Account:
    """Usage and cost. ``cost`` in US dollars; None if a part is unknown. ``spent``: the cost for limits, which includes
    estimates; None if a part has neither. ``requests`` counts answers."""

    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    requests: int = 0
    spent: float | None = 0.0

    def answer(self, usage: Usage, cost: float | None, estimate: float | None = None) -> None:
        self.usage += usage
        self.requests += 1
        self.pay(cost, estimate)

    def pay(self, cost: float | None, estimate: float | None = None) -> None:
        counted = estimate if cost is None else cost
        self.cost = None if cost is None or self.cost is None else self.cost + cost
        self.spent = None if counted is None or self.spent is None else self.spent + counted


@frozen
class TurnAccount:
    """The account of turn ``number`` (from 1); ``prompt`` is the text of the user."""

    number: int
    prompt: str
    at: float
    account: Account = field(default_factory=Account)


@frozen
class CompressionEntry:
    """A compression: Compressed without its messages."""

    at: float
    strategy: Strategy
    before: int
    after: int
    cost: float | None
    kept: str
    agent: str = "main"


class Ledger:
    """Apply every event, replayed or live. Sub-agents and summaries are included."""

    def __init__(self) -> None:
        self.session = Account()
        self.turns: list[TurnAccount] = []
        self.models: dict[str, Account] = {}
        """By the answering model; summaries are excluded."""
        self.summaries: float | None = 0.0
        """Cost of summaries in US dollars; None if one had no price."""
        self.summed = Usage()
        """Tokens in and out of summaries."""
        self.shortened: list[CompressionEntry] = []
        self.uncounted = 0
        """Number of answers without usage: interrupted, or not reported."""
        self.filled = 0
        """Tokens of the window in use; 0 if unknown."""
        self.estimated = False
        """Whether a part of ``filled`` is an estimate."""
        self._open: Account | None = None

    @property
    def turn(self) -> Account:
        """Return the account of the newest turn."""
        return self.turns[-1].account if self.turns else Account()

    def apply(self, event: Event) -> bool:
        """Apply an event; return whether anything changed."""
        match event:
            case TurnStarted(agent="main", prompt=prompt):
                self.turns.append(TurnAccount(len(self.turns) + 1, prompt.said, event.at))
                self._open = self.turns[-1].account
                self._joined(prompt)
            case TurnEnded(agent="main"):
                self._open = None
            case MessageDone():
                self._answered(event)
            case Compressed():
                self._compressed(event)
            case SideRequest():
                self._count(event.model, event.usage or Usage(), event)
            case Rewound(agent="main", turns=int(), messages=messages):
                self._stands(messages)
            case Steered(agent="main", message=message):
                return self._joined(message)
            case ToolFinished(agent="main", result=result):
                return self._grow(rough(result.text))
            case PromptProgress(agent="main", total=total) if self.estimated or not self.filled:
                # The estimate of the context report is better than the sum here.
                self.filled, self.estimated = total, True
            case ModelChanged():
                # Models tokenize the same text differently.
                self.estimated = self.filled > 0
            case _:
                return False
        return True

    def _answered(self, event: MessageDone) -> None:
        used, main = event.message.usage, event.agent == "main"
        if used is None:
            self.uncounted += 1
            if main:
                self._joined(event.message)
            return
        self._count(event.message.model, used, event)
        if main and used.prompt:
            self.filled, self.estimated = used.prompt + used.output, used.estimated > 0

    def _count(self, model: str, usage: Usage, event: MessageDone | SideRequest) -> None:
        for account in (self.session, self.models.setdefault(model, Account()), self._open):
            if account is not None:
                account.answer(usage, event.cost, event.estimate)

    def _compressed(self, event: Compressed) -> None:
        cost = (event.cost or 0.0) if event.priced else None
        used = event.usage or Usage()
        for account in (self.session, self._open):
            if account is not None:
                account.usage += used
                account.pay(cost, event.estimate)
        self.summed += used
        self.summaries = None if cost is None or self.summaries is None else self.summaries + cost
        self.shortened.append(
            CompressionEntry(event.at, event.strategy, event.before, event.after, cost, event.kept, event.agent)
        )
        if event.agent == "main":
            self.filled, self.estimated = event.after, True

    def _stands(self, messages: tuple[Message, ...]) -> None:
        """Count the restored ``messages``: the last reported usage, and an estimate of the rest."""
        self.filled, self.estimated = 0, False
        for message in messages:
            if message.usage is not None and message.usage.prompt:
                self.filled, self.estimated = message.usage.prompt + message.usage.output, message.usage.estimated > 0
            else:
                self._joined(message)

    def _joined(self, message: Message) -> bool:
        return self._grow(sum(map(_rough_block, message.blocks)))

    def _grow(self, tokens: int) -> bool:
        # Without a reported count, system prompt and tools would be missing.
        if self.filled and tokens:
            self.filled, self.estimated = self.filled + tokens, True
            return True
        return False


def rough(text: str) -> int:
    """Return the approximate number of tokens of ``text``."""
    if text.isascii():
        return round(len(text) / ASCII)
    ascii_only = len(text.encode("ascii", "ignore"))
    return round(ascii_only / ASCII + (len(text) - ascii_only) / OTHER)


def _rough_block(block: object) -> int:
    match block:
        case Text(text=text) | ToolOutput(content=text):
            return rough(text)
        case _:
            return 0


def cached_share(usage: Usage) -> float | None:
    """Return the share of input read from the prompt cache, from 0 to 1; None without input."""
    return usage.cache_read / usage.prompt if usage.prompt else None
