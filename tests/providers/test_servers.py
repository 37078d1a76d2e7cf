"""Model servers: which ones are found, what is typed for one, keys that are checked; over real HTTP on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import AuthFailed, ProviderError, UsageError
from ba_tui.core.provider import Prices
from ba_tui.providers.access import ProviderAccess, ProviderSetup
from ba_tui.providers.catalog import load_catalog
from ba_tui.providers.http import http_client
from ba_tui.providers.servers import typed_address
from ba_tui.resources import bundled, places
from ba_tui.settings import load_settings
from tests.loopback import ModelServer, Raw
from tests.loopback.hostile import HostileServer, drip
from tests.loopback.replies import JSON

START = Callable[..., ModelServer]
USUAL = ("ollama", "lmstudio", "llamacpp", "vllm")
REFUSED = Raw(b'{"error": {"message": "Incorrect API key provided: sk-abc***xyz."}}', 401, JSON)


@pytest.fixture
def setup(tmp_path: Path, nobody: int) -> Callable[..., ProviderSetup]:
    """``setup(mine=URL)``: with the providers that the user named, and nobody at the usual ports but at ``usual``."""

    def make(usual: Mapping[str, str] | None = None, **named: str) -> ProviderSetup:
        asked = {**dict.fromkeys(USUAL, f"http://127.0.0.1:{nobody}/v1"), **(usual or {}), **named}
        flags = {f"providers.{name}.base_url": url for name, url in asked.items()}
        loaded = load_settings(flags, places(), tmp_path, {})
        bundled_ones = {f"providers.{name}.base_url": "bundled" for name in USUAL}
        loaded = replace(loaded, sources={**loaded.sources, **bundled_ones})
        return ProviderSetup(
            ProviderAccess(loaded, load_catalog([bundled("config") / "models.yaml"]), places()), places()
        )

    return make


def listing(*models: Mapping[str, Any], **raw: Any) -> Mapping[str, Raw]:
    return {"/v1/models": Raw(json.dumps({"object": "list", "data": models}).encode(), content_type=JSON, **raw)}


async def test_servers_on_the_usual_ports_are_found_with_their_models(
    setup: Callable[..., ProviderSetup], model_server: START
) -> None:
    one, two = model_server([], models=("qwen2.5-coder:7b", "llama3.2")), model_server([], models=())
    found = await setup({"ollama": one.openai_url, "vllm": two.openai_url}).servers()
    assert [(server.provider, server.title) for server in found] == [("ollama", "Ollama"), ("vllm", "vLLM")]
    assert [model.id for model in found[0].models] == ["ollama/qwen2.5-coder:7b", "ollama/llama3.2"]
    assert (found[0].base_url, found[0].troubles, found[1].models) == (one.openai_url, (), ())


async def test_a_proxy_of_the_environment_hides_no_server_on_this_machine(
    setup: Callable[..., ProviderSetup], model_server: START, nobody: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{nobody}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    (found,) = await setup({"ollama": model_server([]).openai_url}).servers()
    assert found.models


async def test_a_proxy_of_the_environment_does_not_get_a_conversation_with_this_machine(
    model_server: START, nobody: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{nobody}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    server = model_server([], pages=listing({"id": "m"}))
    client = http_client(5, server.openai_url)
    response = await client.get(f"{server.openai_url}/models")
    await client.aclose()
    assert response.is_success


async def test_nobody_on_the_usual_ports_is_no_trouble(setup: Callable[..., ProviderSetup]) -> None:
    assert await setup().servers() == []


async def test_what_the_server_tells_of_a_model_counts(
    setup: Callable[..., ProviderSetup], model_server: START
) -> None:
    told = {"id": "m", "context_length": 32_768, "pricing": {"prompt": "0.000001", "completion": "0.000002"}}
    server = model_server([], pages=listing(told))
    (found,) = await setup(mine=server.openai_url).servers()
    (model,) = found.models
    assert (model.id, model.window, model.known) == ("mine/m", 32_768, True)
    assert model.prices == Prices(1.0, 2.0, 1.0, 1.0)


async def test_one_address_under_two_names_is_asked_once(
    setup: Callable[..., ProviderSetup], model_server: START
) -> None:
    server = model_server([], pages=listing({"id": "m"}))
    found = await setup({"ollama": server.openai_url}, mine=server.openai_url).servers()
    assert [each.provider for each in found] == ["mine"]
    assert len(server.asked) == 1


BAD: Mapping[str, tuple[Mapping[str, Raw], str]] = {
    "a page": (
        {"/v1/models": Raw(b"<html><title>My router</title></html>", content_type="text/html")},
        "answered with a web page instead of a list of models",
    ),
    "nothing there": ({"/v1/models": Raw(b"{}", 404, JSON)}, "has no list of models at"),
    "a window of 0": (listing({"id": "m", "context_length": 0}), "invalid window"),
    "a price in words": (
        listing({"id": "m", "pricing": {"prompt": "cheap", "completion": "cheap"}}),
        "invalid price",
    ),
    "10,000 models": (listing(*({"id": f"m{number}"} for number in range(10_000))), "lists 10,000 models"),
    "a key is wanted": ({"/v1/models": REFUSED}, "wants an API key: type its address in /setup"),
    "no list": ({"/v1/models": Raw(b'{"data": "none"}', content_type=JSON)}, "did not answer with a list of models"),
    "depth": ({"/v1/models": Raw(b"[" * 100_000, content_type=JSON)}, "instead of a list of models"),
}


@pytest.mark.parametrize(("pages", "line"), BAD.values(), ids=BAD.keys())
async def test_a_server_that_misbehaves_is_told_in_one_line(
    setup: Callable[..., ProviderSetup], model_server: START, pages: Mapping[str, Raw], line: str
) -> None:
    (found,) = await setup(mine=model_server([], pages=pages).openai_url).servers()
    (told,) = found.troubles
    assert line in told
    assert "\n" not in told
    assert len(told) < 200


async def test_other_programs_on_a_usual_port_are_no_trouble(
    setup: Callable[..., ProviderSetup], model_server: START
) -> None:
    page = model_server([], pages={"/v1/models": Raw(b"<html>a web app</html>", content_type="text/html")})
    with HostileServer(drip(b"SSH-2.0-nothing\r\n", 0)) as other:
        assert await setup({"vllm": page.openai_url, "llamacpp": other.openai_url}).servers() == []


@pytest.mark.parametrize(
    ("text", "name", "urls"),
    [
        ("127.0.0.1:8081", "local-8081", ("http://127.0.0.1:8081/v1", "http://127.0.0.1:8081")),
        ("localhost:8081/v1/", "local-8081", ("http://localhost:8081/v1",)),
        ("http://[::1]:9/v1", "local-9", ("http://[::1]:9/v1",)),
        ("http://gpubox:8000", "gpubox", ("http://gpubox:8000/v1", "http://gpubox:8000")),
        ("gpubox.local:8000/v1", "gpubox", ("https://gpubox.local:8000/v1",)),
        ("https://openrouter.ai/api/v1", "openrouter", ("https://openrouter.ai/api/v1",)),
        ("https://api.groq.com/openai/v1/chat/completions", "groq", ("https://api.groq.com/openai/v1",)),
        ("http://10.0.0.5:8000/v1/models", "server-10-0-0-5", ("http://10.0.0.5:8000/v1",)),
        ("  big http://10.0.0.5:8000/v1 ", "big", ("http://10.0.0.5:8000/v1",)),
    ],
)
def test_an_address_may_be_typed_in_many_ways(text: str, name: str, urls: tuple[str, ...]) -> None:
    typed = typed_address(text)
    assert (typed.name, typed.urls) == (name, urls)


@pytest.mark.parametrize(
    "text", ["", "   ", "ftp://x/v1", "http://", "http://[::1", "http://x:99999", "http://x:0", "a b c", "x\x1b[2J:80",
             "http://x/v1?key=1", "http://me:secret@x/v1", "line\nbreak:80"],
)  # fmt: skip
def test_what_is_no_address_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        typed_address(text)
    assert "\n" not in refused.value.with_hint
    assert "secret" not in refused.value.with_hint


async def test_a_typed_server_is_found_kept_and_asked_afterwards(
    setup: Callable[..., ProviderSetup], model_server: START, tmp_path: Path
) -> None:
    server = model_server([], pages=listing({"id": "qwen", "context_length": 8_192}))
    way = setup()
    found = await way.find_server(f"127.0.0.1:{server.port}")
    assert (found.provider, found.base_url) == (f"local-{server.port}", server.openai_url)
    assert way.use_server(found, found.models[0].id) == f"local-{server.port}/qwen"
    later = load_settings({}, places(), tmp_path, {})
    assert later.settings.model == f"local-{server.port}/qwen"
    assert later.settings.providers[f"local-{server.port}"].base_url == server.openai_url


async def test_a_list_without_v1_is_found_too(setup: Callable[..., ProviderSetup], model_server: START) -> None:
    page = Raw(b'{"data": [{"id": "m"}]}', content_type=JSON)
    server = model_server([], pages={"/api/models": page, "/api/v1/models": Raw(b"<html>", 404, "text/html")})
    found = await setup().find_server(f"{server.url}/api")
    assert (found.base_url, [model.name for model in found.models]) == (f"{server.url}/api", ["m"])


async def test_a_known_address_keeps_its_name(setup: Callable[..., ProviderSetup], model_server: START) -> None:
    server = model_server([])
    found = await setup({"ollama": server.openai_url}).find_server(server.openai_url)
    assert (found.provider, found.title) == ("ollama", "Ollama")


async def test_two_servers_with_one_name_are_one_clear_line(
    setup: Callable[..., ProviderSetup], model_server: START
) -> None:
    server = model_server([])
    way = setup(big="http://10.0.0.5:8000/v1")
    with pytest.raises(UsageError) as refused:
        await way.find_server(f"big {server.openai_url}")
    assert str(refused.value) == "The name big is already used for http://10.0.0.5:8000/v1."
    assert refused.value.hint == f"Type another name before the address: big2 {server.openai_url}"
    with pytest.raises(UsageError, match="is already used for the vendor itself"):
        await way.find_server(f"openai {server.openai_url}")


async def test_a_server_that_wants_a_key_says_so_and_takes_it(
    setup: Callable[..., ProviderSetup], model_server: START
) -> None:
    closed, opened = model_server([], pages={"/v1/models": REFUSED}), model_server([], pages=listing({"id": "m"}))
    with pytest.raises(AuthFailed, match=f"127.0.0.1:{closed.port} wants an API key"):
        await setup().find_server(closed.openai_url)
    with pytest.raises(AuthFailed, match=f"127.0.0.1:{closed.port} refuses this key"):
        await setup().find_server(closed.openai_url, "sk-wrong")
    assert (await setup().find_server(opened.openai_url, " sk-right\n")).models
    assert opened.asked[0].headers["authorization"] == "Bearer sk-right"


async def test_nobody_at_a_typed_address_is_one_line(setup: Callable[..., ProviderSetup], nobody: int) -> None:
    with pytest.raises(ProviderError, match=f"Nothing answers at 127.0.0.1:{nobody}"):
        await setup().find_server(f"127.0.0.1:{nobody}")


async def test_a_key_is_checked_once_with_a_cheap_request(
    setup: Callable[..., ProviderSetup], model_server: START
) -> None:
    server = model_server([], pages=listing({"id": "m"}))
    assert await setup(mine=server.openai_url).check_key("mine", "sk-good\n") is None
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.headers["authorization"]) == ("GET", "/v1/models", "Bearer sk-good")


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_refused_is_told_and_not_shown(
    setup: Callable[..., ProviderSetup], model_server: START, status: int
) -> None:
    server = model_server([], pages={"/v1/models": Raw(REFUSED.body, status, JSON)})
    with pytest.raises(AuthFailed) as refused:
        await setup(mine=server.openai_url).check_key("mine", "sk-bad")
    assert refused.value.with_hint == f"127.0.0.1:{server.port} refuses this key. Paste another one."


@pytest.mark.parametrize("page", [Raw(b"{}", 404, JSON), Raw(b"{}", 429, JSON)], ids=["no list", "too many"])
async def test_a_key_that_was_read_is_not_refused(
    setup: Callable[..., ProviderSetup], model_server: START, page: Raw
) -> None:
    await setup(mine=model_server([], pages={"/v1/models": page}).openai_url).check_key("mine", "sk-good")


async def test_a_key_that_nobody_can_check_is_another_error(
    setup: Callable[..., ProviderSetup], model_server: START, nobody: int
) -> None:
    down = model_server([], pages={"/v1/models": Raw(b"{}", 503, JSON)})
    for url in (f"http://127.0.0.1:{nobody}/v1", down.openai_url):
        with pytest.raises(ProviderError) as failed:
            await setup(mine=url).check_key("mine", "sk-good")
        assert not isinstance(failed.value, AuthFailed)


async def test_a_key_with_a_line_break_is_sent_nowhere(
    setup: Callable[..., ProviderSetup], model_server: START
) -> None:
    server = model_server([])
    with pytest.raises(UsageError, match="The key contains a line break"):
        await setup(mine=server.openai_url).check_key("mine", "sk-one\nsk-two")
    assert server.requests == server.asked == []
