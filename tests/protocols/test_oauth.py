from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from ba_tui.core.ports.mcp import LoginNeeded, McpError, ServerConfig
from ba_tui.features.mcp.client.oauth import OAuth, check_address
from ba_tui.resources import UserFolders, places
from ba_tui.settings.keys import TokenStore
from tests.protocols.authorization_server import AuthorizationServer, query, serving, visit


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserFolders:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    return places({"BA_HOME": str(tmp_path)})


@pytest.fixture
async def server() -> AsyncIterator[AuthorizationServer]:
    async with serving(AuthorizationServer()) as running:
        yield running


def oauth_of(where: UserFolders) -> OAuth:
    async def client(_: ServerConfig, auth: httpx2.Auth | None) -> httpx2.AsyncClient:
        # Reading the certificates of the system takes longer than a whole login.
        return httpx2.AsyncClient(auth=auth, verify=False)

    return OAuth(TokenStore(where), client)


def config_of(server: AuthorizationServer, **more: object) -> ServerConfig:
    return replace(ServerConfig("linear", "http", url=server.url, source="mcp.yaml"), **more)


async def log_in(oauth: OAuth, config: ServerConfig, then: str = "") -> str:
    """Log in as a person whose browser opens what is shown, after a request to ``then``; returns what was shown."""
    shown: asyncio.Queue[str] = asyncio.Queue()
    login = asyncio.create_task(oauth.login(config, shown.put_nowait))
    waiting = asyncio.create_task(shown.get())
    await asyncio.wait({login, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if login.done():
        waiting.cancel()
        await login
    address = waiting.result()
    if then:
        assert (await visit(query(address)["redirect_uri"] + then)).status_code == 400
    page = await visit(address)
    await login
    assert "logged in to linear" in page.text
    return address


async def ask(oauth: OAuth, config: ServerConfig) -> int:
    auth = await oauth.auth(config)
    async with httpx2.AsyncClient(auth=auth, verify=False) as client:
        return (await client.post(config.url, json={})).status_code


async def test_a_login_registers_and_keeps_tokens_that_only_the_person_can_read(
    server: AuthorizationServer, where: UserFolders
):
    oauth, config = oauth_of(where), config_of(server)
    assert await oauth.auth(config) is None
    address = query(await log_in(oauth, config))
    assert address["code_challenge_method"] == "S256"
    assert address["resource"] == server.url
    assert address["redirect_uri"].startswith("http://127.0.0.1:")
    assert server.registered[0]["client_name"] == "ba"
    assert stat.S_IMODE((where.config / "mcp-tokens.yaml").stat().st_mode) == 0o600
    assert await ask(oauth, config) == 200
    assert await ask(oauth_of(where), config) == 200
    # Another address under the same name gets nothing.
    assert await oauth.auth(replace(config, url="http://127.0.0.1:1/mcp")) is None
    TokenStore(where).drop(config)
    assert await oauth.auth(config) is None
    assert "token-" not in (where.config / "mcp-tokens.yaml").read_text()


async def test_only_the_answer_to_this_login_counts(server: AuthorizationServer, where: UserFolders):
    await log_in(oauth_of(where), config_of(server), then="?code=stolen&state=other")
    assert server.grants == ["authorization_code"]


async def test_a_token_that_ended_is_refreshed_and_a_refused_one_too(server: AuthorizationServer, where: UserFolders):
    server.lifetime = -10
    oauth, config = oauth_of(where), config_of(server)
    await log_in(oauth, config)
    server.lifetime = 3600
    assert await ask(oauth, config) == 200
    assert server.grants == ["authorization_code", "refresh_token"]
    server.granted.clear()
    assert await ask(oauth, config) == 200
    assert server.grants[2:] == ["refresh_token"]


async def test_without_a_person_no_login_begins(server: AuthorizationServer, where: UserFolders):
    oauth, config = oauth_of(where), config_of(server)
    await log_in(oauth, config)
    server.granted.clear()
    store = TokenStore(where)
    kept = store.read(config)
    kept["tokens"].pop("refresh_token")
    store.save(config, kept)
    with pytest.raises(LoginNeeded, match="The login to linear has ended"):
        await ask(oauth, config)
    assert len(server.registered) == 1
    assert len(server.codes) == 1


async def test_what_the_person_configured_is_used(server: AuthorizationServer, where: UserFolders):
    config = config_of(server, oauth={"client_id": "mine", "scope": "read"})
    address = query(await log_in(oauth_of(where), config))
    assert (address["client_id"], address["scope"]) == ("mine", "read")
    assert server.registered == []


async def test_a_second_login_registers_again_only_for_another_port(server: AuthorizationServer, where: UserFolders):
    oauth, config = oauth_of(where), config_of(server)
    first = query(await log_in(oauth, config))
    second = query(await log_in(oauth, config))
    assert first["redirect_uri"] == second["redirect_uri"]
    assert len(server.registered) == 1


@pytest.mark.parametrize(
    ("knob", "value", "told"),
    [
        ("refuse", True, "linear refused the login: not today."),
        ("issuer", "https://evil.example", "issuer mismatch"),
        ("resource", "https://evil.example/mcp", "does not match"),
        ("elsewhere", "http://evil.example/authorize", "http://evil.example, which ba refuses"),
    ],
)
async def test_a_login_that_leads_elsewhere_or_is_refused_ends_in_one_line(
    server: AuthorizationServer, where: UserFolders, knob: str, value: object, told: str
):
    setattr(server, knob, value)
    with pytest.raises(McpError) as caught:
        await log_in(oauth_of(where), config_of(server))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert server.grants == []


async def test_cancelling_a_login_frees_its_port(server: AuthorizationServer, where: UserFolders):
    shown: asyncio.Queue[str] = asyncio.Queue()
    login = asyncio.create_task(oauth_of(where).login(config_of(server), shown.put_nowait))
    address = query(await shown.get())["redirect_uri"]
    login.cancel()
    with pytest.raises(asyncio.CancelledError):
        await login
    with pytest.raises(httpx2.ConnectError):
        await visit(address)


async def test_a_server_that_asks_for_no_login_says_so(server: AuthorizationServer, where: UserFolders):
    server.granted.add("")
    with pytest.raises(McpError, match="linear answered 200 and asked for no login"):
        await log_in(oauth_of(where), config_of(server))


@pytest.mark.parametrize(
    ("url", "address", "fine"),
    [
        ("https://mcp.example/mcp", "https://login.example/authorize", True),
        ("https://mcp.example/mcp", "http://login.example/authorize", False),
        ("https://mcp.example/mcp", "https://127.0.0.1/authorize", False),
        ("https://mcp.example/mcp", "http://localhost:8000/authorize", False),
        ("https://mcp.example/mcp", "http://169.254.169.254/latest", False),
        ("https://mcp.example/mcp", "https://me@login.example/", False),
        ("https://mcp.example/mcp", "javascript:alert(1)", False),
        ("http://127.0.0.1:9/mcp", "http://localhost:8000/authorize", True),
        ("http://127.0.0.1:9/mcp", "http://login.example/", False),
    ],
)
def test_where_a_login_may_lead(url: str, address: str, fine: bool):
    config = ServerConfig("linear", "http", url=url)
    if fine:
        check_address(config, address)
    else:
        with pytest.raises(McpError):
            check_address(config, address)
