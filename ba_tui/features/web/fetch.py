"""The tools web_fetch and extract_links: a page as Markdown or other text, and the links of a page or a text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ba_tui.core.results import Prose, Table, ToolResult, failure
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.features.web.client import (
    FOREIGN,
    PageLink,
    WebClient,
    WebReply,
    decoded,
    is_html,
    read_links,
    read_page,
    refusal_of,
    with_retry_after,
)
from ba_tui.processes.terminal_text import shortened, unescaped
from ba_tui.tools.addresses import WebAddress, read_address
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failures import ToolFailure

_NO_TEXT = ("image/", "audio/", "video/", "font/", "model/")
_PACKED = {
    "application/pdf", "application/zip", "application/gzip", "application/x-gzip", "application/x-tar",
    "application/x-7z-compressed", "application/x-bzip2", "application/x-xz", "application/zstd",
    "application/vnd.rar", "application/wasm", "application/java-archive", "application/x-executable",
    "application/vnd.apache.parquet",
}  # fmt: skip
_OFFICE = ("application/vnd.openxmlformats", "application/vnd.ms-", "application/vnd.oasis")


async def fetched(web: WebClient, url: str) -> WebReply:
    """Return the reply for ``url``; the body is not loaded if its type can't be text. Raises ToolFailure: the address
    is not allowed, or the request failed. ServerRefusal: the status is 400 or more."""
    reply = await web.page(read_address(url), _may_be_text)
    if reply.status >= 400:
        raise await refusal_of(reply)
    return reply


def moved(reply: WebReply) -> ToolResult:
    """Return the result for a redirect that was not followed."""
    text = (
        f"{reply.address} redirects ({reply.said}) to {reply.moved}, which is another site or leaves https, "
        "so it was not followed. Fetch that address if it is the one you want."
    )
    return ToolResult(text, Prose(text), summary=f"redirects to {reply.moved}", meta={"url": reply.moved})


def _may_be_text(content_type: str) -> bool:
    if content_type == "image/svg+xml":
        return True
    return not (content_type.startswith((*_NO_TEXT, *_OFFICE)) or content_type in _PACKED)


SHOWN = 20_000
"""Characters of the display; the result's text is complete."""


@frozen
class _Content:
    """A reply as text, with the page's own title and description."""

    text: str
    title: str = ""
    described: str = ""
    markdown: bool = False
    cut: bool = False


def web_fetch_tool(definition: Definition, web: WebClient) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        reply = await fetched(web, args["url"])
        if reply.moved:
            return moved(reply)
        if reply.cut == "unwanted":
            return _no_text(reply)
        if not reply.body and reply.status < 400:
            return ToolResult(f"{reply.address} answered {reply.said}, without any content.", summary=reply.said)
        content = await _content(reply, raw=bool(args.get("raw")))
        return _shown(reply, content)

    return definition.tool(with_retry_after(run))


async def _content(reply: WebReply, *, raw: bool) -> _Content:
    text = await asyncio.to_thread(decoded, reply)
    if raw or not text.strip():
        return _Content(text)
    if is_html(reply, text):
        read = await read_page("page", text, str(reply.address))
        return _Content(read["markdown"], read["title"], read["description"], markdown=True, cut=read["cut"])
    if reply.content_type.endswith("json") and not reply.cut:
        return _Content(await asyncio.to_thread(_indented, text))
    return _Content(text)


def _indented(text: str) -> str:
    """Indent JSON, so that it can be cut and searched by lines; return other text unchanged."""
    if text.count("\n") > len(text) // 200:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=1)
    except (ValueError, RecursionError):
        return text


def _shown(reply: WebReply, content: _Content) -> ToolResult:
    size = f"{len(reply.body):,} bytes"
    head = [f"URL: {reply.address}", f"Status: {reply.said}", f"Type: {reply.content_type or 'not told'}"]
    head += [f"Title: {unescaped(content.title)}"] if content.title else []
    head += [f"Description: {unescaped(content.described)}"] if content.described else []
    head.append(f"Size: {size}{_why_cut(reply, content)}")
    body = content.text.strip() or "(The page has no text. It may be made by scripts, which are not run.)"
    text = "\n".join(head) + f"\n{FOREIGN}\n\n{body}"
    json_text = reply.content_type.endswith("json") and not content.markdown
    return ToolResult(
        text,
        Prose(shortened(body, SHOWN), markdown=content.markdown),
        summary=f"{unescaped(content.title)[:50] or reply.content_type} · {size}",
        kind="json" if json_text else "text",
        meta={"url": str(reply.address), "status": reply.status, "partial": reply.cut in {"time", "connection"}},
    )


def _why_cut(reply: WebReply, content: _Content) -> str:
    whole = f" of {reply.size:,}" if reply.size else ""
    match reply.cut:
        case "size":
            return f"{whole}; only this first part was loaded, the rest is larger than the limit"
        case "time":
            return f"{whole} (partial): time ran out before the rest came"
        case "connection":
            return f"{whole} (partial): the connection broke off before the rest came"
        case _:
            return "; of its text only the first part is shown" if content.cut else ""


def _no_text(reply: WebReply) -> ToolResult:
    size = f"{reply.size:,} bytes" if reply.size is not None else "a size that the server does not tell"
    message = f"{reply.address} is {reply.content_type} of {size}: no text, so it was not loaded."
    hint = "Look for a page about it; to have the file itself, load it into the workspace with a shell command."
    return replace(failure("validation_error", message, hint=hint), summary=reply.content_type)


DEFAULT_LIMIT = 100


def extract_links_tool(definition: Definition, web: WebClient) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        url, text = args.get("url", ""), args.get("text")
        if not url and text is None:
            raise ToolFailure("invalid_parameters", "Neither url nor text is given.", "Give the one to look in.")
        words, site = args.get("filter", ""), bool(args.get("same_site"))
        here = read_address(url) if url else None
        if site and here is None:
            raise ToolFailure("invalid_parameters", "same_site needs url: the address that the text came from.")
        if text is None:
            reply = await fetched(web, url)
            if reply.moved:
                return moved(reply)
            if reply.cut == "unwanted":
                raise ToolFailure("validation_error", f"{reply.address} is {reply.content_type}, which holds no links.")
            here, text = reply.address, await asyncio.to_thread(decoded, reply)
        links, count = await read_links(text, str(here or ""))
        fitting = [link for link in links if _fits(link, words) and (not site or _site(link, here) == "same site")]
        if not fitting:
            fit = " that fit" if words or site else ""
            where = f"on {here}" if here else "in the text"
            return ToolResult(f"No links{fit} {where} (of {count} in all).", summary="no links")
        return _listed(fitting, int(args.get("limit", DEFAULT_LIMIT)), here, count)

    return definition.tool(with_retry_after(run))


def _fits(link: PageLink, words: str) -> bool:
    return all(word in f"{link.url} {link.text}".casefold() for word in words.casefold().split())


def _listed(fitting: Sequence[PageLink], limit: int, here: WebAddress | None, count: int) -> ToolResult:
    where = f"on {here}" if here else "in the text"
    shown = fitting[:limit]
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
    if here is None:
        return ""
    with suppress(ToolFailure):
        if here.same_site(read_address(link.url)):
            return "same site"
    return "other site"
