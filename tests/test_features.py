"""What a feature brings reaches a session: tools that change while it runs, and a share of the context report."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ba_tui.assembly import tools_alone
from ba_tui.context.breakdown import Filling, context_parts
from ba_tui.core.events import TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.rooms import JoiningTool, MarkedShare, ToolsFound, ToolSource
from ba_tui.core.provider import ModelInfo
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.feature import Feature, OpenFeature, known_features, resolve
from ba_tui.features import FEATURES
from ba_tui.providers.tokens.calibration import Calibration
from ba_tui.providers.tokens.in_use import Tokens
from ba_tui.tools.registry import Registry
from tests.turns.test_loop import echo, tool

MODEL = ModelInfo("test/model", "test", "model", window=100_000)


def test_tools_of_a_source_come_change_and_go_while_ba_runs() -> None:
    now: list[JoiningTool] = []
    feature = OpenFeature(sources=(ToolSource("package", lambda: ToolsFound(tuple(now), ["A server is down."])),))
    registry = Registry(lambda tool: tool)
    registry.add(tool("now", echo))
    registry.join(feature.sources)
    registry.refresh()
    assert registry.names() == {"now"}
    now += [JoiningTool(tool("search", echo), "server one"), JoiningTool(tool("now", echo), "server one")]
    registry.refresh()
    assert registry.names() == {"now", "search"}
    assert registry.joined_problems() == (
        "two tools are named 'now': built in has it, so server one is left out",
        "A server is down.",
    )
    changed = Tool("search", "Another.", {"type": "object"}, echo)
    now[:] = [JoiningTool(changed)]
    registry.refresh()
    assert registry.get_tool("search") == changed
    now.clear()
    registry.refresh()
    assert registry.names() == {"now"}


def test_a_feature_counts_its_share_of_the_window_apart(tmp_path: Path) -> None:
    feature = OpenFeature(shares=(MarkedShare("Memory", regex(r'<memory id="([^"]*)">'), "Notes:\n- one"),))
    tokens = Tokens(lambda: MODEL, (), Calibration(tmp_path / "ratios.json"))
    filling = Filling("You are ba.\n\nNotes:\n- one", "built in", (), 0, (), feature.shares)
    parts = context_parts(filling, Transcript(events=[TurnStarted(user("go"))]), tokens, MODEL, 1_000)
    memory = next(part for part in parts if part.label == "Memory")
    assert [item.label for item in memory.items] == ["list of memory"]
    assert memory.tokens > 0


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_each_feature_names_functions_that_exist(feature: Feature) -> None:
    assert callable(resolve(feature.open))
    assert not feature.checks or callable(resolve(feature.checks))


def test_features_have_names_of_their_own() -> None:
    assert len({feature.name for feature in FEATURES}) == len(FEATURES)
    assert known_features() == FEATURES


def test_a_session_says_which_offer_is_missing(tmp_path: Path) -> None:
    tools = tools_alone(tmp_path, {})
    try:
        assert tools.guarded.context.port(int) is None
        with pytest.raises(LookupError, match="No feature offers int"):
            tools.guarded.context.offered(int)
        assert tools.guarded.context.port(Datasets) is not None
    finally:
        asyncio.run(tools.close())
