"""What a feature brings reaches a session: tools that change while it runs, and a share of the context report."""

from __future__ import annotations

import asyncio
from pathlib import Path
from pkgutil import resolve_name

import pytest

from ba_tui.assembly import tools_alone
from ba_tui.cli.commands import BASE
from ba_tui.context.breakdown import RequestPrefix, context_parts
from ba_tui.core.events import TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.ports.contributions import MarkedShare, SourceTool, ToolsFound, ToolSource
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.provider import ModelInfo
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.feature import Feature, OpenFeature, known_features
from ba_tui.providers.token_calibration import TokenCalibration, Tokens
from ba_tui.tools.registry import Registry
from tests.turns.test_loop import echo, tool

MODEL = ModelInfo("test/model", "test", "model", window=100_000)


def test_tools_of_a_source_come_change_and_go_while_ba_runs() -> None:
    now: list[SourceTool] = []
    feature = OpenFeature(sources=(ToolSource("package", lambda: ToolsFound(tuple(now), ["A server is down."])),))
    registry = Registry(lambda tool: tool)
    registry.add(tool("now", echo))
    registry.join(feature.sources)
    registry.refresh()
    assert registry.names() == {"now"}
    now += [SourceTool(tool("search", echo), "server one"), SourceTool(tool("now", echo), "server one")]
    registry.refresh()
    assert registry.names() == {"now", "search"}
    assert registry.joined_problems() == (
        "two tools are named 'now': built in has it, so server one is left out",
        "A server is down.",
    )
    changed = Tool("search", "Another.", {"type": "object"}, echo)
    now[:] = [SourceTool(changed)]
    registry.refresh()
    assert registry.get_tool("search") == changed
    now.clear()
    registry.refresh()
    assert registry.names() == {"now"}


def test_a_feature_counts_its_share_of_the_window_apart(tmp_path: Path) -> None:
    feature = OpenFeature(shares=(MarkedShare("Memory", regex(r'<memory id="([^"]*)">'), "Notes:\n- one"),))
    tokens = Tokens(lambda: MODEL, (), TokenCalibration(tmp_path / "ratios.json"))
    filling = RequestPrefix("You are ba.\n\nNotes:\n- one", "built in", (), 0, (), feature.shares)
    parts = context_parts(filling, Transcript(events=[TurnStarted(user("go"))]), tokens, MODEL, 1_000)
    memory = next(part for part in parts if part.label == "Memory")
    assert [item.label for item in memory.items] == ["list of memory"]
    assert memory.tokens > 0


@pytest.mark.parametrize("feature", known_features(), ids=lambda feature: feature.name)
def test_each_feature_names_functions_that_exist(feature: Feature) -> None:
    parts, shell = feature.app, feature.shell
    named = [feature.open, feature.checks, shell.translate, shell.converse]
    named += [*shell.formats.values(), *parts.panes, *parts.openers, *parts.opened, *parts.views.values()]
    named += [name for row in parts.commands for name in (row.run, row.cli)]
    named = [name for name in named if name]
    assert named
    assert [name for name in named if not callable(resolve_name(name))] == []


def test_each_command_of_the_base_names_functions_that_exist() -> None:
    named = [name for row in BASE.commands for name in (row.run, row.cli)] + [*BASE.panes, *BASE.openers, *BASE.opened]
    assert [name for name in named if name and not resolves(name)] == []
    assert all(row.completions() is not None for row in BASE.commands)


def resolves(name: str) -> bool:
    try:
        return resolve_name(name) is not None
    except (ImportError, AttributeError):
        return False


def test_features_have_names_of_their_own() -> None:
    names = [feature.name for feature in known_features()]
    assert len(set(names)) == len(names)
    assert names == ["web", "data", "figures", "memory", "mcp", "agents", "plans", "teams", "compat", "hooks"]


def test_a_session_says_which_offer_is_missing(tmp_path: Path) -> None:
    tools = tools_alone(tmp_path, {})
    try:
        assert tools.guarded.context.port(int) is None
        with pytest.raises(LookupError, match="No feature offers int"):
            tools.guarded.context.offered(int)
        assert tools.guarded.context.port(Datasets) is not None
    finally:
        asyncio.run(tools.close())


def test_the_code_of_each_tool_gets_what_it_needs(tmp_path: Path) -> None:
    """Tools are made at their first call, from services that no type checker compares with what they take."""
    session = tools_alone(tmp_path, {})
    try:
        tools = session.registry.tools()
        assert {"read_file", "shell", "end_skill", "run_skill_script", "query_data", "present_plan"} <= tools.keys()
        assert {name: tool.so_far("") for name, tool in tools.items()} == dict.fromkeys(tools, "")
    finally:
        asyncio.run(session.close())
