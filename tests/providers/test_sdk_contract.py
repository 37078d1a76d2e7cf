"""Our requests are those of the vendors' SDKs: method, path, headers and body, for the same conversation and settings.

We import no SDK to ask a model, so an SDK that changes what it sends must be noticed here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import AuthFailed, ConnectionLost
from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, user
from ba_tui.core.provider import ModelInfo, ModelRequest
from ba_tui.providers.anthropic import AnthropicProvider
from ba_tui.providers.credentials import BoundKey
from ba_tui.providers.openai_compat import OpenAIProvider
from tests.loopback.server import Seen
from tests.providers.conftest import NOW, READ, until_error
from tests.providers.recorder import RecordingServer, recording

CLAUDE = ModelInfo("anthropic/c", "anthropic", "c", family="claude-5", vision=True, thinking=True, known=True)
GPT = ModelInfo("openai/g", "openai", "g", vision=True, known=True)
ASKED = ModelRequest(
    "Be brief; ünïcödé.",
    [
        user("What is the time?"),
        Message("assistant", (Text("Let me see."), ToolUse("call_1", "now", {"zone": "UTC"})), origin="assistant"),
        Message("user", (ToolOutput("call_1", "12:00"),), origin="tool"),
    ],
    (READ, NOW),
    call_tools=False,
)
LEFT_OUT = {
    "x-stainless-arch": "tells of this machine",
    "x-stainless-async": "tells of this program",
    "x-stainless-lang": "tells of this program",
    "x-stainless-os": "tells of this machine",
    "x-stainless-package-version": "tells of the SDK, which is not there",
    "x-stainless-read-timeout": "tells of our settings",
    "x-stainless-retry-count": "retries are ours",
    "x-stainless-runtime": "tells of this machine",
    "x-stainless-runtime-version": "tells of this machine",
    "x-stainless-timeout": "tells of our settings",
}
"""Headers of the SDKs that we leave out, and why."""
OTHER = {
    "content-length": "JSON may be written in more than one way; the body is compared as what it means",
    "host": "two servers have two ports",
    "user-agent": "we say who we are",
}
"""Headers that we send as well, with other values."""
ENVIRONMENT = ("API_KEY", "AUTH_TOKEN", "BASE_URL", "CUSTOM_HEADERS", "ORG_ID", "PROJECT_ID", "PROFILE", "CONFIG_DIR")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in ("ANTHROPIC", "OPENAI"):
        for name in ENVIRONMENT:
            monkeypatch.delenv(f"{vendor}_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


async def ours(vendor: str, **given: Any) -> None:
    if key := given.pop("api_key", None):
        given["api_key"] = BoundKey(key, given["base_url"])
    provider = AnthropicProvider(CLAUDE, **given) if vendor == "anthropic" else OpenAIProvider(GPT, **given)
    # The answer holds nothing, which is told; the request is what counts.
    await until_error(provider.stream(ASKED))
    await provider.close()


async def theirs(vendor: str, fields: Mapping[str, Any], **given: Any) -> None:
    """The same conversation, said to the SDK."""
    if vendor == "anthropic":
        import anthropic

        async with anthropic.AsyncAnthropic(max_retries=0, **given) as client:
            async for _ in await client.messages.create(**fields):
                pass
        return
    import openai

    async with openai.AsyncOpenAI(max_retries=0, **given) as client:
        async for _ in await client.chat.completions.create(**fields):
            pass


def assert_same(our: Seen, their: Seen) -> None:
    assert (our.method, our.path) == (their.method, their.path)
    assert our.json == their.json
    unknown = their.headers.keys() - our.headers.keys() - LEFT_OUT.keys()
    assert unknown == set(), f"new headers of the SDK: send them, or list why not: {unknown}"
    assert our.headers.keys() <= their.headers.keys()
    compared = our.headers.keys() - OTHER.keys()
    assert {name: our.headers[name] for name in compared} == {name: their.headers[name] for name in compared}


async def compared(vendor: str, server: RecordingServer, **given: Any) -> Seen:
    """Our request, which is the SDK's too."""
    await ours(vendor, **given)
    await theirs(vendor, server.requests[-1].json, **given)
    our, their = server.requests[-2:]
    assert_same(our, their)
    return our


@pytest.mark.parametrize("path", ["", "/", "/gateway", "/gateway/"])
async def test_a_plain_key(vendor: str, path: str) -> None:
    async with recording() as server:
        seen = await compared(vendor, server, api_key="key-1", base_url=server.url + path)
    assert seen.headers["authorization"] == "Bearer key-1"
    assert seen.headers["user-agent"].startswith("ba/")


