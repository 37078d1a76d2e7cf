"""The way to a model: what is missing, which model is the default, and how a key or a server is added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.messages import user
from ba_tui.core.ports.settings import FoundServer
from ba_tui.core.provider import ModelRequest
from ba_tui.providers.access import ProviderAccess, ProviderSetup
from ba_tui.providers.catalog import load_catalog
from ba_tui.providers.credentials import BoundKey
from ba_tui.providers.pipeline import provider_for
from ba_tui.providers.scripted import Step
from ba_tui.resources import bundled, places
from ba_tui.settings import load_settings
from tests.loopback import ModelServer, Raw
from tests.loopback.replies import JSON


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
    where = ProviderSetup(way, places()).save_key("anthropic", "k-1234567890")
    assert Path(where).stat().st_mode & 0o077 == 0
    assert way.missing("anthropic/claude-x") == ""
    assert access(tmp_path).missing("anthropic/claude-x") == ""


def test_a_key_that_a_variable_hides_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "old")
    where = ProviderSetup(access(tmp_path), places()).save_key("anthropic", "k-1234567890")
    assert where.endswith(", but ANTHROPIC_API_KEY holds another key and comes first")


def test_a_server_becomes_the_default_of_later_starts_with_its_key(tmp_path: Path):
    server = FoundServer("gpubox", "gpubox", "http://gpubox:8000/v1")
    way = access(tmp_path)
    chosen = ProviderSetup(way, places()).use_server(server, "gpubox/qwen", "k-123")
    assert (chosen, way.missing(chosen)) == ("gpubox/qwen", "")
    later = access(tmp_path)
    assert later.default_model() == "gpubox/qwen"
    info = later.model("gpubox/qwen")
    assert later.profile(info).base_url == "http://gpubox:8000/v1"
    assert later.key("gpubox") == BoundKey("k-123", "http://gpubox:8000/v1")
    assert info.prices is None


@pytest.mark.parametrize(
    ("model", "line"),
    [
        ("ollama/llama3", "Ollama is not running: nothing answers at 127.0.0.1:{port}. Start it: ollama serve"),
        ("vllm/org/model", "vLLM is not running: nothing answers at 127.0.0.1:{port}. Start it: vllm serve MODEL"),
    ],
)
def test_a_server_that_does_not_run_says_how_to_start_it(tmp_path: Path, nobody: int, model: str, line: str):
    flags = {f"providers.{model.partition('/')[0]}.base_url": f"http://127.0.0.1:{nobody}/v1"}
    assert access(tmp_path, flags).missing(model) == line.format(port=nobody)


def test_a_server_that_runs_needs_no_settings(tmp_path: Path, model_server: Callable[..., ModelServer]):
    way = access(tmp_path, {"providers.ollama.base_url": model_server([]).openai_url})
    assert way.missing("ollama/llama3") == ""


@pytest.mark.parametrize(("header", "asked"), [("llama.cpp", True), ("uvicorn", None)])
async def test_only_llama_cpp_is_asked_for_its_progress(
    tmp_path: Path, model_server: Callable[..., ModelServer], header: str, asked: bool | None
):
    page = Raw(b"{}", headers={"Server": header}, content_type=JSON)
    server = model_server([Step(say="Hello")], pages={"/v1/models": page})
    loaded = load_settings({"providers.mine.base_url": server.openai_url}, places(), tmp_path)
    way = ProviderAccess(loaded, load_catalog([bundled("config") / "models.yaml"]), places())
    assert way.missing("mine/qwen") == ""
    provider = provider_for(way.model("mine/qwen"), loaded.settings, way)
    async for _ in provider.stream(ModelRequest("", [user("Hi")], ())):
        pass
    await provider.close()
    assert server.requests[0].json.get("return_progress") == asked


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
