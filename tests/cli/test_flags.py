"""The quick reader of flags reads what typer reads, and leaves to it what it does not know."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import typer

from ba_tui.cli.application import application
from ba_tui.flags import FLAGS, ROWS, ChatFlags, flag_of, read_flags
from tests.house.tables import described


def command() -> Any:
    group: Any = typer.main.get_command(application())
    return group.get_command(None, "chat")


def read_by_typer(argv: list[str]) -> dict[str, Any]:
    chat = command()
    with chat.make_context("chat", list(argv)) as context:
        return {name: value or None for name, value in context.params.items()}


def test_each_flag_of_typer_is_known() -> None:
    options = [param for param in command().params if param.param_type_name == "option" and param.name != "help"]
    assert {name: option.name for option in options for name in option.opts} == {
        name: row.field for name, row in FLAGS.items()
    }
    assert {option.name for option in options if option.multiple} == {row.field for row in ROWS if row.many}
    assert {option.name for option in options if option.is_flag} == {row.field for row in ROWS if row.type is bool}
    assert {option.name: option.help for option in options} == {row.field: row.help for row in ROWS}


def test_flags_give_the_settings_that_they_set() -> None:
    flags = ChatFlags(small_model="a/b", private=True, add_dir=[Path("x")], mcp_config=["f"], temperature=0.0)
    assert flags.settings() == {
        "small.model": "a/b",
        "memory.private": True,
        "add_dirs": ["x"],
        "mcp.config": ["f"],
        "temperature": 0.0,
    }
    known = {key for key, *_ in described()}
    assert {row.setting for row in ROWS if row.setting} <= known
    assert [flag_of(row.setting) for row in ROWS if row.setting] == [row.name for row in ROWS if row.setting]


@pytest.mark.parametrize(
    "line",
    [
        "hi",
        "-p hi there",
        "fix -p it -c",
        "-p -- -c --model x",
        "-p -",
        "--print --continue --fork hi",
        "-m openai/x --model=anthropic/y hi",
        "-r abc hi",
        "--resume=pick",
        "--resume=",
        "--allow a --allow=b --deny c --ask d=e --add-dir /tmp --add-dir=x",
        "--permission-mode plan --output-format stream-json --max-loops 500 --max-cost 0.5 --max-tokens 7",
        "--timeout 10 --cwd /tmp --theme dark --no-color --trust --yes-bypass-as-root",
        "--system-prompt-file f --append-system-prompt a=b",
        "--timeout 1.5 --max-loops 1 --max-cost 3",
        "--input-format stream-json --include-partial-messages --replay-user-messages --permission-prompt-tool stdio",
        "-V hi",
        "--output-format claude-stream-json --system-prompt=x --fallback-model a/b",
    ],
)
def test_a_line_is_read_as_typer_reads_it(line: str) -> None:
    flags = read_flags(line.split())
    assert flags is not None
    assert {name: value or None for name, value in asdict(flags).items()} == read_by_typer(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "--modle x",
        "-x",
        "-pc hi",
        "-mx",
        "--model",
        "--model -p",
        "--print=yes",
        "--permission-mode wild",
        "--output-format xml",
        "--max-loops 0",
        "--max-loops 501",
        "--max-loops ten",
        "--max-loops 1_0",
        "--max-cost nan",
        "--max-cost 0",
        "--max-tokens 1.5",
        "--timeout -1",
        "--timeout 1e3",
        "--help",
        "-c key=value",
        "--input-format xml",
        "--permission-prompt-tool mcp__a__b",
    ],
)
def test_what_it_does_not_know_is_left_to_typer(line: str) -> None:
    assert read_flags(line.split()) is None
