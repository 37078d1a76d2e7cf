"""Ways to models, and the models for kinds of work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from annotated_types import Ge, Le

from ba_tui.core.provider import ToolCalling
from ba_tui.core.values import frozen
from ba_tui.settings.fields import MODEL, NUMBER, Address, FieldCheck, Setter, Whole, about, finite
from ba_tui.settings.sections.group import SettingsGroup

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
        """The wire format that is spoken, on clouds too."""
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
