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

    enabled: bool = field(default=True, metadata=about("Whether ba compresses by itself; /compact works in any case."))
    strategy: Strategy = field(
        default="auto",
        metadata=about(
            "The strategy: extract (rules), summarize (a model writes notes), truncate (the oldest goes) or auto."
        ),
    )
    trigger: Share = field(
        default=0.8,
        metadata=about(
            "How full the window may get before ba compresses, as a share of it; room for an answer is taken off first."
        ),
    )
    target: Share = field(
        default=0.5, metadata=about("How full the window is at most after compression, as a share of it.")
    )
    keep_rounds: Rounds = field(
        default=5, metadata=about("How many of the last rounds stay word for word, beside the running one.")
    )
    extract_below: Count = field(
        default=30, metadata=about("With auto: a conversation with fewer messages is never summarized.")
    )
    summarize_from: Count = field(
        default=50,
        metadata=about(
            "With auto: a conversation with at least so many messages is summarized, when the hourly budget allows."
        ),
    )
    enable_llm_summarization: bool = field(
        default=True, metadata=about("With auto: whether a model may write summaries at all.")
    )
    hourly_budget: Amount = field(
        default=0.10,
        metadata=about("With auto: US dollars an hour for summaries. A model without a price is not asked."),
    )
    summary_tokens: Annotated[Whole, Ge(200), Le(20_000)] = field(
        default=2_000, metadata=about("The longest summary, in tokens.")
    )
    summary_timeout: Seconds = field(default=60, metadata=about("Seconds to wait for a summary."))
    cache_size: Annotated[Whole, Ge(0), Le(100_000)] = field(
        default=1_000, metadata=about("How many summaries are kept for reuse.")
    )
    cache_hours: Amount = field(default=24, metadata=about("Hours for which summaries are kept."))
    refocus_rounds: Rounds = field(
        default=5, metadata=about("Rounds after which the model is reminded of goal and open todos; 0 for never.")
    )

    def __post_init__(self) -> None:
        if self.target >= self.trigger:
            raise ValueError("expected a target below trigger")
