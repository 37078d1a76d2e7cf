"""Real answers of real vendors through real HTTP: whole, in 7-byte pieces, cut off at each tenth."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import AuthFailed, BadRequest, ModelNotFound, ProviderError, RateLimited, ServerOverloaded
from ba_tui.core.events import TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import Message, Text, Thinking, user
from ba_tui.core.provider import ModelRequest
from ba_tui.providers import anthropic, openai_compat
from ba_tui.providers.anthropic import AnthropicReply, block_to_wire
from ba_tui.providers.faults import ModelService
from ba_tui.providers.shapes import arguments
from tests.loopback import ModelServer, Raw
from tests.loopback.replies import JSON, Pace
from tests.providers.conftest import CLAUDE, NOW, Connect, until_error, whole_answer

pytestmark = pytest.mark.outside
ASK = ModelRequest("", [user("Hello")], (NOW,))
SERVICE = ModelService("Test", "KEY", "http://127.0.0.1", "m")
REFUSALS: dict[int, type[ProviderError]] = {
    401: AuthFailed,
    403: AuthFailed,
    404: ModelNotFound,
    408: ServerOverloaded,
    429: RateLimited,
}
FORMATS = {"anthropic": "anthropic", "openai-chat": "openai", "groq": "openai", "openrouter": "openai"}
START = Callable[..., ModelServer]


def recordings(outside_data: Path, kind: str) -> list[tuple[str, dict[str, Any], Path]]:
    """(wire format, what the index says, the body's file); the Responses API is another protocol."""
    folder = outside_data / "recordings"
    rows = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    found = [
        (FORMATS.get(row["vendor"], "openai"), row, folder / row["file"])
        for row in rows
        if row["kind"] == kind and row["url"].endswith(("/v1/messages", "/chat/completions"))
    ]
    assert found
    return found


def pruned(value: Any) -> Any:
    """Without nulls: a vendor's SDK adds fields that the wire does not have."""
    if isinstance(value, dict):
        return {key: pruned(item) for key, item in value.items() if item is not None}
    return [pruned(item) for item in value] if isinstance(value, list) else value


def as_recorded(message: Message) -> list[dict[str, Any]]:
    recorded: list[Any] = []
    for block in message.blocks:
        if isinstance(block, Text) and not block.text.strip():
            # White space alone is kept with us, though no vendor takes it back.
            recorded.append({"type": "text", "text": block.text})
        else:
            recorded.append(pruned(block_to_wire(block, own=True, model=CLAUDE)))
    return recorded


def assert_like_anthropics(message: Message, expected: dict[str, Any]) -> None:
    wanted = pruned(expected["content"])
    for block in wanted:
        # Which side ran the tool is not kept: we run all of ours.
        if block["type"] == "tool_use":
            block.pop("caller", None)
        if block["type"] == "text" and not block.get("citations"):
            block.pop("citations", None)
    assert as_recorded(message) == wanted
    assert message.stop == anthropic.STOPS[expected["stop_reason"]]
    used = expected["usage"]
    assert message.usage is not None
    assert message.usage.output == used["output_tokens"]
    assert message.usage.input == used["input_tokens"]
    assert message.usage.cache_read == (used.get("cache_read_input_tokens") or 0)
    assert message.usage.cache_write == (used.get("cache_creation_input_tokens") or 0)


def assert_like_openais(message: Message, expected: dict[str, Any]) -> None:
    assert message.text == expected["text"]
    assert "".join(b.thinking for b in message.blocks if isinstance(b, Thinking)) == expected["reasoning"]
    calls = [(call.id, call.name, (call.input, call.malformed)) for call in message.calls]
    assert calls == [(call["id"], call["name"], arguments(call["arguments"])) for call in expected["tool_calls"]]
    assert message.stop == openai_compat.STOPS[expected["finish_reason"]]
    used = expected["usage"]
    assert message.usage is not None
    assert message.usage.prompt == used["prompt_tokens"]
    assert message.usage.output == used["completion_tokens"]


@pytest.mark.parametrize("piece", [0, 7], ids=["whole", "7 bytes"])
async def test_streams_give_the_expected_message(
    outside_data: Path, model_server: START, connect: Connect, piece: int
) -> None:
    found = recordings(outside_data, "sse")
    server = model_server([Raw(path.read_bytes(), pace=Pace(piece=piece)) for _, _, path in found])
    for format, row, path in found:
        provider = connect(format, server)
        chunks, error = await until_error(provider.stream(ASK))
        expected = json.loads(path.with_suffix(".expected.json").read_text())
        if expected.get("error"):
            assert error is not None, row["file"]
            assert not any(isinstance(chunk, Message) for chunk in chunks)
            continue
        assert error is None, (row["file"], error)
        message = chunks[-1]
        said = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
        assert said == message.text
        thought = "".join(chunk.text for chunk in chunks if isinstance(chunk, ThinkingDelta))
        assert thought == "".join(block.thinking for block in message.blocks if isinstance(block, Thinking))
        shown = [chunk.call_id for chunk in chunks if isinstance(chunk, ToolInputDelta)]
        assert list(dict.fromkeys(shown)) == [use.id for use in message.calls]
        if format == "anthropic":
            assert_like_anthropics(message, expected)
        else:
            assert_like_openais(message, expected)


async def test_streams_cut_off_are_errors_and_bring_no_call(
    outside_data: Path, model_server: START, connect: Connect
) -> None:
    cuts = [
        (format, row, path.read_bytes(), tenth)
        for format, row, path in recordings(outside_data, "sse")
        for tenth in range(10)
    ]
    server = model_server([Raw(body[: len(body) * tenth // 10]) for _, _, body, tenth in cuts])
    providers = {format: connect(format, server) for format in ("anthropic", "openai")}
    said: dict[str, str] = {}
    for format, row, _, tenth in cuts:
        chunks, error = await until_error(providers[format].stream(ASK))
        words = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
        assert words.startswith(said.get(row["file"], "")), "what came is kept, whatever is missing"
        said[row["file"]] = words
        assert isinstance(error, ProviderError), (row["file"], tenth)
        assert not any(isinstance(chunk, Message) for chunk in chunks), (row["file"], tenth)
        assert "\n" not in str(error)


async def test_whole_answers_come_back_as_they_were(outside_data: Path, model_server: START, connect: Connect) -> None:
    found = [
        (row, path)
        for format, row, path in recordings(outside_data, "json")
        if format == "anthropic" and row["status"] == 200
    ]
    server = model_server([Raw(path.read_bytes(), content_type=JSON) for _, path in found])
    provider = connect("anthropic", server)
    for row, path in found:
        chunks, error = await until_error(provider.stream(ASK))
        assert error is None, (row["file"], error)
        assert_like_anthropics(chunks[-1], json.loads(path.read_text()))


async def test_recorded_refusals_are_told_in_one_line(
    outside_data: Path, model_server: START, connect: Connect
) -> None:
    found = [row for row in recordings(outside_data, "json") if row[1]["status"] != 200]
    server = model_server([Raw(path.read_bytes(), row["status"], JSON) for _, row, path in found])
    providers = {format: connect(format, server) for format in ("anthropic", "openai")}
    for format, row, path in found:
        _, error = await until_error(providers[format].stream(ASK))
        expected = REFUSALS.get(row["status"], ServerOverloaded if row["status"] >= 500 else BadRequest)
        assert isinstance(error, expected), row["file"]
        assert error.hint
        assert "\n" not in str(error)
        told = json.loads(path.read_text()).get("error") or {}
        said = " ".join(str(told.get("message", "")).split())[:40] if isinstance(told, dict) else ""
        assert said in str(error), row["file"]


def test_recorded_histories_are_sent_as_they_came(outside_data: Path) -> None:
    """Every block of an answer, known or not, goes back to the vendor with all that it had."""
    for format, row, path in recordings(outside_data, "json"):
        if format != "anthropic" or row["status"] != 200:
            continue
        body = json.loads(path.read_text())
        message = whole_answer(AnthropicReply(CLAUDE, SERVICE), body)
        for block, raw in zip(message.blocks, body["content"], strict=True):
            sent = block_to_wire(block, own=True, model=CLAUDE)
            if isinstance(block, Text):
                assert block.text == raw["text"]
            elif raw["type"] != "tool_use":
                assert pruned(sent) == pruned(raw), row["file"]
