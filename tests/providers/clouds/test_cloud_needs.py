"""What a cloud needs is told in one line, and the catalogue knows its models."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from ba_tui.core.errors import AuthFailed, UsageError
from ba_tui.core.provider import Provider
from ba_tui.providers.credentials import CLOUDS
from ba_tui.providers.pipeline import provider_for
from ba_tui.resources import places
from ba_tui.settings import load_settings
from tests.providers.clouds.conftest import ASKED, MODELS, access, connected
from tests.providers.conftest import until_error


async def test_credentials_that_are_not_there_are_told(
    connect: Callable[[str, str], Provider], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from anthropic.lib.aws import _auth

    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("CLOUD_ML_REGION", "global")
    monkeypatch.setenv("ANTHROPIC_VERTEX_PROJECT_ID", "project-1")
    for kind in ("bedrock", "vertex"):
        _, error = await until_error(connect(kind, "http://127.0.0.1:1").stream(ASKED))
        assert isinstance(error, AuthFailed)
        assert f"No credentials for {CLOUDS[kind].name}: " in str(error)
        assert "\n" not in error.with_hint
        assert error.hint == CLOUDS[kind].cure
    cast("Any", _auth._get_session).cache_clear()
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    _, error = await until_error(connect("bedrock", "http://127.0.0.1:1").stream(ASKED))
    assert "nobody" in str(error)


@pytest.mark.parametrize(
    ("kind", "set_to", "lines"),
    [
        ("bedrock", {}, "Amazon Bedrock needs AWS_REGION, which is not set. Set it: export AWS_REGION=…"),
        ("vertex", {}, "Google Vertex AI needs CLOUD_ML_REGION, which is not set. Set it: export CLOUD_ML_REGION=…"),
        ("vertex", {"CLOUD_ML_REGION": "global"}, "Google Vertex AI needs ANTHROPIC_VERTEX_PROJECT_ID, which is not"),
        ("foundry", {}, "Microsoft Foundry has no address yet. Set ANTHROPIC_FOUNDRY_RESOURCE, or base_url"),
        (
            "foundry",
            {"ANTHROPIC_FOUNDRY_RESOURCE": "r"},
            "There is no API key for Microsoft Foundry yet. Set ",
        ),
        ("azure", {}, "Azure OpenAI has no address yet. Set AZURE_OPENAI_ENDPOINT, or base_url in the settings."),
        ("azure", {"AZURE_OPENAI_ENDPOINT": "https://r.azure.com"}, "There is no API key for Azure OpenAI yet. Set AZ"),
    ],
)
def test_what_is_missing_is_told_in_one_line(
    kind: str, set_to: Mapping[str, str], lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in set_to.items():
        monkeypatch.setenv(name, value)
    way = access(tmp_path, kind)
    name = f"{kind}/{MODELS[kind]}"
    assert way.missing(name).startswith(lines)
    assert not way.ready(kind)
    with pytest.raises((UsageError, AuthFailed)) as caught:
        provider_for(way.model(name), load_settings({}, places(), tmp_path).settings, way)
    assert caught.value.with_hint == way.missing(name)


def test_variables_that_exclude_each_other_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "RESOURCE", "BASE_URL"):
        monkeypatch.setenv(f"ANTHROPIC_FOUNDRY_{name}", "http://127.0.0.1:1")
    with pytest.raises(UsageError, match="Foundry can't be asked: base_url and resource are mutually exclusive"):
        connected(tmp_path, "foundry")


def test_a_package_that_is_missing_is_named() -> None:
    # Its import is what can't be had here, as the tests need it.
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.modules['boto3'] = None; sys.modules['google.auth'] = None\n"
            "from ba_tui.providers.credentials import lacking\n"
            "print(lacking('bedrock', None, None).with_hint); print(lacking('vertex', None, None).with_hint)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.splitlines() == [
        "Amazon Bedrock needs the package boto3. Run pip install 'ba-tui[bedrock]'. See ba guide clouds.",
        "Google Vertex AI needs the package google-auth. Run pip install 'ba-tui[vertex]'. See ba guide clouds.",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "bedrock/us.anthropic.claude-opus-4-8-20260301-v1:0",
        "bedrock/anthropic.claude-opus-4-8",
        "bedrock/arn:aws:bedrock:us-east-1:12:inference-profile/global.anthropic.claude-opus-4-8-v1:0",
        "vertex/claude-opus-4-8@20260301",
        "foundry/claude-opus-4-8",
    ],
)
def test_the_catalogue_knows_claude_on_clouds_without_its_price(name: str, tmp_path: Path) -> None:
    way = access(tmp_path, "azure")
    claude, info = way.model("anthropic/claude-opus-4-8"), way.model(name)
    provider, _, model = name.partition("/")
    assert (info.id, info.provider, info.name) == (name, provider, model)
    assert (info.family, info.window, info.max_output) == (claude.family, claude.window, claude.max_output)
    assert info.prices is None
    assert way.server(info) is None


def test_clouds_are_never_chosen_unasked(tmp_path: Path, set_up: Callable[[str, str], None]) -> None:
    for kind in MODELS:
        set_up(kind, "")
    assert access(tmp_path, "azure", "https://r.openai.azure.com").default_model().startswith("anthropic/")


def test_keys_of_clouds_are_kept_from_child_processes(tmp_path: Path) -> None:
    kept = {"AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_FOUNDRY_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"}
    assert kept <= access(tmp_path, "azure").variables()
