"""The catalog: what is found for a name, how layers lie over each other, what a broken file is told."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.messages import Usage
from ba_tui.core.provider import Prices
from ba_tui.providers.catalog import ModelCatalog, load_catalog

FREE = "{input: 0, output: 0, cache_read: 0, cache_write: 0}"
BUNDLED = Path(__file__).parents[2] / "config" / "models.yaml"


@pytest.fixture(scope="module")
def catalog() -> ModelCatalog:
    return load_catalog([BUNDLED])


def test_a_full_name_and_a_bare_one_are_the_same_model(catalog: ModelCatalog) -> None:
    info = catalog.find("anthropic/claude-sonnet-4-5-20250929")
    assert info == catalog.find("claude-sonnet-4-5-20250929")
    assert info.id == "anthropic/claude-sonnet-4-5-20250929"
    assert info.name == "claude-sonnet-4-5-20250929"
    assert (info.window, info.known, info.vision) == (200_000, True, True)
    assert info.prices == Prices(3, 15, 0.3, 3.75, date="2026-10-26")


def test_the_closest_pattern_wins(catalog: ModelCatalog) -> None:
    assert catalog.find("claude-opus-5-5").prices != catalog.find("claude-opus-5").prices
    assert catalog.find("claude-sonnet-4-20250514").window == 200_000
    assert catalog.find("claude-something-9").family == "claude"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("openai/gpt-5.2", "gpt"),
        ("openai/gemini-3-pro-preview", "gemini"),
        ("openai/qwen2.5-coder:7b", "qwen"),
        ("openai/Qwen/Qwen3-Coder-480B", "qwen"),
        ("openai/z-ai/glm-4.7", "glm"),
        ("openai/deepseek-v4-flash", "deepseek"),
        ("openai/llama3.2:3b", "llama"),
        ("openai/devstral-small-latest", "mistral"),
        ("openai/anthropic/claude-opus-4.5:free", "claude-4"),
    ],
)
def test_families_are_known_under_any_host(catalog: ModelCatalog, name: str, family: str) -> None:
    info = catalog.find(name)
    assert (info.family, info.known, info.id) == (family, True, name)


def test_a_reseller_has_no_price_of_the_vendor(catalog: ModelCatalog) -> None:
    assert catalog.find("openai/anthropic/claude-opus-4.5").prices is None
    assert catalog.find("anthropic/claude-opus-4-5").prices is not None


def test_an_unknown_model_is_assumed(catalog: ModelCatalog) -> None:
    info = catalog.find("openai/my-own-model")
    assert (info.known, info.window, info.prices, info.family) == (False, 200_000, None, "custom")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("gtp-5", "gpt-5"), ("claud-opus-5", "claude-opus-5"), ("antropic/claude-opus-5", "anthropic/claude-opus-5")],
)
def test_a_slip_is_told_the_nearest(catalog: ModelCatalog, name: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        catalog.find(name)
    assert expected in caught.value.hint


@pytest.mark.parametrize("name", ["", " ", "openai/", "/x", "zzz", "scripted:"])
def test_what_can_be_no_model_is_refused(catalog: ModelCatalog, name: str) -> None:
    with pytest.raises(UsageError):
        catalog.find(name)


def test_scripts_are_models_too(catalog: ModelCatalog) -> None:
    info = catalog.find("scripted:talks/one.yaml")
    assert (info.id, info.provider, info.name) == ("scripted:talks/one.yaml", "scripted", "talks/one.yaml")
    assert catalog.find("demo").provider == "demo"


def test_every_listed_model_is_found_by_its_id(catalog: ModelCatalog) -> None:
    models = catalog.models()
    assert len(models) > 20
    assert all(catalog.find(info.id) == info and info.known for info in models)
    assert len({info.id for info in models}) == len(models)


def test_a_later_file_changes_only_what_it_says(tmp_path: Path) -> None:
    own = tmp_path / "models.yaml"
    own.write_text(
        "models:\n"
        "  - {match: [claude-opus-5-5], prices: {input: 1, output: 2, cache_read: 3, cache_write: 4}}\n"
        "  - {match: [house-model], provider: openai, window: 5000}\n"
    )
    catalog = load_catalog([BUNDLED, own])
    changed, before = catalog.find("claude-opus-5-5"), load_catalog([BUNDLED]).find("claude-opus-5-5")
    assert changed.prices == Prices(1, 2, 3, 4)
    assert (changed.window, changed.max_output, changed.family) == (before.window, before.max_output, before.family)
    assert catalog.find("house-model").id == "openai/house-model"
    assert catalog.find("house-model").window == 5000


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("models: [\n", 2, "not valid YAML"),
        ("models:\n  - match: [x\n    window: 3\n", 3, "not valid YAML"),
        ("- a\n", 1, "got a list"),
        ("models: 3\n", 1, "a list"),
        ("models:\n  - window: 3\n", 2, "match"),
        ("models:\n  - match: [x]\n    window: big\n", 3, "models[1].window must be a whole number"),
        ("models:\n  - match: [x]\n    window: 0\n", 3, "1 or more"),
        ("models:\n  - match: [x]\n    provider: google\n", 3, "anthropic or openai"),
        ("models:\n  - match: [x]\n    windwo: 3\n", 3, "unknown key"),
        ("models:\n  - match: [x]\n    vision: maybe\n", 3, "true or false"),
        ("models:\n  - match: [x]\n    prices: {input: 3}\n", 3, "US dollars"),
        (
            "models:\n  - match: [x]\n    prices: {input: -3, output: 1, cache_read: 1, cache_write: 1}\n",
            3,
            "0 or more",
        ),
        ("models:\n  - match: [x]\n    temperature: hot\n", 3, "true or false"),
        (f"models:\n  - match: [x]\n    prices: {FREE[:-1]}, date: soon}}\n", 3, "a day, such as"),
        (f"models:\n  - match: [x]\n    prices: {FREE.replace('output: 0', 'output: dear')}\n", 3, "0 or more"),
        (f"models:\n  - match: [x]\n    prices: {FREE.replace('output: 0', 'output: .nan')}\n", 3, "0 or more"),
        (f"models:\n  - match: [x]\n    prices: {FREE[:-1]}, above: {FREE}}}\n", 3, "“tokens”"),
        (f"models:\n  - match: [x]\n    prices: {FREE[:-1]}, above: {{tokens: 5}}}}\n", 3, "US dollars"),
        ("small: {openia: x}\n", 1, "unknown key"),
        ("models:\n  - match: [!!python/object:os.system x]\n", 2, "constructor"),
    ],
)
def test_a_broken_file_is_named_with_line_and_expectation(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_catalog([path])
    assert f"{path}:{line}" in str(caught.value)
    assert said in str(caught.value)


def test_a_slip_in_a_key_is_told_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text("models:\n  - match: [x]\n    windwo: 3\n")
    with pytest.raises(UsageError) as caught:
        load_catalog([path])
    assert "window" in caught.value.hint


@pytest.mark.parametrize("content", [b"\xff\xfe\x00bad", None])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "models.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"models\.yaml(:1: is not UTF-8| can't be read)"):
        load_catalog([path])
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(UsageError, match="is not a regular file"):
        load_catalog([path])


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text("# nothing yet\n")
    assert load_catalog([BUNDLED, path]).models() == load_catalog([BUNDLED]).models()


def test_every_listed_model_has_a_price_and_its_day(catalog: ModelCatalog) -> None:
    for info in catalog.models():
        assert info.prices, info.id
        assert date(2026, 10, 1) <= date.fromisoformat(info.prices.date) <= date(2026, 12, 31), info.id
        assert (
            0 < info.prices.cache_read <= info.prices.input <= info.prices.cache_write * 1.01 < info.prices.output * 2
        )
        if info.prices.long:
            assert info.prices.above >= 32_000
            assert info.prices.long.input > info.prices.input


def test_the_price_of_a_long_prompt_is_that_of_the_whole_request(catalog: ModelCatalog) -> None:
    haiku = catalog.find("claude-haiku-5-5").prices
    assert haiku
    assert haiku.cost(Usage(100_000, 1_000_000)) == pytest.approx(0.51)
    assert haiku.cost(Usage(1, 1_000_000, cache_read=100_000)) == pytest.approx(2.505, abs=0.001)


@pytest.mark.parametrize("name", ["claude-opus-9", "gpt-6.9-sol", "gemini-9", "llama3", "qwen3-coder:30b", "gpt-oss"])
def test_a_price_that_nobody_knows_is_not_guessed(catalog: ModelCatalog, name: str) -> None:
    info = catalog.find(f"{'anthropic' if name.startswith('claude') else 'openai'}/{name}")
    assert info.known
    assert info.prices is None


def test_an_entry_inherits_from_broader_ones_all_but_prices(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(
        "models:\n"
        f"  - match: [house-*]\n    provider: openai\n    window: 5000\n    temperature: false\n    prices: {FREE}\n"
        "  - match: [house-big*]\n    output: 700\n"
        "  - match: [house-big-2]\n    window: 9000\n"
    )
    info = load_catalog([path]).find("house-big-2")
    assert (info.provider, info.window, info.max_output, info.temperature) == ("openai", 9000, 700, False)
    assert info.prices is None


def test_the_name_itself_goes_before_longer_patterns(catalog: ModelCatalog) -> None:
    assert catalog.find("gpt-5").prices == catalog.find("gpt-5-2025-08-07").prices
    assert catalog.find("gpt-4o").prices


def test_each_vendor_has_a_model_for_small_work(catalog: ModelCatalog) -> None:
    for provider in ("anthropic", "openai"):
        assert catalog.find(catalog.small(provider)).prices
    assert catalog.small("elsewhere") == ""


@pytest.mark.parametrize("word", ["sonnet", "opus", "haiku"])
def test_short_names_mean_the_newest_of_their_kind(catalog: ModelCatalog, word: str) -> None:
    named = [info.name for info in catalog.models() if info.name.startswith(f"claude-{word}-")]
    assert catalog.find(word).id == f"anthropic/{named[0]}"
