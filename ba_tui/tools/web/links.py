"""The tool extract_links: where a page, or a text at hand, leads to.

How pages are got is pages.py, how links are found page_reader.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from ba_tui.core.results import Table, ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.processes.terminal_text import unescaped
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed
from ba_tui.tools.web.addresses import WebAddress, read_address
from ba_tui.tools.web.client import WebClient
from ba_tui.tools.web.declarations import FETCH, web_tool
from ba_tui.tools.web.pages import FOREIGN, fetched, moved, refusals_told
from ba_tui.tools.web.text import PageLink, decoded, read_links

DEFAULT_LIMIT = 100


@frozen
class _Selection:
    """Which links are wanted: those with ``words`` in address or text, of the same ``site`` only, so many."""

    words: str
    site: bool
    limit: int

    def fits(self, link: PageLink, here: WebAddress | None) -> bool:
        found = all(word in f"{link.url} {link.text}".casefold() for word in self.words.casefold().split())
        return found and not (self.site and not _same_site(link, here))


def extract_links_tool(definition: Definition, web: WebClient) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        url, text = args.get("url", ""), args.get("text")
        if not url and text is None:
            raise Failed("invalid_parameters", "Neither url nor text is given.", "Give the one to look in.")
        selection = _Selection(
            args.get("filter", ""), bool(args.get("same_site")), int(args.get("limit", DEFAULT_LIMIT))
        )
        here = read_address(url) if url else None
        if selection.site and here is None:
            raise Failed("invalid_parameters", "same_site needs url: the address that the text came from.")
        if text is None:
            reply = await fetched(web, url)
            if reply.moved:
                return moved(reply)
            if reply.cut == "unwanted":
                raise Failed("validation_error", f"{reply.address} is {reply.content_type}, which holds no links.")
            here, text = reply.address, await asyncio.to_thread(decoded, reply)
        links, count = await read_links(text, str(here or ""))
        return _listed([link for link in links if selection.fits(link, here)], selection, here, count)

    return web_tool(definition, "extract_links", FETCH, refusals_told(run))


def _listed(fitting: Sequence[PageLink], selection: _Selection, here: WebAddress | None, count: int) -> ToolResult:
    where = f"on {here}" if here else "in the text"
    if not fitting:
        fit = " that fit" if selection.words or selection.site else ""
        return ToolResult(f"No links{fit} {where} (of {count} in all).", summary="no links")
    shown = fitting[: selection.limit]
    rows = tuple((link.url, unescaped(link.text), _site(link, here)) for link in shown)
    lines = [" · ".join(part for part in row if part) for row in rows]
    head = f"{len(shown)} of {count} links {where}"
    if len(fitting) > len(shown):
        head += f"; {len(fitting) - len(shown)} more fit: raise limit or filter by words"
    text = "\n".join([head, FOREIGN, *lines])
    plural = "" if len(shown) == 1 else "s"
    return ToolResult(
        text,
        Table(("Address", "Text", "Site"), rows),
        summary=f"{len(shown)}{'+' if len(fitting) > len(shown) else ''} link{plural}",
        kind="listing",
    )


def _site(link: PageLink, here: WebAddress | None) -> str:
    return "" if here is None else "same site" if _same_site(link, here) else "other site"


def _same_site(link: PageLink, here: WebAddress | None) -> bool:
    if here is None:
        return False
    try:
        return here.same_site(read_address(link.url))
    except Failed:
        return False
