"""What the files of agents may count on: the tools and models there are."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ba_tui.core.provider import ModelInfo
from ba_tui.core.values import frozen

MAX_NAME = 64


@frozen
class AgentMeans:
    """``tools`` are the names of those there are. ``missing`` says why a model can't be asked, empty when it can;
    ``model`` has its facts. ``slot`` names the model that the person set for small work or reasoning, if any."""

    tools: Callable[[], Collection[str]]
    missing: Callable[[str], str]
    model: Callable[[str], ModelInfo]
    slot: Callable[[str], str]
