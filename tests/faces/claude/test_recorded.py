"""Our lines beside those of Claude Code 2.1.197, field by field.

``recorded.json`` holds the fields of each kind of line and the types of their values. They were recorded in
conversations with a model server on this machine.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from ba_tui.core.errors import AuthFailed
from ba_tui.core.events import TextDelta
from ba_tui.core.provider import ModelRequest, ReplyChunk
from tests.faces.claude.program import Line, Program, control, hosted, prompt
from tests.script import says

RECORDED: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "recorded.json").read_text("utf-8"))
VENDOR = ("cache_creation", "inference_geo", "iterations", "service_tier", "speed")
"""Facts of a vendor's bill that ba does not have."""
LEFT_OUT = {
    *("memory_paths.auto", "ttft_ms", "ttft_stream_ms", "time_to_request_ms", "request_id"),
    *("message.container", "message.stop_details"),
    *("message.usage.server_tool_use.web_fetch_requests", "message.usage.server_tool_use.web_search_requests"),
    *(f"response.response.commands[].{name}" for name in ("name", "description", "argumentHint")),
    *("response.response.account.apiProvider", "modelUsage.*.contextWindow", "modelUsage.*.maxOutputTokens"),
    *(f"{place}usage.{name}" for place in ("", "message.") for name in VENDOR),
}
ADDED = {"ba_version", "request.decision_reason"}
NOT_HERE = {"system/status"}
"""Kinds whose fields depend on what they tell."""
WRITES = says("Looking.", ("write_file", {"path": "a.txt", "content": "x"}))


def kind(line: Line) -> str:
    name = line["type"] + (f"/{line['subtype']}" if "subtype" in line else "")
    match line:
        case {"type": "assistant" | "user", "message": {"content": [{"type": block}]}}:
            return f"{name}:{block}"
        case {"type": "stream_event", "event": {"type": event}}:
            return f"{name}:{event}"
        case {"type": "control_request", "request": {"subtype": subtype}}:
            return f"{name}:{subtype}"
        case {"type": "control_response", "response": {"subtype": subtype}}:
            return f"{name}:{subtype}"
        case _:
            return name


def fields(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    match value:
        case dict() if value and path.rpartition(".")[2] not in {"input", "tool_input", "tool_use_result"}:
            for name, each in value.items():
                name = "*" if path.endswith("modelUsage") else name
                yield from fields(each, f"{path}.{name}" if path else name)
        case list():
            yield path, "list"
            # There are several kinds of suggestions.
            if value and not path.endswith("suggestions") and isinstance(value[0], dict):
                yield from fields(value[0], f"{path}[]")
        case bool():
            yield path, "bool"
        case int() | float():
            yield path, "number"
        case _:
            yield path, {"str": "str", "NoneType": "null", "dict": "dict"}[type(value).__name__]


async def lines() -> list[Line]:
    """Lines of all kinds that were recorded."""

    async def stuck(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("Half")
        await asyncio.Event().wait()

    def react(line: Line, program: Program) -> None:
        if line["type"] == "control_request":
            allowed = {"behavior": "allow", "updatedInput": line["request"]["input"]}
            response = {"subtype": "success", "request_id": line["request_id"], "response": allowed}
            program.send({"type": "control_response", "response": response})
        if kind(line) == "stream_event:content_block_delta" and len(program.of("result")) == 1:
            program.send(control("interrupt"))

    asking = Program(react, turns=2)
    asking.send(control("initialize"), control("nonsense"), control("set_permission_mode", mode="plan"))
    asking.send(prompt("first"), prompt([{"type": "text", "text": "second"}]))
    await hosted(asking, WRITES, says("Done."), stuck, asks=True, partial=True, replay=True, rule="write_file(a.txt)")
    told = asking.lines
    for steps in ((WRITES, says("No.")), (AuthFailed("No."),), (*[WRITES] * 5, says("So far."))):
        program = Program()
        program.send(prompt())
        await hosted(program, *steps)
        told += program.lines
    return told


async def test_each_kind_of_line_has_the_fields_of_claude_code():
    ours: dict[str, dict[str, set[str]]] = {}
    for line in await lines():
        for name, type in fields(line):
            ours.setdefault(kind(line), {}).setdefault(name, set()).add(type)
    assert ours.keys() == RECORDED.keys()
    for told, theirs in RECORDED.items():
        if told in NOT_HERE:
            continue
        known = {name.partition(".ephemeral")[0] if ".ephemeral" in name else name for name in theirs}
        assert (told, known - ours[told].keys() - LEFT_OUT - {"modelUsage"}) == (told, set())
        # What is listed in a line differs from line to line.
        listed = {name for each in RECORDED.values() for name in each if "[]" in name or "*" in name}
        assert (told, ours[told].keys() - known - ADDED - listed) == (told, set())


async def test_their_values_have_the_types_of_claude_code():
    for line in await lines():
        for name, type in fields(line):
            wanted = RECORDED[kind(line)].get(name, type).split("|")
            # What is not known is null on either side.
            assert type in wanted or "null" in {type, *wanted}, (kind(line), name, type, wanted)
