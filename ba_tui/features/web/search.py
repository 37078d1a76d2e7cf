"""The tool web_search and its search engines. Without an engine in the settings, it explains how to set one."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast
from urllib.parse import urlencode

from ba_tui.core.results import Table, ToolResult
from ba_tui.core.text.wording import count
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.features.web.client import (
    FOREIGN,
    WebClient,
    WebReply,
    WebRequest,
    decoded,
    read_page,
    refusal_of,
    with_retry_after,
)
from ba_tui.processes.terminal_text import unescaped
from ba_tui.settings import Settings
from ba_tui.tools.addresses import WebAddress, read_address
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failures import ToolFailure

ANTHROPIC_MODEL = "claude-haiku-4-5"


@frozen
class WebHit:
    title: str
    url: str
    snippet: str = ""


@frozen
class SearchService:
    """The address, client and key of an engine. ``key``: empty if the engine needs none."""

    web: WebClient
    url: str
    key: str = ""

    async def json(self, request: WebRequest) -> Any:
        reply = await self.ask(request)
        try:
            return json.loads(decoded(reply))
        except (ValueError, RecursionError) as error:
            hint = "Tell the user to check web_search.url: it should be the search service itself."
            raise ToolFailure("execution_error", f"{reply.address.place} did not answer in JSON.", hint) from error

    async def ask(self, request: WebRequest) -> WebReply:
        """Return the reply to ``request``. The user chose the host, so a private address is allowed."""
        reply = await self.web.with_host(request.address.host).answer(request)
        if reply.status == 401 or (reply.status == 403 and self.key):
            message = f"{reply.address.place} does not accept the key."
            raise ToolFailure("permission_denied", message, "Tell the user to check the key of web_search.")
        if reply.status >= 300:
            raise await refusal_of(reply)
        return reply

    def address(self, path: str, **query: str) -> WebAddress:
        text = f"{self.url.rstrip('/')}{path}"
        return read_address(f"{text}?{urlencode(query, errors='replace')}" if query else text)


async def _searxng(service: SearchService, query: str, count: int) -> Sequence[WebHit]:
    """Ask a SearXNG server, whose settings must allow the format ``json``."""
    try:
        answer = await service.json(WebRequest(service.address("/search", q=query, format="json"), headers=_JSON))
    except ToolFailure as error:
        if error.kind == "permission_denied":
            hint = "Tell the user: the server must list json under search.formats in its settings.yml."
            raise ToolFailure("permission_denied", f"{error}", hint) from error
        raise
    return _hits(_list(answer, "results"), "content", count)


async def _brave(service: SearchService, query: str, count: int) -> Sequence[WebHit]:
    address = service.address("/res/v1/web/search", q=query[:400], count=str(count), text_decorations="false")
    headers = {**_JSON, "X-Subscription-Token": service.key}
    answer = await service.json(WebRequest(address, headers=headers))
    return _hits(_list(_part(answer, "web"), "results"), "description", count)


async def _tavily(service: SearchService, query: str, count: int) -> Sequence[WebHit]:
    headers = {**_JSON, "Content-Type": "application/json", "Authorization": f"Bearer {service.key}"}
    body = json.dumps({"query": query, "max_results": count}).encode()
    answer = await service.json(WebRequest(service.address("/search"), "POST", headers, body))
    return _hits(_list(answer, "results"), "content", count)


async def _anthropic(service: SearchService, query: str, count: int) -> Sequence[WebHit]:
    """Ask Anthropic's search tool: a small model must search once, and its hits are returned."""
    body = {
        "model": ANTHROPIC_MODEL,
        "max_tokens": 1_024,
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}],
        "messages": [{"role": "user", "content": f"Search the web once and cite what you find: {query}"}],
    }
    headers = {**_JSON, "Content-Type": "application/json", "anthropic-version": "2023-06-01"}
    headers["x-api-key"] = service.key
    request = WebRequest(service.address("/v1/messages"), "POST", headers, json.dumps(body).encode())
    blocks = _list(await service.json(request), "content")
    notes = [note for block in blocks for note in _list(block, "citations")]
    cited = {str(_part(note, "url")): _words(_part(note, "cited_text")) for note in notes}
    found = [block for block in blocks if _part(block, "type") == "web_search_tool_result"]
    for block in found:
        if code := _part(_part(block, "content"), "error_code"):
            raise ToolFailure("execution_error", f"The search of Anthropic failed: {_words(code)[:80]}.")
    hits = _hits([item for block in found for item in _list(block, "content")], "page_age", count)
    return [replace(hit, snippet=cited.get(hit.url, hit.snippet)) for hit in hits]


async def _duckduckgo(service: SearchService, query: str, count: int) -> Sequence[WebHit]:
    """Read DuckDuckGo's page for browsers without scripts. It needs no key, but sometimes shows a CAPTCHA."""
    reply = await service.ask(WebRequest(service.address("/html/", q=query)))
    read = await read_page("results", decoded(reply), str(reply.address))
    if read["blocked"] or (reply.status == 202 and not read["hits"]):
        hint = "Wait, or tell the user that another web_search.backend is more dependable."
        raise ToolFailure("rate_limit", "DuckDuckGo wants to see that a human searches.", hint)
    return _hits(read["hits"], "snippet", count)


