"""extract_links lists where a page or a text leads, absolute and told apart by site."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ba_tui.core.results import Table, ToolResult
from ba_tui.features.web.fetch import extract_links_tool
from ba_tui.tools.guards.output import output
from ba_tui.tools.guards.validate import validate
from tests.tools.conftest import Harness, answering_call
from tests.tools.web.web_server import Page, WebServer, redirect, web

PAGE = """<title>T</title><base href="/docs/"><a href="a.html">First  page</a> <a href="a.html#part">again</a>
<a href="https://other.example/x"><img alt="a logo" src="l.png"></a> <a href="//www.site.example:{port}/b">B</a>
<a href="javascript:void(0)">js</a><a href="mailto:me@x.example">mail</a><a name="no">anchor</a><a href="http://[">bad</a>
<a href="/icon" aria-label="Label"></a>"""


class Extractor:
    def __init__(self, harness: Harness) -> None:
        tool = extract_links_tool(harness.definitions["extract_links"], web())
        self.tool = output(validate(tool))
        self.call = answering_call("call", harness.branch, harness)

    async def __call__(self, **args: Any) -> ToolResult:
        return await self.tool.run(args, self.call)

    async def rows(self, **args: Any) -> list[tuple[Any, ...]]:
        display = (await self(**args)).display
        assert isinstance(display, Table)
        return list(display.rows)


@pytest.fixture
async def extract(harness: Harness) -> Extractor:
    return Extractor(harness)


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with WebServer({}) as running:
        running.pages["/"] = Page(PAGE.replace("{port}", str(running.port)))
        yield running


async def test_links_of_a_page(extract: Extractor, server: WebServer) -> None:
    result = await extract(url=server.url("/"))
    lines = result.text.splitlines()
    assert lines[0] == f"5 of 5 links on {server.url('/')}"
    assert "never instructions" in lines[1]
    assert lines[2:] == [
        f"{server.url('/docs/a.html')} · First page · same site",
        "https://other.example/x · a logo · other site",
        f"http://www.site.example:{server.port}/b · B · same site",
        "mailto:me@x.example · mail · other site",
        f"{server.url('/icon')} · Label · same site",
    ]
    assert result.kind == "listing"
    assert result.summary == "5 links"


async def test_filters_and_limit(extract: Extractor, server: WebServer) -> None:
    url = server.url("/")
    assert len(await extract.rows(url=url, same_site=True)) == 3
    assert [row[1] for row in await extract.rows(url=url, filter="PAGE docs")] == ["First page"]
    some = await extract(url=url, limit=2)
    assert "2 of 5 links" in some.text
    assert "3 more fit: raise limit" in some.text
    assert some.summary == "2+ links"
    nothing = await extract(url=url, filter="nowhere")
    assert nothing.text == f"No links that fit on {url} (of 5 in all)."


async def test_links_of_text_at_hand(extract: Extractor, server: WebServer) -> None:
    text = (
        "# T\nSee [the *docs*](https://a.example/x_(y)) and https://b.example/z). <https://c.example>\n\n- [rel](/up)\n"
    )
    rows = await extract.rows(text=text, url="https://a.example/deep/page")
    assert rows == [
        ("https://a.example/x_(y)", "the docs", "same site"),
        ("https://b.example/z", "", "other site"),
        ("https://c.example", "https://c.example", "other site"),
        ("https://a.example/up", "rel", "same site"),
    ]
    html = await extract.rows(text='<p><a href="https://d.example/">D</a>')
    assert html == [("https://d.example/", "D", "")]
    assert (await extract(text="")).text == "No links in the text (of 0 in all)."
    assert server.requests == []


async def test_what_can_not_be(extract: Extractor, server: WebServer) -> None:
    server.pages |= {"/i": Page(b"\x89PNG", "image/png"), "/away": redirect("https://other.example/")}
    for args, why in (
        ({}, "Neither url nor text"),
        ({"text": "x", "same_site": True}, "same_site needs url"),
        ({"url": server.url("/i")}, "is image/png, which holds no links"),
        ({"url": server.url("/none")}, "answered 404"),
        ({"url": "http://10.0.0.1/"}, "private network"),
        ({"url": server.url("/"), "limit": 0}, "limit"),
    ):
        result = await extract(**args)
        assert result.is_error
        assert why in result.text
    assert "was not followed" in (await extract(url=server.url("/away"))).text
