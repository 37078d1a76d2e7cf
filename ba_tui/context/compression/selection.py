"""Which way a conversation is compressed, and what summaries may cost in an hour. How it is done stands elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.values import frozen

Way: TypeAlias = Literal["truncate", "extract", "summarize"]
HOUR = 3_600.0


class SelectionSettings(Protocol):
    """What a person may set about the way (settings.Compression)."""

    @property
    def strategy(self) -> Literal["auto", "truncate", "extract", "summarize"]: ...

    @property
    def extract_below(self) -> int: ...

    @property
    def summarize_from(self) -> int: ...

    @property
    def enable_llm_summarization(self) -> bool: ...


class SummaryBudget:
    """US dollars that may go out within any hour, over all conversations of this process."""

    def __init__(self, limit: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._spent: deque[tuple[float, float]] = deque()

    def spend(self, cost: float) -> None:
        self._spent.append((self._clock(), cost))

    def left(self) -> float:
        while self._spent and self._clock() - self._spent[0][0] >= HOUR:
            self._spent.popleft()
        return max(0.0, self.limit - sum(cost for _, cost in self._spent))


@frozen
class Case:
    """``cost`` of a summary in US dollars, None when the model has no known price; ``left`` of the hour's budget."""

    messages: int
    cost: float | None = None
    left: float = 0.0


def choose(choices: SelectionSettings, case: Case) -> Way:
    """What was set wins. By itself a model is asked for long conversations only, and never at an unknown price."""
    if choices.strategy != "auto":
        return choices.strategy
    if not choices.enable_llm_summarization or case.messages < choices.extract_below:
        return "extract"
    if case.messages < choices.summarize_from or case.cost is None or case.cost > case.left:
        return "extract"
    return "summarize"
