"""The way to a model: what is missing, which model is the default, and how a key or a server is added."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.setup import LocalServer
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import load_catalog
from ba_tui.resources import bundled, places
from ba_tui.settings import load_settings


def access(tmp_path: Path, flags: Mapping[str, object] | None = None) -> ProviderAccess:
    loaded = load_settings(flags or {}, places(), tmp_path)
    return ProviderAccess(loaded, load_catalog([bundled("config") / "models.yaml"]), places())


def test_without_a_key_the_default_says_what_to_do(tmp_path: Path):
    way = access(tmp_path)
    assert way.default_model().startswith("anthropic/")
    assert "ANTHROPIC_API_KEY" in way.missing(way.default_model())


def test_the_only_key_decides_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    way = access(tmp_path)
    assert way.default_model().startswith("openai/")
    assert way.missing(way.default_model()) == ""


def test_a_model_that_was_chosen_stays_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert access(tmp_path, {"model": "anthropic/claude-x"}).default_model() == "anthropic/claude-x"


def test_a_key_that_is_pasted_counts_at_once_and_later(tmp_path: Path):
    way = access(tmp_path)
    where = way.save_key("anthropic", "k-1234567890")
    assert Path(where).stat().st_mode & 0o077 == 0
    assert way.missing("anthropic/claude-x") == ""
    assert access(tmp_path).missing("anthropic/claude-x") == ""


def test_a_local_server_becomes_the_default_of_later_starts(tmp_path: Path):
    server = LocalServer("LM Studio", "http://127.0.0.1:1234/v1", ("openai/qwen",))
    way = access(tmp_path)
    chosen = way.use_server(server, "openai/qwen")
    assert (chosen, way.missing(chosen)) == ("lm-studio/qwen", "")
    later = access(tmp_path)
    assert later.default_model() == "lm-studio/qwen"
    info = later.model("lm-studio/qwen")
    assert later.profile(info).base_url == "http://127.0.0.1:1234/v1"
    assert info.prices is None


def test_a_loopback_endpoint_needs_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert access(tmp_path).missing("openai/anything") == ""


def test_what_the_sdk_signs_in_with_counts_as_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    assert access(tmp_path).missing("anthropic/claude-x")
    (tmp_path / "active_config").write_text("work")
    assert access(tmp_path).missing("anthropic/claude-x") == ""
    (tmp_path / "active_config").unlink()
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")
    assert access(tmp_path).missing("anthropic/claude-x") == ""
    # Another endpoint gets nothing of that.
    flags = {"providers.mine.kind": "anthropic", "providers.mine.base_url": "https://gateway.example"}
    flags["providers.mine.api_key_env"] = "MY_SECRET"
    assert "MY_SECRET" in access(tmp_path, flags).missing("mine/claude-x")


def test_a_provider_that_is_not_set_up_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match="nowhere"):
        access(tmp_path).model("nowhere/x")


@pytest.mark.parametrize("model", ["demo", "scripted:x.yaml"])
def test_scripts_need_nothing(tmp_path: Path, model: str):
    assert access(tmp_path).missing(model) == ""


def test_keys_stay_out_of_child_processes(tmp_path: Path):
    flags = {"providers.mine.kind": "openai", "providers.mine.api_key_env": "MY_SECRET"}
    assert {"MY_SECRET", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"} <= access(tmp_path, flags).variables()
