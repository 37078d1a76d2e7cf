"""What web_fetch, extract_links and web_search have in common, and what the settings choose for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from ba_tui.core.tool import Effect, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.tools.definitions import Definition

_NEEDS = ("httpx2", "justhtml")
FETCH = ToolFacts("web", target="url", tags=("web", "network"), bulky=True, needs=_NEEDS)
SEARCH = ToolFacts("web", target="query", tags=("web", "network", "search"), needs=_NEEDS)
SECONDS = 60.0
"""For a request, reading what came, and some slack."""


@frozen
class SearchChoice:
    """What the settings say: the ``backend``, its ``url`` and the environment variable of its key, each or none."""

    backend: str = ""
    url: str = ""
    api_key_env: str = ""
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Where the key is looked for."""
    foreign: bool = False
    """A project gave the ``url``, so no key of the user's is sent there."""


def web_tool(definition: Definition, name: str, facts: ToolFacts, run: Callable[..., Any]) -> Tool:
    return Tool(
        name, definition.description, definition.input_schema, run, Effect.NETWORK, SECONDS, facts, idempotent=True
    )
