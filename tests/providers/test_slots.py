"""The slots main, small and reasoning: which model each asks, with what, and what is wrong with them in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ba_tui.context.reminders import SessionSpending
from ba_tui.core.errors import UsageError
from ba_tui.core.provider import LOCAL_WINDOW, WINDOW, ModelRequest, Prices
from ba_tui.providers.access import ProviderAccess, ProviderSetup
from ba_tui.providers.agent_model import AgentModel
from ba_tui.providers.catalog import chosen_catalog
from ba_tui.providers.model_facts import ModelFacts, ModelServer
from ba_tui.resources import places
from ba_tui.sessions.requests import RequestStore
from ba_tui.settings import load_settings
from ba_tui.tools.toolbox import ModelRequests
from tests.providers.local.test_model_files import gguf
from tests.providers.text_calls.tools import READ, SHELL

LOCAL: Mapping[str, object] = {"providers.mine.kind": "openai", "providers.mine.base_url": "http://127.0.0.1:9/v1"}
FAR: Mapping[str, object] = {"providers.far.kind": "openai", "providers.far.base_url": "https://models.example/v1"}


def access(tmp_path: Path, flags: Mapping[str, object] | None = None) -> ProviderAccess:
    loaded = load_settings(flags or {}, places(), tmp_path)
    return ProviderAccess(loaded, chosen_catalog(places(), strict=True)[0], places())


def in_use(tmp_path: Path, flags: Mapping[str, object]) -> AgentModel:
    way = access(tmp_path, flags)
    return AgentModel(way, way.slots.settings("main"), RequestStore(tmp_path).recorder)


@pytest.mark.parametrize(
    ("main", "small"),
    [
        ("anthropic/claude-sonnet-5-5", "anthropic/claude-haiku-5-5"),
        ("openai/gpt-6.2-astra", "openai/gpt-6-luna"),
        ("openai/gpt-6-luna", "openai/gpt-6-luna"),
        ("openai/gpt-5-nano", "openai/gpt-5-nano"),
        ("openai/some-model-of-a-gateway", "openai/some-model-of-a-gateway"),
        ("mine/llama3", "mine/llama3"),
        ("mine/claude-sonnet-5-5", "mine/claude-sonnet-5-5"),
    ],
)
def test_small_work_goes_to_the_vendors_cheap_model_or_to_the_main_one(tmp_path: Path, main: str, small: str):
    assert ProviderSetup(access(tmp_path, LOCAL), places()).in_slot("small", main) == small


def test_a_vendors_own_variable_for_its_address_means_another_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    assert (
        ProviderSetup(access(tmp_path), places()).in_slot("small", "anthropic/claude-sonnet-5-5")
        == "anthropic/claude-sonnet-5-5"
    )


def test_a_slot_is_set_by_flag_and_by_the_person_for_later_starts(tmp_path: Path):
    flags = {"small.model": "openai/gpt-5-nano", "small.temperature": 0.5, "small.max_tokens": 900}
    way = access(tmp_path, flags)
    assert ProviderSetup(way, places()).in_slot("small", "anthropic/claude-opus-5") == "openai/gpt-5-nano"
    small = way.slots.settings("small")
    assert (small.temperature, small.max_output_tokens, small.effort) == (0.5, 900, None)
    ProviderSetup(way, places()).remember("small.model", "haiku")
    assert ProviderSetup(way, places()).in_slot("small", "anthropic/claude-opus-5") == "anthropic/claude-haiku-5-5"
    assert access(tmp_path).slots.named("small") == "anthropic/claude-haiku-5-5"
    ProviderSetup(way, places()).remember("small.model", "")
    assert ProviderSetup(way, places()).in_slot("small", "openai/gpt-6-sol") == "openai/gpt-6-luna"


def test_an_unknown_model_is_not_kept(tmp_path: Path):
    way = access(tmp_path)
    with pytest.raises(UsageError):
        ProviderSetup(way, places()).remember("reasoning.model", "nowhere/x")
    assert way.slots.named("reasoning") == ""
    assert not places().settings.exists()


def test_a_slot_that_names_no_model_is_told_with_its_place(tmp_path: Path):
    places().settings.parent.mkdir(parents=True, exist_ok=True)
    places().settings.write_text("theme: dark\nsmall:\n  model: anthropc/claude\nfallback_model: nope\n")
    way = access(tmp_path)
    small, fallback = way.slots.problems(strict=False)
    assert f"{places().settings}:3: small.model: There is no provider 'anthropc'" in small.text
    assert f"{places().settings}:4: fallback_model: There is no model 'nope'" in fallback.text
    assert way.slots.fallback() == ""
    with pytest.raises(UsageError, match=r"config\.yaml:3"):
        way.slots.problems(strict=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("temperature: 3\n", "config.yaml:1: temperature: expected"),
        ("temperature: warm\n", "config.yaml:1: temperature: expected a number"),
        ("small: {temperature: -1}\n", "config.yaml:1: small.temperature: expected"),
        ("small: {effort: huge}\n", "config.yaml:1: small.effort: expected"),
        ("reasoning: claude\n", "config.yaml:1: reasoning: expected a group"),
        ("fallback_after: 0\n", "config.yaml:1: fallback_after: expected"),
        ("providers:\n  a: {requests_per_minute: 0}\n", "config.yaml:2: providers.a.requests_per_minute: expected"),
        (
            "providers:\n  a: {base_url: 'http://x/v1'}\n  a: {base_url: 'http://y/v1'}\n",
            "config.yaml:3: providers.a: is set again (first in line 2)",
        ),
    ],
)
def test_wrong_settings_are_one_line_each_with_their_place(tmp_path: Path, text: str, said: str):
    places().settings.parent.mkdir(parents=True, exist_ok=True)
    places().settings.write_text(text)
    (problem,) = load_settings({}, places(), tmp_path).warnings
    assert said in str(problem)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"model": "anthropic/claude-sonnet-5-5", "temperature": 0.5}, "takes no temperature"),
        ({"model": "openai/gpt-6-sol", "temperature": 1}, "takes no temperature"),
        ({"model": "anthropic/claude-opus-4-6", "temperature": 1.5}, "from 0 to 1"),
        ({"model": "openai/gpt-4.1", "effort": "high"}, "takes no effort"),
    ],
)
def test_what_a_model_does_not_take_is_refused_in_one_line(
    tmp_path: Path, flags: Mapping[str, object], said: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k-1234567890")
    monkeypatch.setenv("OPENAI_API_KEY", "k-1234567890")
    model = in_use(tmp_path, flags)
    model.choose(str(flags["model"]))
    with pytest.raises(UsageError, match=said):
        model.provider(str(flags["model"]))


def test_plan_mode_asks_the_reasoning_model_and_a_skills_model_goes_before_it(tmp_path: Path):
    mode, skill = "plan", ""
    way = in_use(tmp_path, {**LOCAL, "reasoning.model": "mine/thinker"})
    request, wanted = ModelRequest("", (), ()), way.wanted(lambda: skill, lambda: mode, main=True)
    assert wanted(request) == "reasoning=mine/thinker"
    skill = "mine/other"
    assert wanted(request) == "mine/other"
    mode, skill = "default", ""
    assert wanted(request) == ""
    assert in_use(tmp_path, LOCAL).wanted(lambda: "", lambda: "plan", main=True)(request) == ""


def test_the_window_of_an_unlisted_model(tmp_path: Path):
    way = access(tmp_path, {**LOCAL, **FAR})
    assert (way.model("mine/my-model").window, way.model("mine/my-model").known) == (LOCAL_WINDOW, False)
    assert way.model("far/my-model").window == WINDOW
    assert way.model("openai/my-model").window == WINDOW


def test_a_local_model_behind_openais_variable_is_local_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1")
    assert access(tmp_path).model("openai/my-model").window == LOCAL_WINDOW


def test_what_a_server_told_counts_and_the_persons_own_file_goes_before_it(tmp_path: Path):
    server = ModelServer("openai", "http://127.0.0.1:9/v1")
    way = access(tmp_path, LOCAL)
    before = way.model("mine/llama3")
    told = ModelFacts("llama3", 16_384, 2_048, Prices(0, 0, 0, 0), vision=True, thinking=True, temperature=False)
    way.facts.learn(server, told)
    after = way.model("mine/llama3")
    assert before.window == 131_072
    assert (after.window, after.max_output, after.vision, after.thinking, after.temperature) == (
        16_384,
        2_048,
        True,
        True,
        False,
    )
    assert after.prices
    assert after.prices.input == 0
    places().config.mkdir(parents=True, exist_ok=True)
    (places().config / "models.yaml").write_text(
        "models:\n- match: [llama3]\n  window: 9000\n  prices: {input: 1, output: 2, cache_read: 0, cache_write: 1}\n"
    )
    own = access(tmp_path, LOCAL).model("mine/llama3")
    assert (own.window, own.max_output, own.prices) == (9000, 2_048, Prices(1, 2, 0, 1))


def test_a_price_list_counts_for_its_vendors_host_under_any_name(tmp_path: Path):
    flags = {
        "providers.google.kind": "openai",
        "providers.google.base_url": "https://generativelanguage.googleapis.com/v1beta/openai",
        **FAR,
    }
    way = access(tmp_path, flags)
    assert way.model("google/gemini-3.5-flash").prices
    assert way.model("far/gemini-3.5-flash").prices is None
    assert way.model("far/gpt-6-sol").prices is None
    assert way.model("openai/gpt-6-sol").prices


def test_a_request_that_asks_for_reasoning_goes_to_that_slot(tmp_path: Path):
    far = {**FAR, "model": "far/one", "reasoning.model": "far/two"}
    model, plain = in_use(tmp_path, far), ModelRequest("", (), ())
    model.choose("far/one")
    asks = ModelRequest("", (), (), reasoning=True)
    main = model.wanted(lambda: "far/skilled", lambda: "default", main=True)
    assert (main(plain), main(asks), model.reasoning()) == ("far/skilled", "reasoning=far/two", "far/two")
    planning = model.wanted(str, lambda: "plan", main=True)
    below = model.wanted(lambda: "far/skilled", lambda: "plan", main=False)
    assert (planning(plain), below(plain), below(asks)) == ("reasoning=far/two", "", "reasoning=far/two")
    model.choose("far/two")
    assert model.reasoning() == ""
    assert in_use(tmp_path, FAR).reasoning() == ""


def test_a_plan_of_a_local_model_offers_the_tools_that_this_model_knows(tmp_path: Path) -> None:
    file = tmp_path / "tiny.gguf"
    file.write_bytes(gguf())
    used = in_use(tmp_path, {"local.tools": ["shell"], **LOCAL})
    spending = SessionSpending()
    asked = ModelRequests(used, spending, load_settings({}, places(), tmp_path).settings)
    used.choose("mine/any")
    assert asked.offered((READ, SHELL)) == (READ, SHELL)
    used.choose(f"local:{file}")
    assert asked.offered((READ, SHELL)) == [SHELL]
