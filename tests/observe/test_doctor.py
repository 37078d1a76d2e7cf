"""The doctor: every finding in words, offline, and in a home where nothing can be written."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.ports.contributions import CheckResult
from ba_tui.core.ports.permissions import TrustedItems, TrustState
from ba_tui.observe.doctor import Patient, examine
from ba_tui.permissions.session import rule_checks, trust_check
from ba_tui.resources import places
from ba_tui.settings import load_settings, save_key

ELSEWHERE = "0"
"""This machine by a name that does not look like it: as good as a server far away."""


class Refusing(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(401)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Generator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


@pytest.fixture
def nowhere() -> Generator[str]:
    """An address where nobody listens: the port is taken, but no connection is accepted."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")


def findings(project: Path, home: Path, config: str, env: dict[str, str] | None = None) -> dict[str, CheckResult]:
    where = places({"BA_HOME": str(home)})
    if config:
        where.settings.write_text(config)
    loaded = load_settings({}, where, project, env or {})
    patient = Patient(where, loaded, Path("/usr/bin/rg"), env={"PATH": "/usr/bin:/bin", **(env or {})})
    found: dict[str, CheckResult] = {}
    for each in examine(patient):
        found.setdefault(each.name, each)
    return found


def serving(address: str) -> str:
    return f"model: mine/x\nproviders:\n  mine: {{kind: openai, base_url: '{address}', api_key_env: MINE_KEY}}\n"


@pytest.mark.parametrize(
    ("standing", "state", "text"),
    [
        (TrustState(Path("/p"), "trusted"), "ok", "/p is trusted; it contains nothing that runs"),
        (
            TrustState(Path("/p"), "unknown", holds=(TrustedItems("hooks", ("a",)),)),
            "warn",
            "/p is not trusted, so these are off: hooks",
        ),
        (TrustState(Path("/p"), "unknown"), "ok", "/p contains nothing that runs, so nothing is off"),
        (TrustState(Path("/p"), "changed"), "warn", "what /p runs has changed since you trusted it"),
        (TrustState(Path("/p"), "unknown", trouble="It holds too much."), "warn", "It holds too much."),
    ],
)
def test_it_tells_how_the_folder_stands(standing: TrustState, state: str, text: str) -> None:
    told = trust_check(standing)
    assert (told.name, told.state, told.text) == ("trust", state, text)


def test_all_is_well(tmp_path: Path, ba_home: Path, endpoint: str) -> None:
    found = findings(tmp_path, ba_home, serving(endpoint), {"MINE_KEY": "sk-very-secret"})
    assert {found[name].state for name in ("python", "files", "settings", "key", "endpoint", "sessions")} == {"ok"}
    assert found["endpoint"].text == "127.0.0.1 answers (for mine/x)"
    assert found["key"].text == "found for mine, from MINE_KEY"
    assert not [each for each in found.values() if "very-secret" in f"{each}"]
    assert not (ba_home / "sessions").exists()


def test_offline_is_a_warning_that_says_what_it_means(tmp_path: Path, ba_home: Path, nowhere: str) -> None:
    found = findings(tmp_path, ba_home, serving(nowhere.replace("127.0.0.1", ELSEWHERE)))
    assert found["endpoint"].state == "warn"
    assert "can't ask the model" in found["endpoint"].fix
    assert (found["key"].state, found["key"].text) == ("warn", "no key for mine")
    assert "MINE_KEY" in found["key"].fix


def test_a_server_without_a_key_needs_none(tmp_path: Path, ba_home: Path, endpoint: str) -> None:
    elsewhere = endpoint.replace("127.0.0.1", ELSEWHERE)
    for config in (f"model: mine/x\nproviders: {{mine: {{base_url: '{elsewhere}'}}}}\n", serving(endpoint)):
        found = findings(tmp_path, ba_home, config)
        assert "key" not in found
        assert found["endpoint"].state == "ok"


def test_a_cloud_is_looked_at_without_asking_it(tmp_path: Path, ba_home: Path, endpoint: str) -> None:
    found = findings(tmp_path, ba_home, "model: azure/deployed\n")
    assert (found["cloud"].state, found["cloud"].text) == ("warn", "Azure OpenAI has no address yet.")
    assert "AZURE_OPENAI_ENDPOINT" in found["cloud"].fix
    config = f"model: azure/deployed\nproviders: {{azure: {{base_url: '{endpoint}'}}}}\n"
    found = findings(tmp_path, ba_home, config, {"AZURE_OPENAI_AD_TOKEN": "token"})
    assert (found["cloud"].state, found["endpoint"].state) == ("ok", "ok")


def test_a_local_model_needs_no_key_and_no_endpoint(tmp_path: Path, ba_home: Path) -> None:
    found = findings(tmp_path, ba_home, "model: files/m.gguf\nproviders:\n  files: {kind: local}\n")
    assert found["model"].text.startswith(("files/m.gguf", "Local models need xllamacpp"))
    assert {"key", "endpoint"}.isdisjoint(found)


def test_a_model_of_no_provider_is_told(tmp_path: Path, ba_home: Path) -> None:
    found = findings(tmp_path, ba_home, "model: grok\n")
    assert "'grok' names no provider" in found["model"].text


def test_wrong_settings_fail_with_their_place(tmp_path: Path, ba_home: Path, nowhere: str) -> None:
    found = findings(tmp_path, ba_home, serving(nowhere) + "max_loops: many\n")
    assert found["settings"].state == "fail"
    assert f"{ba_home / 'config.yaml'}:4: max_loops" in found["settings"].text


def test_keys_that_others_can_read_fail(tmp_path: Path, ba_home: Path, endpoint: str) -> None:
    save_key("mine", "key-1", places())
    (ba_home / "keys.yaml").chmod(0o644)
    found = findings(tmp_path, ba_home, serving(endpoint))
    assert found["key"].state == "fail"
    assert found["key"].fix.startswith("chmod 600")


def test_a_home_that_cannot_be_written_fails_with_a_way_out(tmp_path: Path, nowhere: str) -> None:
    (tmp_path / "file").write_text("")
    env = {"BA_MODEL": "mine/x", "BA_PROVIDERS__MINE__BASE_URL": nowhere}
    found = findings(tmp_path, tmp_path / "file" / "home", "", env)
    assert found["sessions"].state == "fail"
    assert "BA_HOME" in found["sessions"].fix
    assert found["config folder"].state == found["log"].state == "warn"


def test_programs_that_are_missing_are_told(tmp_path: Path, ba_home: Path, nowhere: str) -> None:
    found = findings(tmp_path, ba_home, serving(nowhere), {"PATH": str(tmp_path)})
    assert (found["git"].state, found["bash"].state) == ("warn", "warn")
    assert "shell tool is off" in found["bash"].text
    assert found["ripgrep"].state == "ok"


def test_a_rule_that_cannot_be_read_is_a_finding(tmp_path: Path, ba_home: Path) -> None:
    (ba_home / "config.yaml").write_text('permissions: {deny: ["shell(\\e["]}\n')
    told = list(rule_checks(load_settings({}, places(), tmp_path, {}), places(), tmp_path))
    assert [(each.name, each.state) for each in told] == [("permissions", "fail")]
    assert "shell(" in told[0].text
    assert "\x1b" not in told[0].text
