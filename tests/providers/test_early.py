"""A connection that is opened before its request: used once, over TLS too, never told of when nobody needs it."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from ba_tui.providers import http as early
from ba_tui.providers.anthropic import AnthropicProvider
from ba_tui.providers.credentials import BoundKey
from tests.providers.conftest import CLAUDE, until_error
from tests.providers.recorder import RecordingServer, recording
from tests.providers.test_http import signed_by_itself
from tests.providers.test_sdk_contract import ASKED


def provider_of(url: str) -> AnthropicProvider:
    return AnthropicProvider(CLAUDE, api_key=BoundKey("key-1", url), base_url=url)


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not reached():  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.001)


@pytest.fixture(params=["http", "https"])
def context(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext | None:
    """The server's TLS; its certificate is its own authority, and the user's."""
    if request.param == "http":
        return None
    made = signed_by_itself(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    return made


async def asked(provider: AnthropicProvider, server: RecordingServer) -> None:
    before = len(server.requests)
    await until_error(provider.stream(ASKED))
    assert len(server.requests) == before + 1


async def test_the_request_finds_the_connection_open(context: ssl.SSLContext | None) -> None:
    async with recording(context) as server:
        provider = provider_of(server.url)
        provider.connect()
        provider.connect()
        await until(lambda: server.opened == 1)
        assert server.requests == []
        await asked(provider, server)
        provider.connect()
        await asked(provider, server)
        assert server.opened == 1
        await provider.close()


async def test_the_request_may_come_first(context: ssl.SSLContext | None) -> None:
    async with recording(context) as server:
        provider = provider_of(server.url)
        provider.connect()
        await asked(provider, server)
        assert server.opened == 1
        await provider.close()


async def test_two_requests_at_once_do_not_share_it(context: ssl.SSLContext | None) -> None:
    async with recording(context) as server:
        provider = provider_of(server.url)
        provider.connect()
        await asyncio.gather(*(until_error(provider.stream(ASKED)) for _ in range(2)))
        assert (server.opened, len(server.requests)) == (2, 2)
        await provider.close()


async def test_who_is_stopped_while_it_opens_leaves_it_to_the_next(context: ssl.SSLContext | None) -> None:
    async with recording(context) as server:
        provider = provider_of(server.url)
        provider.connect()
        stopped = asyncio.create_task(until_error(provider.stream(ASKED)))
        await asyncio.sleep(0)
        stopped.cancel()
        await asyncio.gather(stopped, return_exceptions=True)
        await asked(provider, server)
        assert server.opened == 1
        await provider.close()


async def test_one_that_nobody_uses_is_closed(context: ssl.SSLContext | None) -> None:
    async with recording(context) as server:
        provider = provider_of(server.url)
        provider.connect()
        await until(lambda: server.opened == 1)
        await provider.close()
        await asyncio.wait_for(server.closed.wait(), 10)
        provider = provider_of(server.url)
        provider.connect()
        await provider.close()
    gc.collect()


async def test_one_that_the_server_closed_is_not_used(context: ssl.SSLContext | None) -> None:
    async with recording(context) as server:
        provider = provider_of(server.url)
        provider.connect()
        await until(lambda: server.opened == 1)
        await server.hang_up()
        await asked(provider, server)
        assert server.opened == 2
        await provider.close()


async def test_an_old_one_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "FRESH", -1.0)
    async with recording() as server:
        provider = provider_of(server.url)

        def replaced() -> bool:
            provider.connect()
            return server.opened > 1

        await until(replaced)
        await asyncio.wait_for(server.closed.wait(), 10)
        await provider.close()


async def test_one_that_fails_is_told_of_by_the_request_alone() -> None:
    async with recording() as server:
        gone = server.url
    provider = provider_of(gone)
    provider.connect()
    await asyncio.sleep(0)
    _, error = await until_error(provider.stream(ASKED))
    assert "Nothing answers" in str(error)
    provider.connect()
    await provider.close()
    gc.collect()


async def test_nothing_is_opened_around_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with recording() as server, recording() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        provider = provider_of(server.url.replace("localhost", "model.example"))
        provider.connect()
        await until_error(provider.stream(ASKED))
        await provider.close()
    assert (server.opened, len(proxy.requests)) == (0, 1)
