"""Ways to models."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from ba_tui.core.values import frozen
from ba_tui.settings.fields import Address, about
from ba_tui.settings.sections.group import SettingsGroup

Kind = Literal["anthropic", "openai", "scripted"]


@frozen
class ModelProfile(SettingsGroup):
    """A way to models: whose wire format, at which address, with which key."""

    kind: Kind = field(
        default="openai",
        metadata=about("The wire format: anthropic, openai (any OpenAI-compatible server) or scripted."),
    )
    base_url: Address | None = field(
        default=None, metadata=about("The server's address; the vendor's own when not set.")
    )
    api_key_env: str | None = field(
        default=None,
        metadata=about("The environment variable that holds the API key; not set for servers that need none."),
    )
