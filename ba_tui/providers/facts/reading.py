"""Answers of model servers, decoded, as facts. Pure: one function for each kind of answer, and none of them raises.

The fields are those that the vendors' documentation names; see each function.
"""

from __future__ import annotations

from typing import Any, cast

from ba_tui.core.messages import clean_text
from ba_tui.providers.facts.values import MILLION, Doubts, Listed, ModelFacts, switch, within
from ba_tui.providers.wire.shapes import fields, items, text_of

MOST = 2_000
"""Models of one server that are read."""
LONGEST_NAME = 200
IMAGE, TOOLS, THINKING = ("image", "vision"), ("tools", "tool_use"), ("reasoning", "thinking", "reasoning_effort")


def model_list(answer: object, host: str, name: str = "") -> Listed:
    """``GET /v1/models`` of an OpenAI-compatible server or of Anthropic's, or ``/api/v0/models`` of LM Studio.

    ``name``: only this model is wanted, wherever it stands in the list.
    """
    found = _entries(answer)
    if found is None:
        return Listed(problems=(f"{host} did not answer with a list of models.",))
    doubts, named = Doubts(), [(_name(each), each) for each in found]
    wanted = [(id, each) for id, each in named if id and (not name or id in {name, f"{name}:latest"})]
    facts = tuple(_listed(id, fields(each), doubts) for id, each in wanted[:MOST])
    problems = [f"{host}: {line}" for line in doubts.lines()]
    if nameless := sum(not id for id, _ in named):
        problems.append(f"{host} lists {nameless:,} models without a usable name. ba ignores them.")
    if len(wanted) > MOST:
        problems.append(
            f"{host} lists {len(wanted):,} models; ba shows the first {MOST:,}. Any other can be typed: /model NAME."
        )
    return Listed(facts, tuple(problems))


def single_model(answer: object, host: str, name: str) -> Listed:
    """``GET /v1/models/NAME``: one entry of the list by itself."""
    entry = fields(answer)
    return model_list({"data": [entry]} if _name(entry) else answer, host, name)


def llama_props(answer: object, host: str, name: str) -> Listed:
    """``GET /props`` of llama.cpp: the window of one slot, as it was started."""
    doubts, props = Doubts(), fields(answer)
    window = doubts.tokens(name, "window", fields(props.get("default_generation_settings")).get("n_ctx"))
    vision = switch(fields(props.get("modalities")).get("vision"))
    tools = switch(fields(props.get("chat_template_caps")).get("supports_tools"))
    return _one(ModelFacts(name, window, vision=vision, tools=tools), doubts, host)


def ollama_show(answer: object, host: str, name: str, loaded: object = None) -> Listed:
    """``POST /api/show`` of Ollama; ``loaded``: what ``GET /api/ps`` answered.

    The model may be able to read far more than the server gives it: the window is what it was loaded with, else
    ``num_ctx`` of its Modelfile. Without both, nobody knows it before the first request.
    """
    doubts, told = Doubts(), fields(answer)
    info = fields(told.get("model_info"))
    info = fields(told.get("model_info"))
    trained = next((info[key] for key in info if key.endswith(".context_length")), None)
    set_to = _parameter(text_of(told.get("parameters")), "num_ctx")
    running = fields(next((each for each in items(fields(loaded).get("models")) if _same(fields(each), name)), None))
    window = doubts.tokens(name, "window", running.get("context_length"), set_to)
    most = doubts.tokens(name, "window", trained)
    able = told.get("capabilities")
    facts = ModelFacts(
        name,
        min(window, most) if window and most else window,
        vision=within(able, "vision"),
        tools=within(able, "tools"),
        thinking=within(able, "thinking"),
    )
    return _one(facts, doubts, host)


def _one(facts: ModelFacts, doubts: Doubts, host: str) -> Listed:
    return Listed((facts,), tuple(f"{host}: {line}" for line in doubts.lines()))


def _listed(name: str, entry: dict[str, Any], doubts: Doubts) -> ModelFacts:
    """Every server names these otherwise; no two mean different things by one name.

    vLLM: ``max_model_len``. OpenRouter: ``context_length``, ``pricing`` (dollars for a token, as text),
    ``top_provider``, ``architecture``, ``supported_parameters``. Anthropic: ``max_input_tokens``, ``max_tokens``,
    ``capabilities`` by name. LM Studio: ``loaded_context_length``, ``max_context_length``, ``type``, ``capabilities``
    as a list. Mistral: ``max_context_length``, ``capabilities`` as switches. Groq: ``context_window``,
    ``max_completion_tokens``. Together: ``pricing`` (dollars for a million tokens, as numbers).
    """
    top, able = fields(entry.get("top_provider")), entry.get("capabilities")
    window = doubts.tokens(
        name,
        "window",
        entry.get("max_model_len"),
        entry.get("loaded_context_length"),
        top.get("context_length"),
        entry.get("context_length"),
        entry.get("max_context_length"),
        entry.get("context_window"),
        entry.get("max_input_tokens"),
    )
    output = doubts.tokens(
        name,
        "output limit",
        top.get("max_completion_tokens"),
        entry.get("max_completion_tokens"),
        entry.get("max_tokens"),
    )
    takes = entry.get("supported_parameters")
    seen = (
        within(fields(entry.get("architecture")).get("input_modalities"), *IMAGE),
        _able(able, "vision", "image_input"),
        True if entry.get("type") == "vlm" else None,
    )
    return ModelFacts(
        name,
        window,
        output,
        _prices(name, entry.get("pricing"), doubts),
        _first(*seen),
        _first(within(takes, *TOOLS), _able(able, *TOOLS, "function_calling")),
        _first(within(takes, *THINKING), _able(able, "effort", *THINKING)),
        within(takes, "temperature"),
        clean_text(text_of(entry.get("owned_by")))[:LONGEST_NAME],
    )


def _prices(name: str, told: object, doubts: Doubts) -> Any:
    pricing = fields(told)
    if "prompt" in pricing or "completion" in pricing:
        keys = ("prompt", "completion", "input_cache_read", "input_cache_write")
        return doubts.prices(name, [pricing.get(key) for key in keys], MILLION)
    keys = ("input", "output", "cached_input", "cache_write")
    return doubts.prices(name, [pricing.get(key) for key in keys], 1)


def _able(told: object, *names: str) -> bool | None:
    """Capabilities: a list of names, switches by name, or Anthropic's ``{"supported": …}`` by name."""
    if within(told, *names):
        return True
    by_name = fields(told)
    said = (by_name.get(name) for name in names)
    return _first(*(_first(switch(each), switch(fields(each).get("supported"))) for each in said))


def _first(*told: bool | None) -> bool | None:
    return next((each for each in told if each is not None), None)


def _entries(answer: object) -> list[Any] | None:
    """Together sends the list bare."""
    for found in (answer, fields(answer).get("data")):
        if isinstance(found, list):
            return items(cast("list[Any]", found))
    return None


def _name(entry: object) -> str:
    """Empty for a name that nobody could type or that a screen could not show."""
    name = text_of(fields(entry).get("id"))
    return name if 0 < len(name) <= LONGEST_NAME and name.isprintable() and not name.isspace() else ""


def _same(entry: dict[str, Any], name: str) -> bool:
    return text_of(entry.get("name")) in {name, f"{name}:latest"} or text_of(entry.get("model")) == name


def _parameter(lines: str, name: str) -> str | None:
    """Its value in a Modelfile's parameters, a line each."""
    pairs = (line.split(None, 1) for line in lines[:20_000].splitlines())
    return next((pair[1].strip().strip('"') for pair in pairs if len(pair) == 2 and pair[0] == name), None)
