"""What a local model with a small window is told in place of ba's whole prompt and of all tools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ba_tui.core.tool import Tool
from ba_tui.resources import bundled

SMALL_WINDOW = 32_768
"""Models with no more tokens than this get the short prompt, and the tools that the settings name alone."""
_FACTS = "# Here\n"
"""The part of ba's own prompt that stays: folder, platform, date."""


def few_tools(tools: Sequence[Tool], names: Sequence[str]) -> Sequence[Tool]:
    """Those of ``tools`` that ``names`` lists, in its order; all of them where it lists none that there is."""
    by_name = {tool.name: tool for tool in tools}
    return [by_name[name] for name in names if name in by_name] or tools


@lru_cache(maxsize=8)
def short_prompt(system: str) -> str:
    """``system`` with ba's own words in short; a prompt of the person's own stays as it is."""
    prompts = bundled("config") / "prompts"
    own, _, _ = (prompts / "system.md").read_text("utf-8").partition(_FACTS)
    if not system.startswith(own.strip()):
        return system
    short = (prompts / "system_short.md").read_text("utf-8").strip()
    return f"{short}\n\n{_FACTS}{system[len(own) :].removeprefix(_FACTS)}"
