"""Asking servers over HTTP: the right addresses, the key, and one line for each way an answer can be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ba_tui.core.errors import AuthFailed, BadRequest, ConnectionLost, ModelNotFound, ProviderError, UsageError
from ba_tui.providers.credentials import BoundKey
from ba_tui.providers.model_facts import ModelFacts, ModelServer
from ba_tui.providers.servers import LARGEST, ask_facts, ask_models
from tests.loopback.replies import JSON, Raw
from tests.loopback.server import ModelServer as Loopback

Serve = Callable[..., Loopback]
KEY = "sk-test-1234567890"


def page(value: object, status: int = 200, content_type: str = JSON) -> Raw:
    return Raw(json.dumps(value).encode(), status, content_type)


def asked(server: Loopback, key: str | None = None) -> ModelServer:
    return ModelServer("openai", server.openai_url, BoundKey(key, server.openai_url) if key else None, "MY_KEY")


async def test_the_list_of_an_openai_server(model_server: Serve):
    server = model_server([], pages={"/v1/models": page({"data": [{"id": "m", "max_model_len": 9000}]})})
    found = await ask_models(asked(server, KEY))
    assert found.models == (ModelFacts("m", 9000),)
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


async def test_anthropics_own_list_and_one_model_of_it(model_server: Serve):
    entry = {"id": "claude-x", "type": "model", "max_input_tokens": 200_000, "max_tokens": 64_000}
    pages = {"/v1/models": page({"data": [entry]}), "/v1/models/claude-x": page(entry)}
    server = model_server([], pages=pages)
    whom = ModelServer("anthropic", server.url, BoundKey(KEY, server.url))
    told = ModelFacts("claude-x", 200_000, 64_000)
    assert (await ask_models(whom)).models == (told,)
    assert (await ask_facts(whom, "claude-x")).models == (told,)
    assert {seen.headers["x-api-key"] for seen in server.asked} == {KEY}
    assert all(seen.headers["anthropic-version"] for seen in server.asked)


async def test_llama_cpp_is_asked_for_its_props(model_server: Serve):
    pages = {
        "/v1/models": page({"data": [{"id": "qwen.gguf", "meta": {"n_ctx_train": 131072}}]}),
        "/props": page({"default_generation_settings": {"n_ctx": 8192}}),
    }
    found = await ask_facts(asked(model_server([], pages=pages)), "qwen.gguf")
    assert found.models == (ModelFacts("qwen.gguf", 8192),)


async def test_ollama_is_asked_to_show_the_model(model_server: Serve):
    shown = {"parameters": "num_ctx 4096", "model_info": {"x.context_length": 32768}, "capabilities": ["tools"]}
    pages = {
        "/v1/models": page({"data": [{"id": "llama3:latest", "owned_by": "library"}]}),
        "/api/show": page(shown),
        "/api/ps": page({"models": []}),
    }
    server = model_server([], pages=pages)
    (facts,) = (await ask_facts(asked(server), "llama3")).models
    assert (facts.name, facts.window, facts.vision) == ("llama3", 4096, False)
    shows = [seen for seen in server.asked if seen.path == "/api/show"]
    assert shows[0].json == {"model": "llama3"}


async def test_lm_studio_is_asked_for_its_own_list(model_server: Serve):
    pages = {
        "/v1/models": page({"data": [{"id": "qwen3"}]}),
        "/api/v0/models": page({"data": [{"id": "qwen3", "type": "llm", "max_context_length": 40960}]}),
    }
    found = await ask_facts(asked(model_server([], pages=pages)), "qwen3")
    assert found.models[0].window == 40960


async def test_a_server_that_knows_nothing_more_is_no_error(model_server: Serve):
    server = model_server([], models=("plain",))
    assert (await ask_facts(asked(server), "plain")).models == (ModelFacts("plain"),)
    assert (await ask_facts(asked(server), "other")).models == ()


async def failure(server: Loopback, kind: type[Exception] = BadRequest) -> str:
    with pytest.raises(kind) as caught:
        await ask_models(asked(server, KEY))
    said = str(caught.value)
    assert "\n" not in said
    assert KEY not in said
    return said


async def test_a_web_page_instead_of_a_list(model_server: Serve):
    html = Raw(b"<!doctype html><title>Router</title><p>Welcome", content_type="text/html")
    assert "a web page" in await failure(model_server([], pages={"/v1/models": html}))


@pytest.mark.parametrize("body", [b"", b"{", b'{"data": [NaN]}', b"[" * 5000, b"\xff\xfe", b'"text"', b'{"data": 3}'])
async def test_what_is_no_list(model_server: Serve, body: bytes):
    await failure(model_server([], pages={"/v1/models": Raw(body, content_type=JSON)}))


async def test_an_answer_without_end_is_not_read_on(model_server: Serve):
    endless = Raw(b'{"data": [' + b" " * (LARGEST + 10), content_type=JSON)
    assert "8 MB" in await failure(model_server([], pages={"/v1/models": endless}))


async def test_a_redirect_is_not_followed(model_server: Serve):
    away = Raw(b"", 302, JSON, {"location": "http://127.0.0.1:9/v1/models"})
    assert "redirects" in await failure(model_server([], pages={"/v1/models": away}))


async def test_a_refused_key_and_a_missing_list(model_server: Serve):
    error = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
    await failure(model_server([], pages={"/v1/models": page(error, 401)}), AuthFailed)
    said = await failure(model_server([], pages={"/v1/models": page(error, 404)}), ModelNotFound)
    assert "no list of models" in said


async def test_a_model_that_anthropic_does_not_know(model_server: Serve):
    assert (
        await ask_facts(ModelServer("anthropic", (url := model_server([]).url), BoundKey(KEY, url)), "claude-x")
    ).models == ()


async def test_nobody_answers(model_server: Serve):
    with Loopback([]) as server:
        gone = asked(server)
    with pytest.raises(ConnectionLost):
        await ask_models(gone)
    with pytest.raises(UsageError):
        await ask_models(ModelServer("openai", "localhost:1234"))


async def test_a_silent_server_is_left(model_server: Serve):
    import threading

    from tests.loopback.replies import Pace

    never = threading.Event()
    server = model_server([], pages={"/v1/models": Raw(b'{"data": []}', content_type=JSON, pace=Pace(hold=never))})
    with pytest.raises(ProviderError, match="in time"):
        await ask_models(asked(server), timeout=0.2)
    never.set()


async def test_a_key_with_a_line_break_is_refused_before_anything_is_sent(model_server: Serve):
    server = model_server([], pages={"/v1/models": page({"data": []})})
    with pytest.raises(AuthFailed):
        await ask_models(asked(server, "sk-one\nsk-two"))
    assert server.asked == []


def test_addresses():
    assert ModelServer("anthropic").models.startswith("https://api.anthropic.com/v1/models")
    assert ModelServer("openai").models == "https://api.openai.com/v1/models"
    assert not ModelServer("openai").tells
    local = ModelServer("openai", "http://127.0.0.1:11434/v1/")
    assert (local.models, local.root, local.own) == (
        "http://127.0.0.1:11434/v1/models",
        "http://127.0.0.1:11434",
        True,
    )
    assert "sk" not in repr(ModelServer("openai", "http://h/v1", BoundKey("sk-secret", "http://h/v1")))
