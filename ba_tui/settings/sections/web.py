"""Fetching and searching the web."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from ba_tui.core.values import frozen
from ba_tui.settings.fields import Setter, about
from ba_tui.settings.sections.group import SettingsGroup


@frozen
class WebSettings(SettingsGroup):
    """Fetching web pages."""

    allow_private: tuple[str, ...] = field(
        default=(),
        metadata=about(
            "Hosts, *.domains or networks that may be fetched although they are private.",
            Setter("asked", question="to fetch from the private address {value}"),
        ),
    )


@frozen
class WebSearch(SettingsGroup):
    """Searching the web."""

    backend: Literal["", "anthropic", "brave", "duckduckgo", "searxng", "tavily"] = field(
        default="",
        metadata=about(
            "Search service: anthropic, brave, duckduckgo, searxng or tavily; empty for none.",
            Setter("asked", question="to search the web with {value}"),
        ),
    )
    url: str = field(
        default="",
        metadata=about(
            "The address of your own server, for searxng.", Setter("asked", question="to send web searches to {value}")
        ),
    )
    api_key_env: str = field(
        default="",
        metadata=about("The variable with the key; by default ANTHROPIC_API_KEY, BRAVE_API_KEY or TAVILY_API_KEY."),
    )
