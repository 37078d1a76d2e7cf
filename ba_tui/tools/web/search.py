"""The tool web_search: asks the search engine that the settings choose, or says how to choose one.

How each engine is asked is backends.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ba_tui.core.results import Table, ToolResult
from ba_tui.core.text.wording import count
from ba_tui.core.tool import Call, Tool
from ba_tui.processes.terminal_text import unescaped
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed
from ba_tui.tools.web.addresses import read_address
from ba_tui.tools.web.backends import ENGINES, Backend, SearchService, WebHit
from ba_tui.tools.web.client import WebClient
from ba_tui.tools.web.declarations import SEARCH, SearchChoice, web_tool
from ba_tui.tools.web.pages import FOREIGN, refusals_told

DEFAULT_COUNT = 8
SNIPPET_CHARS = 400


def web_search_tool(definition: Definition, web: WebClient, choice: SearchChoice) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        query = " ".join(str(args["query"]).split())
        if not query:
            raise Failed("invalid_parameters", "The query is empty.", "Say what to search for.")
        hits = await chosen(web, choice).search(query, int(args.get("count", DEFAULT_COUNT)))
        return _listed(query, choice.backend, hits)

    return web_tool(definition, "web_search", SEARCH, refusals_told(run))


def chosen(web: WebClient, choice: SearchChoice) -> Backend:
    """The backend that ``choice`` names.

    Raises:
        Failed: none is chosen, or something is missing; says what the person should set.
    """
    names = ", ".join(sorted(ENGINES))
    if not choice.backend:
        hint = f"Tell the person to set web_search.backend: {names} (see ba guide web). Meanwhile use web_fetch."
        raise Failed("dependency_error", "No search engine is configured.", hint)
    engine = ENGINES.get(choice.backend)
    if engine is None:
        raise Failed("dependency_error", f"There is no search backend {choice.backend!r}.", f"Known: {names}.")
    url = choice.url or engine.url
    if not url:
        hint = f"Tell the person to set web_search.url to the address of their {choice.backend} server."
        raise Failed("dependency_error", f"{choice.backend} needs an address.", hint)
    name = choice.api_key_env or engine.key_env
    if name and choice.foreign:
        hint = "Tell the person to set web_search.url in their own settings: ba config edit."
        raise Failed("dependency_error", f"This project chose the address of {choice.backend}: it gets no key.", hint)
    key = choice.environment.get(name, "").strip() if name else ""
    if name and not key:
        hint = f"Tell the person to put it into the environment variable {name}."
        raise Failed("dependency_error", f"{choice.backend} needs a key, and {name} is not set.", hint)
    if key and not _confidential(url):
        raise Failed("dependency_error", "The key would go out unencrypted.", "web_search.url must begin with https.")
    return engine.make(SearchService(web, url, key))


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
