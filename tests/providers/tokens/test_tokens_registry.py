"""Which model is counted how: names, patterns, families, files in layers, and what comes from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ba_tui import resources
from ba_tui.providers.token_counter import (
    FILE,
    EncoderConfig,
    Family,
    ModelEncoderRegistry,
    family_of,
    load_encoders,
)

BUNDLED = resources.bundled("config") / FILE


@pytest.fixture(scope="module")
def bundled() -> ModelEncoderRegistry:
    registry = load_encoders([BUNDLED])
    assert registry.problems == []
    return registry


@pytest.mark.parametrize(
    ("model", "family", "encoding", "margin"),
    [
        ("gpt-4o-mini", "gpt", "o200k_base", 1.0),
        ("openai/gpt-5.1", "gpt", "o200k_base", 1.0),
        ("gpt-9-unheard-of", "gpt", "o200k_base", 1.0),
        ("o3-mini", "gpt", "o200k_base", 1.0),
        ("gpt-4-0613", "gpt", "cl100k_base", 1.0),
        ("gpt-3.5-turbo-0125", "gpt", "cl100k_base", 1.0),
        ("claude-sonnet-4-5-20250929", "claude", "o200k_base", 1.11),
        ("anthropic/claude-haiku-4.5", "claude", "o200k_base", 1.14),
        ("claude-sonnet-4-6", "claude", "o200k_base", 1.16),
        ("claude-sonnet-4-20250514", "claude", "o200k_base", 1.15),
        ("us.anthropic.claude-opus-4-8-v1:0", "claude", "o200k_base", 1.43),
        ("claude-opus-4-9", "claude", "o200k_base", 1.43),
        ("claude-unheard-of-9", "claude", "o200k_base", 1.43),
        ("google/gemini-3-pro", "gemini", "o200k_base", 1.2),
        ("glm-4.6", "glm", "o200k_base", 1.25),
        ("qwen3:8b", "qwen", "o200k_base", 1.2),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama", "o200k_base", 1.2),
        ("devstral-small", "mistral", "o200k_base", 1.2),
        ("deepseek/deepseek-chat", "deepseek", "o200k_base", 1.2),
        ("something-else", "custom", "o200k_base", 1.2),
        ("", "custom", "o200k_base", 1.2),
    ],
)
def test_every_family_has_its_encoding_and_margin(
    bundled: ModelEncoderRegistry, model: str, family: str, encoding: str, margin: float
):
    config = bundled.find(model)
    assert (config.family.value, config.encoding, config.margin) == (family, encoding, margin)


def test_a_registry_without_files_is_careful():
    assert ModelEncoderRegistry().find("gpt-4o") == EncoderConfig(family=Family.GPT, margin=1.2)


def test_an_exact_name_wins_over_a_pattern_and_a_pattern_over_the_family():
    registry = ModelEncoderRegistry()
    registry.register_family(Family.QWEN, EncoderConfig(family=Family.QWEN, margin=1.5))
    registry.register("qwen*", EncoderConfig(family=Family.QWEN, margin=2))
    registry.register("qwen-long*", EncoderConfig(family=Family.QWEN, margin=3))
    registry.register("qwen-long-1.5", EncoderConfig(family=Family.QWEN, margin=4))
    found = [registry.find(name).margin for name in ("qwq-32b", "qwen-3", "qwen-long-2", "qwen-long-1-5")]
    assert found == [1.5, 2, 3, 4]


def test_later_layers_win_and_leave_the_rest(tmp_path: Path):
    own, project = tmp_path / "own.yaml", tmp_path / "project.yaml"
    own.write_text(
        "families:\n  GLM: {margin: 2}\nmodels:\n  'claude-*': {margin: 3}\n  mine: {encoding: cl100k_base}\n"
    )
    project.write_text("models:\n  'claude-opus*': {margin: 4}\n  gpt-4: {margin: 5, family: GPT }\n")
    registry = load_encoders([BUNDLED, own, tmp_path / "none.yaml", project])
    assert registry.problems == []
    found = [registry.find(name) for name in ("glm-5", "claude-sonnet-4-5", "claude-opus-5", "gpt-4", "mine", "gpt-4o")]
    assert [config.margin for config in found] == [2, 3, 4, 5, 1.2, 1]
    assert found[4].encoding == "cl100k_base"
    assert found[5].exact


def test_a_broken_entry_is_named_and_left_out(tmp_path: Path):
    file = tmp_path / FILE
    file.write_text(
        "families:\n  klaude: {margin: 1.1}\n  gemini: {margin: 0.5}\n"
        "models:\n  good: {margin: 1.5}\n  bad-family: {family: nobody}\n  bad-key: {margn: 2}\n  bad-shape: 7\n"
        "  bad-address: {exact_counting_api: 'file:///etc/passwd'}\n"
    )
    registry = load_encoders([BUNDLED, file])
    assert registry.find("good").margin == 1.5
    assert registry.find("gemini-3").margin == 1.2
    problems = "\n".join(registry.problems)
    for name, field in {
        "klaude": "family",
        "gemini": "margin",
        "bad-family": "family",
        "bad-key": "margn",
        "bad-shape": "mapping",
        "bad-address": "exact_counting_api",
    }.items():
        line = next(line for line in problems.splitlines() if name in line)
        assert field in line
        assert f"{file}:" in line


@pytest.mark.parametrize("text", ["models: [", "models: 3\n", "other: {}\n", "- a\n"])
def test_a_broken_file_is_told_and_left_out(tmp_path: Path, text: str):
    file = tmp_path / FILE
    file.write_text(text)
    registry = load_encoders([BUNDLED, file])
    assert len(registry.problems) == 1
    assert str(file) in registry.problems[0]
    assert registry.find("glm-5").margin == 1.25


def test_what_python_registers_wins_over_files():
    registry = load_encoders([BUNDLED])
    registry.register_encoder("by-words", lambda text: len(text.split()))
    registry.register("claude-*", EncoderConfig(family=Family.CLAUDE, encoding="by-words", margin=1))
    config = registry.find("claude-opus-4-8")
    measure = registry.encoder(config.encoding)
    assert measure is not None
    assert measure("one two three") == 3
    assert registry.encoder("o200k_base") is None


def test_a_configuration_goes_to_a_dict_and_back():
    config = EncoderConfig(Family.GLM, "cl100k_base", 1.5, True, "https://example.org/v1/count", {"mine": 1})
    data = config.to_dict()
    assert data["family"] == "glm"
    assert EncoderConfig.from_dict(data) == config


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"family": "nobody"}, "family"),
        ({"margin": 0.99}, "margin"),
        ({"margin": float("nan")}, "margin"),
        ({"encoding": ""}, "encoding"),
        ({"exact_counting_api": "ftp://example.org"}, "exact_counting_api"),
        ({"params": 3}, "params"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_a_wrong_configuration_names_the_field(data: dict[str, Any], field: str):
    with pytest.raises(ValueError, match=rf"\b{field}: "):
        EncoderConfig.from_dict(data)


def test_the_family_is_in_the_name():
    assert family_of("accounts/fireworks/models/qwen3-coder") is Family.QWEN
    assert family_of("azure_ai/mistral-large") is Family.MISTRAL
    assert family_of("solo1") is Family.CUSTOM
