"""The tool web_fetch: a page as Markdown, any other text as it is, and what came instead when it is neither.

How servers are asked is client.py, how bytes become text text.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ba_tui.core.results import Prose, ToolResult, failure
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.processes.terminal_text import shortened, unescaped
from ba_tui.tools.definitions import Definition
from ba_tui.tools.web.client import WebClient, WebReply
from ba_tui.tools.web.declarations import FETCH, web_tool
from ba_tui.tools.web.pages import FOREIGN, fetched, moved, refusals_told
from ba_tui.tools.web.text import decoded, is_html, read_page

SHOWN = 20_000
"""Characters for the pane; the whole is in the text."""


@frozen
class _Content:
    """A reply as text. ``title`` and ``described`` are what a page says of itself."""

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

    return web_tool(definition, "web_fetch", FETCH, refusals_told(run))


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
    """JSON over lines, so that it can be cut and searched by lines; as it came when it is none."""
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
