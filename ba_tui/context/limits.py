"""What a session may cost: a count over its events, and the interceptor that stops the turn when it is reached."""

from __future__ import annotations

from collections.abc import Callable

from ba_tui.core.errors import BudgetUsed
from ba_tui.core.events import Compressed, Event, MessageDone, Notice, SideRequest
from ba_tui.core.messages import Message, Usage
from ba_tui.core.provider import ASSUMED, ModelInfo
from ba_tui.core.turn import Branch

SET_PRICES = (
    "Set prices in your models.yaml: "
    "models: [{match: [NAME], prices: {input: …, output: …, cache_read: …, cache_write: …}}]. "
    "See ba guide prices."
)


class Spending:
    """core.turn.Listener: what went out since the session was opened, sub-agents and summaries included."""

    def __init__(self) -> None:
        self.cost = 0.0
        """US dollars; what had no price, at ``ASSUMED`` prices."""
        self.tokens = 0
        self.estimated = 0
        """How many of ``tokens`` ba estimated, as their server reported no usage."""

    def apply(self, event: Event) -> None:
        if isinstance(event, MessageDone | Compressed | SideRequest):
            usage = event.usage or Usage()
            known = event.estimate if event.cost is None else event.cost
            self.cost += ASSUMED.cost(usage) if known is None else known
            self.tokens += usage.prompt + usage.output
            self.estimated += usage.estimated


class BudgetLimits:
    """core.agent.Interceptor: no request goes out any more once a limit is reached."""

    def __init__(
        self, spending: Spending, model: Callable[[], ModelInfo], max_cost: float | None, max_tokens: int | None
    ) -> None:
        self._spending = spending
        self._model = model
        self._max_cost = max_cost
        self._max_tokens = max_tokens
        self._warned: set[str] = set()
        self._told = False

    async def before(self, branch: Branch) -> None:
        """Raises StopTurn at a limit."""
        spent = self._spending
        about, why = ("about ", ", as ba estimates") if spent.estimated else ("", "")
        self._tell(branch)
        if self._max_cost is not None:
            self._warn(branch)
            if spent.cost >= self._max_cost:
                cost = f"{about}${spent.cost:.4g}{why}"
                text = f"Stopped at the limit of ${self._max_cost:g}: this session has cost {cost}."
                raise BudgetUsed(text, "Raise max_cost, or open the session again.")
        if self._max_tokens is not None and spent.tokens >= self._max_tokens:
            used = f"{about}{spent.tokens:,}{why}"
            text = f"Stopped at the limit of {self._max_tokens:,} tokens: this session has used {used}."
            raise BudgetUsed(text, "Raise max_tokens, or open the session again.")

    async def after(self, reply: Message, branch: Branch) -> None:
        """An answer that came is kept."""

    def _tell(self, branch: Branch) -> None:
        """Say once that a limit goes by estimates."""
        if self._told or not self._spending.estimated or (self._max_cost is None and self._max_tokens is None):
            return
        self._told = True
        text = f"The server of {self._model().id} reports no token usage, so your limits count ba's estimates."
        branch.emit(Notice(text, "warning", "Its cost is unknown. See ba guide prices."))

    def _warn(self, branch: Branch) -> None:
        """Say once of each model that has no price what its tokens are taken to cost."""
        model = self._model()
        if model.prices or model.id in self._warned:
            return
        self._warned.add(model.id)
        text = (
            f"The prices of {model.id} are unknown. For max_cost ba assumes ${ASSUMED.input:g} in and "
            f"${ASSUMED.output:g} out per million."
        )
        branch.emit(Notice(text, "warning", SET_PRICES.replace("NAME", model.name)))