@frozen
class Engine:
    """A search engine. ``search`` returns the first hits, or raises ToolFailure if the answer is invalid. ``url`` and
    ``key_env``: defaults; if empty, the settings must give a value."""

    search: Callable[[SearchService, str, int], Awaitable[Sequence[WebHit]]]
    url: str = ""
    key_env: str = ""


ENGINES: Mapping[str, Engine] = {
    "searxng": Engine(_searxng),
    "anthropic": Engine(_anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "brave": Engine(_brave, "https://api.search.brave.com", "BRAVE_API_KEY"),
    "duckduckgo": Engine(_duckduckgo, "https://html.duckduckgo.com"),
    "tavily": Engine(_tavily, "https://api.tavily.com", "TAVILY_API_KEY"),
}

_JSON = {"Accept": "application/json"}


def _hits(items: Sequence[Any], snippet: str, count: int) -> list[WebHit]:
    """Return the hits in unchecked ``items``; those without a web address are left out."""
    found: list[WebHit] = []
    for item in items:
        url = str(_part(item, "url") or "")
        if url.startswith(("https://", "http://")):
            found.append(WebHit(_words(_part(item, "title")) or url, url, _words(_part(item, snippet))))
    return found[:count]


def _words(value: Any) -> str:
    return " ".join(str(value or "").split())


def _part(value: Any, name: str) -> Any:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None


def _list(value: Any, name: str) -> list[Any]:
    part = _part(value, name)
    return cast("list[Any]", part) if isinstance(part, list) else []


DEFAULT_COUNT = 8
SNIPPET_CHARS = 400


@frozen
class SearchChoice:
    """The search engine in the settings: ``backend``, ``url`` and the variable of its key; empty if not set."""

    backend: str = ""
    url: str = ""
    api_key_env: str = ""
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The environment with the key."""
    foreign: bool = False
    """The ``url`` is from a project's settings, so the user's key is not sent to it."""


def search_choice(settings: Settings, own: Settings, env: Mapping[str, str]) -> SearchChoice:
    """Return the search engine in ``settings``. ``own``: the settings without the project's files."""
    chosen = settings.web_search
    foreign = bool(chosen.url) and chosen.url != own.web_search.url
    return SearchChoice(chosen.backend, chosen.url, chosen.api_key_env, env, foreign=foreign)


def web_search_tool(definition: Definition, web: WebClient, choice: SearchChoice) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        query = " ".join(str(args["query"]).split())
        if not query:
            raise ToolFailure("invalid_parameters", "The query is empty.", "Say what to search for.")
        engine, service = _chosen(web, choice)
        hits = await engine.search(service, query, int(args.get("count", DEFAULT_COUNT)))
        return _listed(query, choice.backend, hits)

    return definition.tool(with_retry_after(run))


def _chosen(web: WebClient, choice: SearchChoice) -> tuple[Engine, SearchService]:
    """Return the engine of ``choice``. Raises ToolFailure, which names the setting that is missing."""
    names = ", ".join(sorted(ENGINES))
    if not choice.backend:
        hint = f"Tell the user to set web_search.backend: {names} (see ba guide web). Meanwhile use web_fetch."
        raise ToolFailure("dependency_error", "No search engine is configured.", hint)
    engine = ENGINES.get(choice.backend)
    if engine is None:
        raise ToolFailure("dependency_error", f"There is no search backend {choice.backend!r}.", f"Known: {names}.")
    url = choice.url or engine.url
    if not url:
        hint = f"Tell the user to set web_search.url to the address of their {choice.backend} server."
        raise ToolFailure("dependency_error", f"{choice.backend} needs an address.", hint)
    name = choice.api_key_env or engine.key_env
    if name and choice.foreign:
        hint = "Tell the user to set web_search.url in their own settings: ba config edit."
        raise ToolFailure(
            "dependency_error", f"This project chose the address of {choice.backend}: it gets no key.", hint
        )
    key = choice.environment.get(name, "").strip() if name else ""
    if name and not key:
        hint = f"Tell the user to put it into the environment variable {name}."
        raise ToolFailure("dependency_error", f"{choice.backend} needs a key, and {name} is not set.", hint)
    if key and not _confidential(url):
        raise ToolFailure(
            "dependency_error", "The key would go out unencrypted.", "web_search.url must begin with https."
        )
    return engine, SearchService(web, url, key)


def _confidential(url: str) -> bool:
    address = read_address(url)
    return address.scheme == "https" or address.host == "localhost" or bool(address.ip and address.ip.is_loopback)


def _listed(query: str, backend: str, hits: Sequence[WebHit]) -> ToolResult:
    if not hits:
        return ToolResult(f"{backend} found nothing for {query!r}. Try other or fewer words.", summary="no results")
    blocks = [
        f"{number}. {hit.title}\n   {hit.url}" + (f"\n   {hit.snippet[:SNIPPET_CHARS]}" if hit.snippet else "")
        for number, hit in enumerate(hits, start=1)
    ]
    rows = tuple((unescaped(hit.title), hit.url, unescaped(hit.snippet[:SNIPPET_CHARS])) for hit in hits)
    summary = count(len(hits), "result")
    return ToolResult(
        "\n".join([f"{summary} of {backend} for {query!r}", FOREIGN, *blocks]),
        Table(("Title", "Address", "Snippet"), rows),
        summary=summary,
        kind="hits",
    )
