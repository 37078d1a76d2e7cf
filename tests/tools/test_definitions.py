"""What the model reads about the tools comes from files; a broken one is said, not guessed round."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ba_tui.core.errors import UsageError
from ba_tui.core.results import Prose, ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.tools.builtin.small_tools import now_tool
from ba_tui.tools.definitions import Definition, load_definitions
from ba_tui.tools.failures import ToolFailure
from tests.tools.conftest import Harness, answering_call


def test_every_schema_is_one(definitions: Mapping[str, Definition]) -> None:
    for definition in definitions.values():
        Draft202012Validator.check_schema(definition.input_schema)
        assert definition.input_schema["additionalProperties"] is False
        assert definition.description
        for example in definition.facts.examples:
            Draft202012Validator(definition.input_schema).validate(example)


def test_the_code_of_each_tool_exists(definitions: Mapping[str, Definition]) -> None:
    for name, definition in definitions.items():
        if definition.body:
            assert callable(resolve_name(definition.body)), name


async def test_the_body_is_imported_at_the_first_call_and_off_the_event_loop(harness: Harness) -> None:
    made: list[Definition] = []
    threads: list[threading.Thread] = []

    def make(definition: Definition, word: str) -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            return ToolResult(word)

        async def preview(args: Mapping[str, Any]) -> Prose:
            return Prose(word)

        made.append(definition)
        threads.append(threading.current_thread())
        return definition.tool(run, preview=preview, so_far=str.upper)

    definition = replace(harness.definitions["now"], body=f"{__name__}:made_here")
    globals()["made_here"] = make
    tool = definition.late("hello")
    assert (tool.name, tool.input_schema, tool.facts) == ("now", definition.input_schema, definition.facts)
    assert not made
    assert (await tool.run({}, answering_call("call", harness.branch, harness))).text == "hello"
    assert tool.preview
    assert await tool.preview({}) == Prose("hello")
    assert tool.concern
    assert await tool.concern({}) == ""
    assert tool.so_far("a") == "A"
    assert made == [definition]
    assert threading.current_thread() not in threads


UNKNOWN_KEY = "description: a\ninput_schema: {type: object}\nfact: {}"


@pytest.mark.parametrize("text", ["description: only", UNKNOWN_KEY, "input_schema: {}\n", "- a list", "a: [", "\x00"])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "probe.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"probe\.yaml"):
        load_definitions(tmp_path)


def test_a_folder_without_any(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No tool descriptions"):
        load_definitions(tmp_path)


async def test_the_time_in_a_zone(harness: Harness) -> None:
    tool = now_tool(harness.definitions["now"], lambda: datetime(2026, 11, 21, 12, tzinfo=UTC))
    call = answering_call("call", harness.branch, harness)
    result = await tool.run({"timezone": "Asia/Shanghai"}, call)
    assert result.text == "Saturday 2026-11-21T20:00:00+08:00 Asia/Shanghai (2026-11-21T12:00:00Z UTC)"
    assert "2026-11-21T12:00:00Z UTC" in (await tool.run({}, call)).text
    for name in ("Nowhere/Land", "../etc/passwd", "/etc/passwd", "\0"):
        with pytest.raises(ToolFailure, match="no time zone"):
            await tool.run({"timezone": name}, call)
