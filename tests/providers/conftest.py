"""What the tests of this room share: the model server, models, tools and ways to read a stream."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from typing import Any

import pytest

from ba_tui.core.errors import ProviderError
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelInfo, Provider
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.providers.anthropic import AnthropicProvider
from ba_tui.providers.credentials import BoundKey
from ba_tui.providers.openai_compat import OpenAIProvider
from ba_tui.providers.scripted import ModelScript, ScriptedProvider
from ba_tui.providers.sse import ReplyBuilder
from tests.loopback import ModelServer, Raw
from tests.loopback.fixtures import model_server
from tests.loopback.hostile import HostileServer

__all__ = ["model_server"]
CLAUDE = ModelInfo("anthropic/claude-test", "anthropic", "claude-test", vision=True, thinking=True, known=True)


@pytest.fixture
def nobody() -> Generator[int]:
    """A port where nobody listens: it is taken, but no connection is accepted."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


GPT = ModelInfo("openai/gpt-test", "openai", "gpt-test", vision=True, known=True)

Connect = Callable[..., AnthropicProvider | OpenAIProvider]


async def _run(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult(str(args))


READ = Tool("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}, _run)
NOW = Tool("now", "The time.", {"type": "object", "properties": {}}, _run)


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """A provider of a vendor for a server; its connection is closed with the test."""
    opened: list[AnthropicProvider | OpenAIProvider] = []

    def make(vendor: str, server: ModelServer | HostileServer, **options: Any) -> AnthropicProvider | OpenAIProvider:
        if vendor == "anthropic":
            provider = AnthropicProvider(
                options.pop("model", CLAUDE),
                api_key=BoundKey("key-of-test-1234", server.url),
                base_url=server.url,
                **options,
            )
        else:
            provider = OpenAIProvider(
                options.pop("model", GPT),
                api_key=BoundKey("key-of-test-1234", server.openai_url),
                base_url=server.openai_url,
                **options,
            )
        opened.append(provider)
        return provider

    yield make
    for provider in opened:
        await provider.close()


@pytest.fixture(params=["anthropic", "openai"])
def vendor(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["anthropic", "openai", "scripted"])
def play(
    request: pytest.FixtureRequest, model_server: Callable[..., ModelServer], connect: Connect
) -> Callable[[ModelScript], Provider]:
    """A provider that follows a script: the vendors through real HTTP, the scripted one by itself."""

    def start(script: ModelScript) -> Provider:
        if request.param == "scripted":
            return ScriptedProvider(script)
        return connect(request.param, model_server(script))

    return start


async def collect(stream: AsyncGenerator[Any, None] | AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in stream]


async def until_error(stream: AsyncGenerator[Any, None] | AsyncIterator[Any]) -> tuple[list[Any], ProviderError | None]:
    """What came, and the error it ended with."""
    chunks: list[Any] = []
    try:
        async for chunk in stream:
            chunks.append(chunk)  # noqa: PERF401 - what came before the error counts
    except ProviderError as error:
        return chunks, error
    return chunks, None


def whole_answer(assembly: ReplyBuilder, body: dict[str, Any]) -> Message:
    assembly.take(body)
    return assembly.finish()


def events(*data: Mapping[str, Any] | str) -> Raw:
    lines = [item if isinstance(item, str) else json.dumps(item) for item in data]
    return Raw("".join(f"data: {line}\n\n" for line in lines).encode())


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(arguments: Any = None, name: str | None = None, **fields: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"type": "function", "function": function, **fields}
