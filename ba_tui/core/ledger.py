"""What a session used and cost: one fold over its events, for every face, by turn and by model.

Prices are applied where an answer arrives; how full the window is, is what the vendor counted plus a rough estimate.
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
"""Characters for a token, roughly: until the vendor counts them."""


@dataclass(slots=True)
class Account:
    """``cost`` in US dollars; None once something had no known cost. ``spent``: the same for limits, which also count
    the estimates; None once something had neither. ``requests`` counts answers."""

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
    """``number`` from 1; ``prompt`` is what the person said."""

    number: int
    prompt: str
    at: float
    account: Account = field(default_factory=Account)


@frozen
class Shortening:
    """What a compression did: Compressed without its messages."""

    at: float
    strategy: Strategy
    before: int
    after: int
    cost: float | None
    kept: str
    agent: str = "main"


class Ledger:
    """Feed it every event, replayed or live. Sub-agents and summaries are paid for too."""

    def __init__(self) -> None:
        self.session = Account()
        self.turns: list[TurnAccount] = []
        self.models: dict[str, Account] = {}
        """By the model that answered; summaries are not in it."""
        self.summaries: float | None = 0.0
        """What writing summaries cost, in US dollars; None once one had no price."""
        self.summed = Usage()
        """The tokens that went into summaries and came out."""
        self.shortened: list[Shortening] = []
        self.uncounted = 0
        """Answers that broke off, or came without a word of what they used."""
        self.filled = 0
        """Tokens of the window in use; 0 while nothing is known."""
        self.estimated = False
        """Whether some of ``filled`` was not counted by the vendor."""
        self._open: Account | None = None

    @property
    def turn(self) -> Account:
        """The newest turn's."""
        return self.turns[-1].account if self.turns else Account()

    def apply(self, event: Event) -> bool:
        """Whether anything changed."""
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
                self._asked_beside(event)
            case Rewound(agent="main", turns=int(), messages=messages):
                self._stands(messages)
            case Steered(agent="main", message=message):
                return self._joined(message)
            case ToolFinished(agent="main", result=result):
                return self._grow(rough(result.text))
            case PromptProgress(agent="main", total=total) if self.estimated or not self.filled:
                # The same estimate as in the context report: better than what was added up here.
                self.filled, self.estimated = total, True
            case ModelChanged():
                # Another model counts the same words otherwise.
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
        accounts = [self.session, self.models.setdefault(event.message.model, Account())]
        for account in (*accounts, self._open):
            if account is not None:
                account.answer(used, event.cost, event.estimate)
        if main and used.prompt:
            self.filled, self.estimated = used.prompt + used.output, used.estimated > 0

    def _asked_beside(self, event: SideRequest) -> None:
        used = event.usage or Usage()
        for account in (self.session, self.models.setdefault(event.model, Account()), self._open):
            if account is not None:
                account.answer(used, event.cost, event.estimate)

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
            Shortening(event.at, event.strategy, event.before, event.after, cost, event.kept, event.agent)
        )
        if event.agent == "main":
            self.filled, self.estimated = event.after, True

    def _stands(self, messages: tuple[Message, ...]) -> None:
        """The conversation is ``messages`` again: what was counted of them, and what came behind."""
        self.filled, self.estimated = 0, False
        for message in messages:
            if message.usage is not None and message.usage.prompt:
                self.filled, self.estimated = message.usage.prompt + message.usage.output, message.usage.estimated > 0
            else:
                self._joined(message)

    def _joined(self, message: Message) -> bool:
        return self._grow(sum(map(_rough_block, message.blocks)))

    def _grow(self, tokens: int) -> bool:
        # Without a count to begin with, system prompt and tools would be missing.
        if self.filled and tokens:
            self.filled, self.estimated = self.filled + tokens, True
            return True
        return False


def rough(text: str) -> int:
    """About how many tokens ``text`` is."""
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
    """How much of what went in came from the prompt cache, from 0 to 1; None when nothing went in."""
    return usage.cache_read / usage.prompt if usage.prompt else None
