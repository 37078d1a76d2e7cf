"""How a conversation that fills the window is shortened."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from annotated_types import Ge, Le

from ba_tui.core.values import frozen
from ba_tui.settings.fields import Amount, Count, Rounds, Seconds, Share, Whole, about
from ba_tui.settings.sections.group import SettingsGroup

Strategy = Literal["auto", "truncate", "extract", "summarize"]


@frozen
class CompressionSettings(SettingsGroup):
    """How a conversation that fills the window is shortened. Nothing is lost: `/compact undo` brings it back."""

    enabled: bool = field(default=True, metadata=about("Whether it happens by itself; /compact works in any case."))
    strategy: Strategy = field(
        default="auto",
        metadata=about("How: extract (rules), summarize (a model writes notes), truncate (the oldest goes) or auto."),
    )
    trigger: Share = field(default=0.8, metadata=about("How full the window may get, less what an answer needs."))
    target: Share = field(default=0.5, metadata=about("How full it is at most afterwards."))
    keep_rounds: Rounds = field(
        default=5, metadata=about("The last rounds that stay word for word, beside the running one.")
    )
    extract_below: Count = field(
        default=30, metadata=about("With auto: fewer messages than this are never summarized.")
    )
    summarize_from: Count = field(
        default=50, metadata=about("With auto: from so many messages on they are, when the hourly budget allows.")
    )
    enable_llm_summarization: bool = field(
        default=True, metadata=about("With auto: whether a model may be asked at all.")
    )
    hourly_budget: Amount = field(
        default=0.10,
        metadata=about("With auto: US dollars an hour for summaries. A model without a price is not asked."),
    )
    summary_tokens: Annotated[Whole, Ge(200), Le(20_000)] = field(
        default=2_000, metadata=about("The longest summary, in tokens.")
    )
    summary_timeout: Seconds = field(default=60, metadata=about("Seconds to wait for one."))
    cache_size: Annotated[Whole, Ge(0), Le(100_000)] = field(default=1_000, metadata=about("Summaries that are kept."))
    cache_hours: Amount = field(default=24, metadata=about("Hours that they are kept."))
    refocus_rounds: Rounds = field(
        default=5, metadata=about("Say goal and open todos again after so many rounds; 0 for never.")
    )

    def __post_init__(self) -> None:
        if self.target >= self.trigger:
            raise ValueError("expected a target below trigger")
