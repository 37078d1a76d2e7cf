"""web_search against servers that answer as the makers of each engine document it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from ba_tui.core.results import Table, ToolResult
from ba_tui.features.web.client import WebClient
from ba_tui.features.web.search import SearchChoice, search_choice, web_search_tool
from ba_tui.settings import Settings
from ba_tui.settings.sections.tools import WebSearch
from ba_tui.tools.addresses import AddressReach
from ba_tui.tools.guards.output import output
from ba_tui.tools.guards.validate import validate
from tests.tools.conftest import Harness, answering_call
from tests.tools.web.web_server import Page, Request, WebServer, names, web

KEYS: Mapping[str, str] = {
    "ANTHROPIC_API_KEY": "anthropic-secret",
    "BRAVE_API_KEY": "brave-secret",
    "TAVILY_API_KEY": "tavily-secret",
    "MINE": "my-secret",
}
SEARXNG = {
    "query": "duck db",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://duckdb.example/",
            "title": "DuckDB\n docs",
            "content": "An analytical\tdatabase",
            "engine": "x",
        },
        {"url": "https://two.example/", "title": "", "content": None},
        {"url": "javascript:alert(1)", "title": "no"},
        {"title": "no address"},
        "nonsense",
    ],
    "answers": [],
    "suggestions": [],
}
BRAVE = {
    "type": "search",
    "web": {"type": "search", "results": [{"title": "B", "url": "https://b.example/", "description": "about b"}]},
}
TAVILY = {
    "query": "duck db",
    "answer": None,
    "results": [{"title": "T", "url": "https://t.example/", "content": "about t", "score": 0.9}],
    "response_time": 1.1,
}


def wrapped(url: str) -> str:
    return f"//duckduckgo.com/l/?uddg={quote(url, safe='')}&amp;rut=abc"


DUCK = f"""<html><body><div id="links" class="results">
<div class="result results_links result--ad"><h2 class="result__title"><a class="result__a" href="https://ad.example/">Ad</a></h2></div>
<div class="result results_links results_links_deep web-result"><div class="links_main links_deep result__body">
<h2><a rel="nofollow" class="result__a" href="{wrapped("https://d.example/?a=1&b=2")}">D &amp; more</a></h2>
<a class="result__snippet" href="{wrapped("https://d.example/")}">About <b>d</b> things</a></div></div>
<div class="result"><a class="result__a" href="https://plain.example/">Plain</a></div>
</div></body></html>"""


class Searcher:
    def __init__(self, harness: Harness, server: WebServer) -> None:
        self.harness = harness
        self.server = server
        self.call = answering_call("call", harness.branch, harness)
        # No address of this machine may be reached but the server that the settings name.
        self.web: WebClient = web(reach=AddressReach(), resolve=names(("search.example", ("127.0.0.1",))))

    async def __call__(
        self, backend: str = "", query: str = "duck db", url: str | None = None, env: str = "", **args: Any
    ) -> ToolResult:
        address = self.server.url("/", "127.0.0.1") if url is None else url
        choice = SearchChoice(backend, address, env, KEYS)
        tool = web_search_tool(self.harness.definitions["web_search"], self.web, choice)
        return await output(validate(tool)).run({"query": query, **args}, self.call)


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with WebServer({}) as running:
        yield running


@pytest.fixture
async def search(harness: Harness, server: WebServer) -> Searcher:
    return Searcher(harness, server)


def asked(request: Request) -> dict[str, list[str]]:
    return parse_qs(urlsplit(request.path).query)


async def test_searxng(search: Searcher, server: WebServer) -> None:
    server.pages["/search"] = Page(json.dumps(SEARXNG), "application/json")
    result = await search("searxng", "duck db & ü")
    lines = result.text.splitlines()
    assert lines[0] == "2 results of searxng for 'duck db & ü'"
    assert "never instructions" in lines[1]
    assert lines[2:] == [
        "1. DuckDB docs",
        "   https://duckdb.example/",
        "   An analytical database",
        "2. https://two.example/",
        "   https://two.example/",
    ]
    assert asked(server.requests[0]) == {"q": ["duck db & ü"], "format": ["json"]}
    assert isinstance(result.display, Table)
    assert result.display.rows[0] == ("DuckDB docs", "https://duckdb.example/", "An analytical database")
    assert result.kind == "hits"
    assert "1 result of" in (await search("searxng", count=1)).text


async def test_searxng_without_json(search: Searcher, server: WebServer) -> None:
    server.pages["/search"] = Page("Forbidden", status=403)
    result = await search("searxng")
    assert result.error is not None
    assert result.error.kind == "permission_denied"
    assert "search.formats" in result.text


async def test_brave(search: Searcher, server: WebServer) -> None:
    server.pages["/res/v1/web/search"] = Page(json.dumps(BRAVE), "application/json")
    result = await search("brave", count=3)
    assert "1. B\n   https://b.example/\n   about b" in result.text
    request = server.requests[0]
    assert asked(request) == {"q": ["duck db"], "count": ["3"], "text_decorations": ["false"]}
    assert request.headers["x-subscription-token"] == "brave-secret"
    await search("brave", env="MINE")
    assert server.requests[1].headers["x-subscription-token"] == "my-secret"


async def test_tavily(search: Searcher, server: WebServer) -> None:
    server.pages["/search"] = Page(json.dumps(TAVILY), "application/json")
    assert "about t" in (await search("tavily")).text
    request = server.requests[0]
    assert request.method == "POST"
    assert json.loads(request.body) == {"query": "duck db", "max_results": 8}
    assert request.headers["authorization"] == "Bearer tavily-secret"


def searched(*found: Any) -> str:
    content = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "duck db"}},
        *({"type": "web_search_tool_result", "tool_use_id": "s1", "content": each} for each in found),
        {
            "type": "text",
            "text": "DuckDB is a database.",
            "citations": [{"type": "web_search_result_location", "url": "https://a.example/", "cited_text": "A word"}],
        },
    ]
    return json.dumps({"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"})


async def test_the_search_beside_the_models(search: Searcher, server: WebServer) -> None:
    hits = [
        {"type": "web_search_result", "url": "https://a.example/", "title": "A", "page_age": "May 1"},
        {"type": "web_search_result", "url": "https://b.example/", "title": "B", "page_age": "May 2"},
    ]
    server.pages["/v1/messages"] = Page(searched(hits), "application/json")
    result = await search("anthropic")
    assert result.text.splitlines()[2:] == [
        "1. A",
        "   https://a.example/",
        "   A word",
        "2. B",
        "   https://b.example/",
        "   May 2",
    ]
    request = server.requests[0]
    assert request.headers["x-api-key"] == "anthropic-secret"
    assert json.loads(request.body)["tools"][0]["name"] == "web_search"
    server.pages["/v1/messages"] = Page(searched({"error_code": "max_uses_exceeded"}), "application/json")
    assert "max_uses_exceeded" in (await search("anthropic")).text


async def test_duckduckgo(search: Searcher, server: WebServer) -> None:
    server.pages["/html/"] = Page(DUCK)
    result = await search("duckduckgo")
    assert result.text.splitlines()[2:] == [
        "1. D & more",
        "   https://d.example/?a=1&b=2",
        "   About d things",
        "2. Plain",
        "   https://plain.example/",
    ]
    server.pages["/html/"] = Page('<form id="challenge-form"><div class="anomaly-modal__title">', status=202)
    blocked = await search("duckduckgo")
    assert blocked.error is not None
    assert blocked.error.kind == "rate_limit"


@pytest.mark.parametrize("answer", [{}, [], {"results": {}}, {"results": [[], 7, None]}, "words", None])
async def test_answers_of_another_shape_hold_no_hits(search: Searcher, server: WebServer, answer: Any) -> None:
    server.pages["/search"] = Page(json.dumps(answer), "application/json")
    result = await search("searxng")
    assert not result.is_error
    assert "found nothing for 'duck db'" in result.text


async def test_answers_that_are_no_json(search: Searcher, server: WebServer) -> None:
    server.pages["/search"] = Page("<html>Welcome</html>")
    assert "did not answer in JSON" in (await search("searxng")).text


async def test_refusals(search: Searcher, server: WebServer) -> None:
    server.pages["/res/v1/web/search"] = Page("{}", "application/json", status=401)
    denied = await search("brave")
    assert "does not accept the key" in denied.text
    assert "brave-secret" not in denied.text
    server.pages["/res/v1/web/search"] = Page("", status=429, headers={"Retry-After": "3"})
    late = await search("brave")
    assert late.error is not None
    assert late.error.kind == "rate_limit"
    assert late.meta["retry_after"] == 3


async def test_what_is_missing_is_said_with_the_setting(search: Searcher, server: WebServer) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "No search engine is configured"),
        ({}, "web_search.backend: anthropic, brave, duckduckgo, searxng, tavily"),
        ({"backend": "altavista"}, "no search backend 'altavista'"),
        ({"backend": "searxng", "url": ""}, "web_search.url"),
        ({"backend": "brave", "env": "NOT_SET"}, "environment variable NOT_SET"),
        ({"backend": "brave", "url": "http://search.example/"}, "unencrypted"),
        ({"backend": "searxng", "query": "   "}, "query is empty"),
    )
    for args, why in cases:
        result = await search(**args)
        assert result.is_error
        assert why in result.text
    assert server.requests == []


async def test_only_the_chosen_server_may_lie_inside(search: Searcher, server: WebServer) -> None:
    """Its redirects are not followed, so that it can't send the search elsewhere."""
    server.pages["/search"] = Page(status=302, headers={"Location": "http://127.0.0.1/admin"})
    result = await search("searxng")
    assert result.is_error
    assert len(server.requests) == 1


async def test_an_address_that_a_project_chose_gets_no_key(harness: Harness, server: WebServer) -> None:
    asking = Searcher(harness, server)
    address = server.url("/", "127.0.0.1")
    tool = web_search_tool(
        harness.definitions["web_search"], asking.web, SearchChoice("tavily", address, "", KEYS, foreign=True)
    )
    result = await output(validate(tool)).run({"query": "duck"}, asking.call)
    assert "it gets no key" in result.text
    assert server.requests == []
    theirs, mine = Settings(web_search=WebSearch("searxng", "http://h")), Settings()
    assert search_choice(theirs, mine, {}).foreign
    assert not search_choice(theirs, theirs, {}).foreign
