"""Settings of providers, models, local model files and compression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from annotated_types import Ge, Le

from ba_tui.core.provider import ToolCalling
from ba_tui.core.values import frozen
from ba_tui.settings.fields import (
    MODEL,
    NUMBER,
    Address,
    Amount,
    Count,
    FieldCheck,
    Rounds,
    Seconds,
    Setter,
    SettingsGroup,
    Share,
    Whole,
    about,
    finite,
)

Kind = Literal["anthropic", "openai", "scripted", "bedrock", "vertex", "foundry", "azure", "local"]
WireFormat = Literal["anthropic", "openai", "scripted"]
_FORMATS: Mapping[Kind, WireFormat] = {
    "anthropic": "anthropic",
    "openai": "openai",
    "scripted": "scripted",
    "bedrock": "anthropic",
    "vertex": "anthropic",
    "foundry": "anthropic",
    "azure": "openai",
    "local": "openai",
}
Effort = Literal["low", "medium", "high", "xhigh", "max"]
Temperature = Annotated[float, NUMBER, Ge(0), Le(2), FieldCheck(finite)]
PerMinute = Annotated[Whole, Ge(1), Le(1_000_000_000)]


@frozen
class ModelProfile(SettingsGroup):
    """A way to models: which wire format or cloud, at which address, with which key."""

    kind: Kind = field(
        default="openai",
        metadata=about(
            "The wire format: anthropic, openai (any OpenAI-compatible server) or scripted; or a cloud: bedrock, "
            "vertex or foundry for Claude, azure for OpenAI's models; or local, for model files.",
            Setter(
                stricter=(
                    "anthropic",
                    "openai",
                )
            ),
        ),
    )
    base_url: Address | None = field(
        default=None,
        metadata=about(
            "The server's address; the vendor's own when not set.",
            Setter("asked", question="to send conversations to {value}"),
        ),
    )
    api_key_env: str | None = field(
        default=None,
        metadata=about("The environment variable that holds the API key; not set for servers that need none."),
    )
    requests_per_minute: PerMinute | None = field(
        default=None, metadata=about("Requests per minute; more requests wait.", "project")
    )
    tokens_per_minute: PerMinute | None = field(
        default=None, metadata=about("Tokens per minute, in and out; above it, requests wait.", "project")
    )
    tools: ToolCalling = field(
        default="auto",
        metadata=about(
            "How its models call tools: native (by the API), text (they write calls; react, tags and command name a "
            "form), or auto (native until a model writes a call or its server refuses tools).",
            "project",
        ),
    )

    @property
    def format(self) -> WireFormat:
        """Return the wire format, on clouds too."""
        return _FORMATS[self.kind]


@frozen
class ModelSlot(SettingsGroup):
    """A model for one kind of work, and how it is asked."""

    model: str = field(default="", metadata=about("The model, as PROVIDER/MODEL.", MODEL))
    temperature: Temperature | None = field(
        default=None, metadata=about("Sampling temperature, from 0 to 2; by default the model's own.", "project")
    )
    max_tokens: Annotated[Whole, Ge(1)] | None = field(
        default=None,
        metadata=about("The longest answer to ask it for, in tokens; by default what fits the work.", "project"),
    )
    effort: Effort | None = field(
        default=None, metadata=about("How much effort it spends; by default the vendor's setting.", "project")
    )


@frozen
class LocalSettings(SettingsGroup):
    """A model file that ba runs itself (`local:PATH`), with `pip install 'ba-tui[local]'`."""

    window: Annotated[Whole, Ge(1024), Le(1_048_576)] = field(
        default=16_384,
        metadata=about(
            "Tokens of its window, at most what it was trained on; a larger one takes more memory.", "project"
        ),
    )
    threads: Annotated[Whole, Ge(0), Le(1_024)] = field(
        default=0, metadata=about("Threads that compute; 0 leaves the number to llama.cpp.", "project")
    )
    tools: tuple[str, ...] = field(
        default=("read_file", "write_file", "edit_file", "grep", "shell", "calculator", "query_data"),
        metadata=about("The tools that a model with a window of up to 32,768 tokens sees; empty for all.", "project"),
    )


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
