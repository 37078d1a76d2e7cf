"""Answers of model servers as facts: each dialect, and what is wrong with an answer in one line each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ba_tui.core.provider import Prices
from ba_tui.providers.model_facts import ModelFacts
from ba_tui.providers.servers import MOST, llama_props, model_list, ollama_show, single_model

HOST = "127.0.0.1:8080"


def one(entry: dict[str, Any]) -> ModelFacts:
    found = model_list({"data": [{"id": "m", **entry}]}, HOST)
    assert found.problems == ()
    return found.models[0]


def wrong(entry: dict[str, Any]) -> tuple[ModelFacts, str]:
    found = model_list({"data": [{"id": "m", **entry}]}, HOST)
    (problem,) = found.problems
    assert "\n" not in problem
    return found.models[0], problem


def test_a_list_of_names_tells_names_only():
    found = model_list({"object": "list", "data": [{"id": "a", "object": "model"}, {"id": "b"}]}, HOST)
    assert found.models == (ModelFacts("a"), ModelFacts("b"))
    assert found.problems == ()


@pytest.mark.parametrize(
    ("entry", "window", "output"),
    [
        ({"max_model_len": 32768}, 32768, None),
        ({"context_window": 131072, "max_completion_tokens": 8192}, 131072, 8192),
        ({"max_input_tokens": 1_000_000, "max_tokens": 128_000}, 1_000_000, 128_000),
        ({"max_context_length": 131072, "loaded_context_length": 4096}, 4096, None),
        ({"max_context_length": 131072}, 131072, None),
        (
            {"context_length": 200_000, "top_provider": {"context_length": 128_000, "max_completion_tokens": 64_000}},
            128_000,
            64_000,
        ),
        ({"context_length": 8192, "top_provider": {"context_length": None, "max_completion_tokens": None}}, 8192, None),
    ],
    ids=["vllm", "groq", "anthropic", "lm-studio-loaded", "lm-studio", "openrouter", "openrouter-null"],
)
def test_windows_and_output_limits_by_the_names_of_each_server(
    entry: dict[str, Any], window: int | None, output: int | None
):
    facts = one(entry)
    assert (facts.window, facts.max_output) == (window, output)


def test_prices_of_openrouter_are_text_for_one_token():
    pricing = {
        "prompt": "0.000003",
        "completion": "0.000015",
        "image": "0.0048",
        "input_cache_read": "0.0000003",
        "input_cache_write": "0.00000375",
    }
    assert one({"pricing": pricing}).prices == Prices(3, 15, 0.3, 3.75)


def test_without_a_price_for_cached_input_no_discount_is_assumed():
    assert one({"pricing": {"prompt": "0.000001", "completion": "0.000002"}}).prices == Prices(1, 2, 1, 1)


def test_prices_of_together_are_numbers_for_a_million_tokens():
    found = model_list([{"id": "m", "pricing": {"hourly": 0, "input": 0.18, "output": 0.59, "base": 0}}], HOST)
    assert found.models[0].prices == Prices(0.18, 0.59, 0.18, 0.18)


def test_a_routers_price_is_not_known_and_no_fault():
    assert one({"pricing": {"prompt": "-1", "completion": "-1"}}).prices is None
    assert one({"pricing": {"prompt": "0", "completion": "0"}}).prices == Prices(0, 0, 0, 0)


def test_capabilities_as_each_server_names_them():
    openrouter = one(
        {
            "architecture": {"input_modalities": ["text", "image"]},
            "supported_parameters": ["tools", "max_tokens", "reasoning"],
        }
    )
    assert (openrouter.vision, openrouter.thinking, openrouter.temperature) == (True, True, False)
    anthropic = one(
        {
            "capabilities": {
                "image_input": {"supported": True},
                "effort": {"supported": False, "low": {"supported": False}},
                "thinking": {"supported": True, "types": {}},
            }
        }
    )
    assert (anthropic.vision, anthropic.thinking) == (True, False)
    mistral = one({"capabilities": {"function_calling": True, "vision": False}})
    assert mistral.vision is False
    studio = one({"type": "vlm", "capabilities": ["tool_use"]})
    assert studio.vision


@pytest.mark.parametrize("window", [0, -1, 10**18, "big", float("nan"), True, [4096], 12.5])
def test_a_window_that_cannot_be_is_left_out_with_one_line(window: object):
    facts, problem = wrong({"max_model_len": window})
    assert facts.window is None
    assert "“m” has an invalid window" in problem
    assert HOST in problem


@pytest.mark.parametrize("price", ["free", "NaN", "inf", "-0.5", "1e9", {}, True, "9" * 400])
def test_a_price_that_cannot_be_is_left_out_with_one_line(price: object):
    facts, problem = wrong({"pricing": {"prompt": price, "completion": "0.000002"}})
    assert facts.prices is None
    assert "“m” has an invalid price" in problem


def test_many_wrong_values_are_one_line_for_each_kind():
    entries = [
        {"id": f"m{number}", "max_model_len": 0, "pricing": {"prompt": "x", "completion": 1}} for number in range(9)
    ]
    found = model_list({"data": entries}, HOST)
    assert len(found.models) == 9
    assert len(found.problems) == 2
    assert all("“m0”" in line and "8 more models" in line for line in found.problems)


def test_a_list_of_ten_thousand_is_cut_with_one_line_and_any_model_in_it_is_found():
    answer = {"data": [{"id": f"m{number}", "max_model_len": 4096 + number} for number in range(10_000)]}
    found = model_list(answer, HOST)
    assert len(found.models) == MOST
    (problem,) = found.problems
    assert "10,000 models" in problem
    last = model_list(answer, HOST, "m9999")
    assert (last.models, last.problems) == ((ModelFacts("m9999", 14095),), ())


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 300, "\x1b[31mred", None, 7])
def test_models_without_a_usable_name_are_left_out_with_one_line(name: object):
    found = model_list({"data": [{"id": name}, {"id": "good"}]}, HOST)
    assert [facts.name for facts in found.models] == ["good"]
    (problem,) = found.problems
    assert problem.isprintable()


@pytest.mark.parametrize("answer", [None, 3, "text", {}, {"data": {}}, {"error": "x"}, {"data": None}])
def test_something_else_than_a_list_is_one_line(answer: object):
    found = model_list(answer, HOST)
    assert found.models == ()
    assert len(found.problems) == 1


@pytest.mark.parametrize("entry", [None, 3, "x", [], {"id": "m", "pricing": 3, "capabilities": 4, "top_provider": []}])
def test_odd_entries_do_no_harm(entry: object):
    model_list({"data": [entry]}, HOST)
    single_model(entry, HOST, "m")


def test_one_entry_by_itself():
    found = single_model({"id": "claude-x", "type": "model", "max_input_tokens": 200_000}, HOST, "claude-x")
    assert found.models == (ModelFacts("claude-x", 200_000),)


def test_llama_cpp_tells_the_window_of_a_slot():
    props = {
        "default_generation_settings": {"n_ctx": 16384, "params": {"temperature": 0.8}},
        "total_slots": 4,
        "modalities": {"vision": True, "audio": False},
        "chat_template_caps": {"supports_tools": True},
    }
    found = llama_props(props, HOST, "m")
    assert found.models == (ModelFacts("m", 16384, vision=True),)
    assert llama_props({"default_generation_settings": {"n_ctx": 0}}, HOST, "m").problems


SHOW: dict[str, Any] = {
    "parameters": 'num_ctx                        16384\nstop                           "<|eot|>"',
    "model_info": {"general.architecture": "llama", "llama.context_length": 131072, "llama.block_count": 32},
    "capabilities": ["completion", "tools", "vision"],
}


def test_ollama_tells_the_window_that_the_modelfile_sets():
    (facts,) = ollama_show(SHOW, HOST, "llama3").models
    assert facts == ModelFacts("llama3", 16384, vision=True, thinking=False)


def test_the_window_that_ollama_loaded_the_model_with_wins():
    loaded = {"models": [{"name": "llama3:latest", "model": "llama3:latest", "context_length": 4096}]}
    (facts,) = ollama_show(SHOW, HOST, "llama3", loaded).models
    assert facts.window == 4096


def test_what_ollama_could_read_is_no_window():
    (facts,) = ollama_show({**SHOW, "parameters": ""}, HOST, "llama3").models
    assert facts.window is None
    (facts,) = ollama_show({**SHOW, "parameters": "num_ctx 999999"}, HOST, "llama3").models
    assert facts.window == 131072


def test_a_model_of_ollama_is_found_without_its_tag():
    found = model_list({"data": [{"id": "llama3:latest", "owned_by": "library"}]}, HOST)
    told = found.find("llama3")
    assert told
    assert told.owner == "library"


def test_facts_are_read_from_real_json():
    text = '{"data":[{"id":"m","context_length":4096,"pricing":{"prompt":"0.5e-6","completion":"1E-6"}}]}'
    assert model_list(json.loads(text), HOST).models[0].prices == Prices(0.5, 1, 0.5, 0.5)
