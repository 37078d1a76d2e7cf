"""The provider's own count: asked once for each content, for a short time, and with the key of its own host only."""

from __future__ import annotations

import threading

import pytest

from ba_tui.core.errors import BadRequest, UsageError
from ba_tui.core.messages import Message, ToolOutput, ToolUse, user
from ba_tui.core.provider import ModelInfo, ModelRequest
from ba_tui.providers.anthropic import AnthropicProvider
from ba_tui.providers.credentials import BoundKey
from ba_tui.providers.token_encodings import ExactCounts
from tests.providers.counting_server import CountingServer
from tests.providers.tokens.test_tokens import nothing

INFO = ModelInfo("anthropic/claude-x", "anthropic", "claude-x")


def request(text: str = "hello") -> ModelRequest:
    from ba_tui.core.tool import Tool

    called = Message("assistant", (ToolUse("a", "look", {"path": "x"}),), origin="assistant")
    seen = Message("user", (ToolOutput("a", "seen"),), origin="tool")
    return ModelRequest("Be kind.", [user(text), called, seen], [Tool("look", "Looks.", {"type": "object"}, nothing)])


async def test_the_whole_request_is_counted_once():
    with CountingServer() as server:
        provider = AnthropicProvider(INFO, api_key=BoundKey("test-key", server.url), base_url=server.url)
        counts = ExactCounts(provider.count_tokens)
        assert [await counts.count(request()), await counts.count(request())] == [777, 777]
        assert await counts.count(request("another")) == 777
        await provider.close()
    first, second = server.bodies
    assert server.paths == ["/v1/messages/count_tokens"] * 2
    assert sorted(first) == ["messages", "model", "system", "tools"]
    assert [message["role"] for message in first["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][0]["content"][0]["text"] == "another"


async def test_a_failure_is_told_and_nobody_is_asked_again():
    with CountingServer() as server:
        server.status = 404
        provider = AnthropicProvider(INFO, api_key=BoundKey("test-key", server.url), base_url=server.url)
        counts = ExactCounts(provider.count_tokens)
        assert [await counts.count(request()), await counts.count(request("other"))] == [None, None]
        await provider.close()
    assert counts.trouble
    assert len(server.bodies) == 1


async def test_a_slow_server_is_not_waited_for():
    with CountingServer() as server:
        server.release = threading.Event()
        provider = AnthropicProvider(INFO, api_key=BoundKey("test-key", server.url), base_url=server.url)
        counts = ExactCounts(provider.count_tokens, patience=0.2)
        assert await counts.count(request()) is None
        await provider.close()
    assert "within 0.2 s" in counts.trouble


@pytest.mark.parametrize("tokens", [None, "many", -1, True])
async def test_an_answer_without_a_count_is_an_error(tokens: object):
    with CountingServer(tokens) as server:
        provider = AnthropicProvider(INFO, api_key=BoundKey("test-key", server.url), base_url=server.url)
        with pytest.raises(BadRequest):
            await provider.count_tokens(request())
        await provider.close()


async def test_the_key_goes_to_no_other_host():
    with CountingServer() as server, CountingServer() as other:
        provider = AnthropicProvider(INFO, api_key=BoundKey("test-key", server.url), base_url=server.url)
        with pytest.raises(UsageError, match="does not belong to"):
            await provider.count_tokens(request(), f"{other.url}/v1/messages/count_tokens")
        assert await provider.count_tokens(request(), f"{server.url}/v1/other") == 777
        assert [name for name in server.headers if "stainless" in name.lower()] == []
        await provider.close()
    assert server.paths == ["/v1/other"]
    assert other.bodies == []
