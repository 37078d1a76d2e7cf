"""What the model reads about the tools comes from files; a broken one is said, not guessed round."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ba_tui.core.errors import UsageError
from ba_tui.tools.builtin.clock import now_tool
from ba_tui.tools.definitions import Definition, load_definitions
from ba_tui.tools.failed import Failed
from tests.tools.conftest import Harness, answering_call


def test_every_schema_is_one(definitions: Mapping[str, Definition]) -> None:
    for definition in definitions.values():
        Draft202012Validator.check_schema(definition.input_schema)
        assert definition.input_schema["additionalProperties"] is False
        assert definition.description
        for example in definition.examples:
            Draft202012Validator(definition.input_schema).validate(example)


@pytest.mark.parametrize("text", ["description: only", "input_schema: {}\n", "- a list", "a: [", "\x00"])
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
        with pytest.raises(Failed, match="no time zone"):
            await tool.run({"timezone": name}, call)
