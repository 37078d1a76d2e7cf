"""A key and its address: it is sent there and nowhere else, by everything that asks a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from ba_tui.core.errors import AuthFailed, UsageError
from ba_tui.core.messages import user
from ba_tui.core.provider import ModelRequest
from ba_tui.providers.access import ProviderAccess, ProviderSetup
from ba_tui.providers.anthropic import AnthropicProvider
from ba_tui.providers.catalog import chosen_catalog
from ba_tui.providers.credentials import WITHHELD, BoundKey
from ba_tui.providers.model_facts import ModelServer
from ba_tui.providers.openai_compat import OpenAIProvider
from ba_tui.providers.scripted import Step
from ba_tui.providers.servers import ask_models
from ba_tui.resources import places
from ba_tui.settings import load_settings
from ba_tui.settings.layers import AllowedSettings
from tests.loopback import ModelServer as Loopback
from tests.providers.conftest import CLAUDE, GPT, until_error
from tests.providers.recorder import recording

ASK = ModelRequest("", [user("Hello")], ())
SECRET = "sk-secret-1234"
START = Callable[..., Loopback]


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (None, "http://evil.example"),
        ("https://gateway.example/v1", None),
        ("https://gateway.example/v1", "http://gateway.example/v1"),
        ("https://gateway.example/v1", "https://gateway.example:8443/v1"),
        ("https://gateway.example/v1", "https://gateway.example.evil.example/v1"),
        ("https://gateway.example/v1", "https://gateway.example@evil.example/v1"),
    ],
)
def test_a_key_refuses_every_other_address(address: str | None, url: str | None) -> None:
    key = BoundKey(SECRET, address)
    with pytest.raises(AuthFailed, match="ba sent nothing there") as caught:
        key.sent_to(url)
    assert SECRET not in f"{caught.value.with_hint} {key!r}"


def test_the_same_server_may_be_spelt_otherwise() -> None:
    assert BoundKey(SECRET).sent_to(None) == SECRET
    assert BoundKey(SECRET, "HTTPS://Gateway.example:443/v1").sent_to("https://gateway.example/other") == SECRET


async def test_a_key_for_another_server_is_refused_before_anything_is_sent(model_server: START) -> None:
    server, key = model_server([Step(say="one")]), BoundKey(SECRET, "https://gateway.example")
    for make in (
        lambda: AnthropicProvider(CLAUDE, api_key=key, base_url=server.url),
        lambda: OpenAIProvider(GPT, api_key=key, base_url=server.openai_url),
    ):
        with pytest.raises(AuthFailed):
            make()
    for whom in (ModelServer("openai", server.openai_url, key), ModelServer("anthropic", server.url, key)):
        with pytest.raises(AuthFailed):
            await ask_models(whom)
    assert (server.requests, server.asked) == ([], [])


@pytest.mark.parametrize("status", [307, 308])
async def test_no_redirect_leads_a_key_to_another_port(vendor: str, status: int) -> None:
    async def leading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} There\r\nlocation: {evil.url}/v1\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with recording() as evil:
        server = await asyncio.start_server(leading, "localhost", 0)
        url = f"http://localhost:{server.sockets[0].getsockname()[1]}"
        async with server:
            key = BoundKey(SECRET, url)
            provider = (
                AnthropicProvider(CLAUDE, api_key=key, base_url=url)
                if vendor == "anthropic"
                else OpenAIProvider(GPT, api_key=key, base_url=url)
            )
            _, error = await until_error(provider.stream(ASK))
            await provider.close()
        assert error is not None
        assert evil.requests == []


@pytest.fixture
def access(tmp_path: Path, ba_home: Path, monkeypatch: pytest.MonkeyPatch) -> ProviderAccess:
    """What a trusted project gets whose provider ``corp`` the user allowed, with a key saved under that name."""
    (tmp_path / ".ba").mkdir()
    (tmp_path / ".ba" / "config.yaml").write_text("providers: {corp: {base_url: 'http://corp.example/v1'}}\n")
    (ba_home / "keys.yaml").write_text(f"corp: {SECRET}\nopenai: {SECRET}\ngateway: {SECRET}\n")
    (ba_home / "keys.yaml").chmod(0o600)
    (ba_home / "config.yaml").write_text("providers: {gateway: {base_url: 'http://gateway.example/v1'}}\n")
    for each in load_settings({}, places(), tmp_path, {}, trusted=True).asked:
        AllowedSettings(places()).add(tmp_path, each)
    loaded = load_settings({}, places(), tmp_path, {}, trusted=True)
    return ProviderAccess(loaded, chosen_catalog(places(), strict=True)[0], places())


def test_a_saved_key_knows_the_address_of_the_users_settings(access: ProviderAccess) -> None:
    assert access.key("openai") == BoundKey(SECRET)
    assert access.key("gateway") == BoundKey(SECRET, "http://gateway.example/v1")
    assert access.key("corp") is WITHHELD
    server = access.server(access.model("corp/x"))
    assert server
    assert SECRET not in str(server.headers())


async def test_no_key_is_given_to_a_provider_of_a_project(access: ProviderAccess) -> None:
    setup = ProviderSetup(access, places())
    with pytest.raises(UsageError, match="This project defines corp"):
        await setup.check_key("corp", "sk-new")
    with pytest.raises(UsageError, match="This project defines corp"):
        setup.save_key("corp", "sk-new")


def test_files_of_agents_and_skills_open_no_model_file(access: ProviderAccess) -> None:
    for name in ("local:./x.gguf", " local:x.gguf", "local/x.gguf"):
        assert "Only your settings may name a model file" in access.missing(name, in_file=True)
    assert access.missing("corp/x", in_file=True) == ""
