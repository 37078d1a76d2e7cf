"""What a session may cost: a count over its events, and the interceptor that stops the turn when it is reached."""

from __future__ import annotations

from collections.abc import Callable

from ba_tui.core.errors import StopTurn, UsageError
from ba_tui.core.events import Compressed, Event, MessageDone
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelInfo
from ba_tui.core.turn import Branch


class Spending:
    """core.turn.Listener: what went out since the session was opened, sub-agents and summaries included."""

    def __init__(self) -> None:
        self.cost = 0.0
        """US dollars, as far as prices are known."""
        self.tokens = 0

    def apply(self, event: Event) -> None:
        match event:
            case MessageDone(message=message, cost=cost):
                self.cost += cost or 0.0
                if message.usage:
                    self.tokens += message.usage.prompt + message.usage.output
            case Compressed(cost=cost, usage=usage):
                self.cost += cost or 0.0
                if usage:
                    self.tokens += usage.prompt + usage.output
            case _:
                pass


class BudgetLimits:
    """core.agent.Interceptor: no request goes out any more once a limit is reached."""

    def __init__(
        self, spending: Spending, model: Callable[[], ModelInfo], max_cost: float | None, max_tokens: int | None
    ) -> None:
        self._spending = spending
        self._model = model
        self._max_cost = max_cost
        self._max_tokens = max_tokens

    async def before(self, branch: Branch) -> None:
        """Raises StopTurn at a limit, UsageError when max_cost can't be kept because a price is not known."""
        spent = self._spending
        if self._max_cost is not None:
            model = self._model()
            if model.prices is None:
                hint = "Use max_tokens, or give its prices in models.yaml."
                raise UsageError(f"The prices of {model.id} are not known, so max_cost can't be kept.", hint)
            if spent.cost >= self._max_cost:
                text = f"Stopped at the limit of ${self._max_cost:g}: this session has cost ${spent.cost:.4g}."
                raise StopTurn(text, "Raise max_cost, or open the session again.")
        if self._max_tokens is not None and spent.tokens >= self._max_tokens:
            text = f"Stopped at the limit of {self._max_tokens:,} tokens: this session has used {spent.tokens:,}."
            raise StopTurn(text, "Raise max_tokens, or open the session again.")

    async def after(self, reply: Message, branch: Branch) -> None:
        """An answer that came is kept."""