async def test_what_the_environment_names(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with recording() as server:
        monkeypatch.setenv(f"{vendor.upper()}_API_KEY", "key-2")
        monkeypatch.setenv(f"{vendor.upper()}_BASE_URL", f"{server.url}/there")
        team = "α" if vendor == "anthropic" else "a"
        headers = f"X-Team: {team}\n user-agent :mine\nnonsense\nX-Two: a:b"
        monkeypatch.setenv(f"{vendor.upper()}_CUSTOM_HEADERS", headers)
        monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")
        seen = await compared(vendor, server)
    assert seen.headers["x-two"] == "a:b"
    assert seen.headers["user-agent"] == "mine"
    assert (seen.headers.get("openai-organization") == "org-1") is (vendor == "openai")


async def test_a_custom_header_may_be_the_credential(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with recording() as server, recording() as other:
        monkeypatch.setenv(f"{vendor.upper()}_API_KEY", "key-2")
        monkeypatch.setenv(f"{vendor.upper()}_BASE_URL", server.url)
        monkeypatch.setenv(f"{vendor.upper()}_CUSTOM_HEADERS", "authorization: Basic abc\nX-Team: a")
        seen = await compared(vendor, server)
        await ours(vendor, base_url=other.url, api_key="key-3")
    assert seen.headers["authorization"] == "Basic abc"
    # Not so at another endpoint: what the environment holds is for its own.
    assert other.requests[0].headers["authorization"] == "Bearer key-3"
    assert other.requests[0].headers["x-team"] == "a"


async def test_a_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with recording() as server:
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        seen = await compared("anthropic", server)
        assert seen.headers["authorization"] == "Bearer token-1"
        # The settings name the endpoint of the environment as well, and it is the same.
        await ours("anthropic", base_url=server.url)
        assert server.requests[-1].headers["authorization"] == "Bearer token-1"
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key-1")
        seen = await compared("anthropic", server)
    assert seen.headers["authorization"] == "Bearer key-1"


def profile(folder: Path, **more: Any) -> None:
    """A profile as the tools that sign people in leave it."""
    for name in ("configs", "credentials"):
        (folder / name).mkdir(parents=True)
    config = {"authentication": {"type": "user_oauth"}, **more}
    (folder / "configs" / "default.json").write_text(json.dumps(config))
    secret = folder / "credentials" / "default.json"
    secret.write_text(json.dumps({"access_token": "token-of-the-profile"}))
    secret.chmod(0o600)


@pytest.mark.parametrize("named", [True, False])
async def test_a_profile_of_the_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool) -> None:
    folder = tmp_path / ".config" / "anthropic"
    async with recording() as server:
        profile(folder, workspace_id="workspace-1", base_url=f"{server.url}/from/profile")
        if named:
            monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(folder))
        seen = await compared("anthropic", server)
    assert seen.path == "/from/profile/v1/messages"
    assert seen.headers["authorization"] == "Bearer token-of-the-profile"
    assert seen.headers["anthropic-workspace-id"] == "workspace-1"


async def test_the_identity_of_a_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    async with recording() as server:
        federation(monkeypatch, server.url)
        seen = await compared("anthropic", server)
    assert seen.headers["authorization"] == "Bearer token-of-the-exchange"
    assert [exchange.json["assertion"] for exchange in server.exchanges] == ["who-i-am", "who-i-am"]


async def test_a_token_that_is_refused_is_exchanged_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    async with recording() as server:
        federation(monkeypatch, server.url)
        server.refused = 1
        await ours("anthropic")
        assert (len(server.exchanges), len(server.requests)) == (2, 2)
        assert server.requests[0].body == server.requests[1].body
        assert server.requests[1].headers["authorization"] == "Bearer token-of-the-exchange"
        server.refused = 5
        await ours("anthropic")
    assert len(server.requests) == 4


def federation(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    monkeypatch.setenv("ANTHROPIC_IDENTITY_TOKEN", "who-i-am")
    monkeypatch.setenv("ANTHROPIC_FEDERATION_RULE_ID", "rule-1")
    monkeypatch.setenv("ANTHROPIC_ORGANIZATION_ID", "org-1")


async def test_a_server_of_tokens_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    federation(monkeypatch, "http://127.0.0.1:1")
    provider = AnthropicProvider(CLAUDE)
    _, error = await until_error(provider.stream(ASKED))
    await provider.close()
    assert isinstance(error, ConnectionLost)
    assert "No token for Anthropic" in str(error)


async def test_a_profile_that_can_not_be_used_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_PROFILE", "work")
    with pytest.raises(AuthFailed) as caught:
        AnthropicProvider(CLAUDE)
    assert "work" in str(caught.value)
    assert "\n" not in str(caught.value)
    monkeypatch.delenv("ANTHROPIC_PROFILE")
    profile(tmp_path / ".config" / "anthropic")
    (tmp_path / ".config" / "anthropic" / "credentials" / "default.json").unlink()
    provider = AnthropicProvider(CLAUDE)
    _, error = await until_error(provider.stream(ASKED))
    await provider.close()
    assert isinstance(error, AuthFailed)
    assert "No token for Anthropic" in str(error)


async def test_the_chain_is_not_asked_for_another_endpoint(tmp_path: Path) -> None:
    profile(tmp_path / ".config" / "anthropic")
    async with recording() as server:
        await ours("anthropic", base_url=server.url)
    assert server.requests[0].headers["authorization"] == "Bearer none"
