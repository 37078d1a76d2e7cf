"""How a conversation that fills the window is shortened."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from annotated_types import Ge, Le

from ba_tui.core.values import frozen
from ba_tui.settings.fields import Amount, Count, Rounds, Seconds, Setter, Share, Whole, about
from ba_tui.settings.sections.group import SettingsGroup

Strategy = Literal["auto", "truncate", "extract", "summarize"]


@frozen
class CompressionSettings(SettingsGroup):
    """How a conversation that fills the window is shortened. Nothing is lost: `/compact undo` brings it back."""

    enabled: bool = field(default=True, metadata=about("Compress automatically; /compact always works.", "project"))
    strategy: Strategy = field(
        default="auto",
        metadata=about(
            "How: extract (rules), summarize (a model writes notes), truncate (the oldest goes) or auto.", "project"
        ),
    )
    trigger: Share = field(
        default=0.8,
        metadata=about(
            "Share of the context window, without the reserve for the answer, at which compression starts.", "project"
        ),
    )
    target: Share = field(
        default=0.5, metadata=about("Largest share of the window in use after a compression.", "project")
    )
    keep_rounds: Rounds = field(
        default=5, metadata=about("Most recent rounds kept word for word, besides the current one.", "project")
    )
    extract_below: Count = field(
        default=30, metadata=about("With auto: never summarize fewer messages than this.", "project")
    )
    summarize_from: Count = field(
        default=50,
        metadata=about("With auto: summarize from this many messages on, within the hourly budget.", "project"),
    )
    enable_llm_summarization: bool = field(
        default=True, metadata=about("With auto: whether a model may write summaries.", "project")
    )
    hourly_budget: Amount = field(
        default=0.10,
        metadata=about(
            "With auto: US dollars an hour for summaries. A model without a price is not asked.",
            Setter("project", lower=True),
        ),
    )
    summary_tokens: Annotated[Whole, Ge(200), Le(20_000)] = field(
        default=2_000, metadata=about("The longest summary, in tokens.", "project")
    )
    summary_timeout: Seconds = field(default=60, metadata=about("Timeout for a summary, in seconds.", "project"))
    cache_size: Annotated[Whole, Ge(0), Le(100_000)] = field(
        default=1_000, metadata=about("Number of summaries kept in the cache.", "project")
    )
    cache_hours: Amount = field(default=24, metadata=about("Hours for which summaries are cached.", "project"))
    refocus_rounds: Rounds = field(
        default=5, metadata=about("Remind the model of the goal and open todos every N rounds; 0 for never.", "project")
    )

    def __post_init__(self) -> None:
        if self.target >= self.trigger:
            raise ValueError("expected a target below trigger")
