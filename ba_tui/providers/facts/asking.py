"""Asking a model server which models it has and what it knows of them: bounded reads, time-outs, no redirects.

How an answer is read is in ``reading``; errors are those of ``providers.faults``, one line each.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, cast
from urllib.parse import quote

import httpx2

from ba_tui.core.errors import BadRequest, ModelNotFound, ProviderError
from ba_tui.core.messages import clean_text
from ba_tui.providers.facts.servers import ModelServer
from ba_tui.providers.facts.values import MILLION, Doubts, Listed, ModelFacts, merged, switch, within
from ba_tui.providers.faults import check_url, from_network, from_response, is_loopback
from ba_tui.providers.wire.shapes import decode, fields, items, text_of

# Answers of model servers as facts, by the field names of the vendors' documentation. No function here raises.

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


TIMEOUT = 10.0
"""Seconds for all that is asked of one server."""
MB = 2**20
LARGEST = 8 * MB
"""Bytes of one answer, decompressed. The longest list known has 2 MB."""
NOT_FOUND = 404
CURE = "Check base_url: it must be the address of the API, not of a web page."


async def ask_models(server: ModelServer, timeout: float = TIMEOUT) -> Listed:
    """All models that ``server`` lists, with what it tells of them there.

    Raises:
        ProviderError: nobody answers in ``timeout`` seconds, or what comes is no list. UsageError: a wrong address.
    """
    async with _questions(server, timeout) as questions:
        found = model_list(await questions.get(server.models), server.host)
    if not found.models and found.problems:
        raise BadRequest(found.problems[0], CURE)
    return found


async def ask_facts(server: ModelServer, name: str, timeout: float = TIMEOUT) -> Listed:
    """All that ``server`` tells of the model ``name``; no model where it tells nothing.

    Servers of one's own are asked in their own dialects as well: how large a window they were started with.

    Raises:
        ProviderError: nobody answers in ``timeout`` seconds, or what comes is no JSON. UsageError: a wrong address.
    """
    async with _questions(server, timeout) as questions:
        if server.kind == "anthropic":
            try:
                entry = await questions.get(f"{server.base}/models/{quote(name, safe='')}")
            except ModelNotFound:
                return Listed()
            return single_model(entry, server.host, name)
        found = model_list(await questions.get(server.models), server.host, name)
        told = found.find(name)
        if not server.own or (told and told.window):
            return found
        more = await questions.own(name)
    known = [each for listed in (found, *more) if (each := listed.find(name))]
    problems = tuple(line for listed in (found, *more) for line in listed.problems)
    return Listed((merged(ModelFacts(name), *known),) if known else (), problems)


@contextlib.asynccontextmanager
async def _questions(server: ModelServer, timeout: float) -> AsyncGenerator[_Questions]:
    check_url(server.base)
    headers = server.headers()

    def client() -> httpx2.AsyncClient:
        # No certificates are read for an address without TLS: nobody leads on from there.
        # No proxy leads to this machine, whatever the environment says.
        proxied = not is_loopback(server.base)
        return httpx2.AsyncClient(
            follow_redirects=False, timeout=timeout, verify=not server.own, headers=headers, trust_env=proxied
        )

    try:
        # Reading the certificates takes longer than the event loop may be held up.
        async with asyncio.timeout(timeout), await asyncio.to_thread(client) as made:
            yield _Questions(server, made)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise from_network(server.service(), error) from error


class _Questions:
    def __init__(self, server: ModelServer, client: httpx2.AsyncClient) -> None:
        self._server = server
        self._client = client

    async def get(self, url: str) -> Any:
        """Decoded JSON. Raises ProviderError, httpx2.HTTPError."""
        return await self._ask("GET", url)

    async def own(self, name: str) -> list[Listed]:
        """What llama.cpp, Ollama and LM Studio tell at addresses of their own; the others answer with an error."""
        root, host = self._server.root, self._server.host
        show, running, props, listed = await asyncio.gather(
            _or_nothing(self._ask("POST", f"{root}/api/show", {"model": name})),
            _or_nothing(self.get(f"{root}/api/ps")),
            _or_nothing(self.get(f"{root}/props")),
            _or_nothing(self.get(f"{root}/api/v0/models")),
        )
        return [
            *([model_list(listed, host, name)] if listed is not None else ()),
            *([ollama_show(show, host, name, running)] if show is not None else ()),
            *([llama_props(props, host, name)] if props is not None else ()),
        ]

    async def _ask(self, method: str, url: str, body: object = None) -> Any:
        async with self._client.stream(method, url, json=body) as response:
            data = await self._read(response)
            service = self._server.service()
            if response.status_code == NOT_FOUND:
                raise ModelNotFound(f"{service.host} has no list of models.", CURE)
            if not response.is_success:
                raise from_response(service, response.status_code, response.headers, data)
        try:
            return await asyncio.to_thread(decode, data)
        except ValueError as error:
            page = data.lstrip()[:1] == b"<"
            what = "a web page" if page else "something that is not JSON"
            raise BadRequest(f"{self._server.host} answered with {what} instead of a list of models.", CURE) from error

    async def _read(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async with contextlib.aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > LARGEST:
                    what = f"{self._server.host} sent more than {LARGEST // MB} MB as a list of models."
                    raise BadRequest(what, CURE)
        return bytes(body)


async def _or_nothing(question: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await question
    except (ProviderError, httpx2.HTTPError):
        return None
