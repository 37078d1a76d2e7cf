"""What the tests of clouds share: an environment that is set up, providers, and a conversation."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, user
from ba_tui.core.provider import ModelRequest, Provider
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import load_catalog
from ba_tui.providers.pipeline import provider_for
from ba_tui.resources import bundled, places
from ba_tui.settings import load_settings
from tests.loopback import ModelServer
from tests.providers.conftest import NOW, READ
from tests.providers.recorder import RecordingServer

MODELS = {
    "bedrock": "us.anthropic.claude-opus-4-8-20260301-v1:0",
    "vertex": "claude-opus-4-8@20260301",
    "foundry": "claude-opus-4-8",
    "azure": "gpt-deployed",
}
CLAUDE = ("bedrock", "vertex", "foundry")
FRAMES = "application/vnd.amazon.eventstream"
ASKED = ModelRequest(
    "Be brief; ünïcödé.",
    [
        user("What is the time?"),
        Message("assistant", (Text("Let me see."), ToolUse("call_1", "now", {"zone": "UTC"})), origin="assistant"),
        Message("user", (ToolOutput("call_1", "12:00"),), origin="tool"),
    ],
    (READ, NOW),
)
ENVIRONMENT = (
    "AWS_REGION AWS_DEFAULT_REGION AWS_PROFILE AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN "
    "AWS_BEARER_TOKEN_BEDROCK AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE ANTHROPIC_BEDROCK_BASE_URL CLOUD_ML_REGION "
    "ANTHROPIC_VERTEX_PROJECT_ID ANTHROPIC_VERTEX_BASE_URL GOOGLE_APPLICATION_CREDENTIALS ANTHROPIC_FOUNDRY_API_KEY "
    "ANTHROPIC_FOUNDRY_RESOURCE ANTHROPIC_FOUNDRY_BASE_URL AZURE_OPENAI_API_KEY AZURE_OPENAI_AD_TOKEN "
    "AZURE_OPENAI_ENDPOINT OPENAI_API_VERSION ANTHROPIC_CUSTOM_HEADERS OPENAI_CUSTOM_HEADERS OPENAI_ORG_ID"
)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # An SDK takes two seconds to load: only processes that run these tests load it.
    from anthropic.lib.aws import _auth

    for name in ENVIRONMENT.split():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    # The SDK keeps what it found in the environment for as long as the process lives.
    cast("Any", _auth._get_session).cache_clear()


@pytest.fixture
def set_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str], None]:
    """Sets what a cloud needs; tokens of Google come from the server ``url``."""

    def of_kind(kind: str, url: str) -> None:
        given = {
            "bedrock": {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": "secret"},
            "vertex": {
                "CLOUD_ML_REGION": "europe-west1",
                "ANTHROPIC_VERTEX_PROJECT_ID": "project-1",
                "GOOGLE_APPLICATION_CREDENTIALS": str(google_account(tmp_path, url)),
            },
            "foundry": {"ANTHROPIC_FOUNDRY_API_KEY": "key-of-foundry"},
            "azure": {"AZURE_OPENAI_API_KEY": "key-of-azure"},
        }
        for name, value in given[kind].items():
            monkeypatch.setenv(name, value)

    return of_kind


def google_account(folder: Path, url: str) -> Path:
    """The file of a service account, whose tokens come from ``url``."""
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {"type": "service_account", "client_email": "ba@project-1", "token_uri": f"{url}/oauth/token"}
    path = folder / "account.json"
    path.write_text(json.dumps({**account, "private_key": key.decode(), "project_id": "project-1"}))
    return path


def access(tmp_path: Path, kind: str, url: str = "") -> ProviderAccess:
    flags = {f"providers.{kind}.base_url": url} if url else {}
    loaded = load_settings(flags, places(), tmp_path)
    return ProviderAccess(loaded, load_catalog([bundled("config") / "models.yaml"]), places())


def connected(tmp_path: Path, kind: str, url: str = "") -> Provider:
    way = access(tmp_path, kind, url)
    name = f"{kind}/{MODELS[kind]}"
    assert way.missing(name) == ""
    return provider_for(way.model(name), load_settings({}, places(), tmp_path).settings, way)


@pytest.fixture
async def connect(tmp_path: Path) -> AsyncIterator[Callable[[str, str], Provider]]:
    """A provider of a kind at an address; its connection is closed with the test."""
    opened: list[Provider] = []

    def make(kind: str, url: str) -> Provider:
        opened.append(connected(tmp_path, kind, url))
        return opened[-1]

    yield make
    for provider in opened:
        await provider.close()


def there(kind: str, server: ModelServer | RecordingServer) -> str:
    return f"{server.url}/openai/v1" if kind == "azure" else server.url


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """What the server waits for; set at the end, so that it can stop."""
    event = threading.Event()
    yield event
    event.set()
