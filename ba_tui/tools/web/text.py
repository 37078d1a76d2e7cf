"""Makes text of what web servers send: the character set found out, HTML read by page_reader.py in its own process.

How the bytes come is client.py.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ba_tui.core.messages import clean_text
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.processes.brief import BriefRun, run_in_thread
from ba_tui.tools.editing.documents import binary_kind, detect
from ba_tui.tools.failed import Failed
from ba_tui.tools.web.client import WebReply

READER = Path(__file__).with_name("page_reader.py")
SECONDS = 20.0
HEAD_BYTES = 2_048
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "SYSTEMROOT")
_CHARSET = regex(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_META = regex(rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_TAG = regex(r"<(?:!doctype\s+html|html|head|body|title|div|table|a\s[^>]*href|p|h1)\b", re.IGNORECASE)
_WIDER = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949"}
"""What pages so labelled are written in, as browsers read them."""

PageKind: TypeAlias = Literal["page", "links", "text", "results"]


@frozen
class PageLink:
    """``text`` is what stands on it, possibly empty."""

    url: str
    text: str


def decoded(reply: WebReply) -> str:
    """The body as text: by its byte order mark, the header, the page's own word, else by the looks of it.

    Raises:
        Failed: it is no text.
    """
    body = reply.body
    if kind := binary_kind(body[:HEAD_BYTES]):
        raise Failed("validation_error", f"{reply.address} is {kind}, not text.", "Fetch a page or a text instead.")
    for codec in filter(None, (_marked(body), *_named(reply))):
        # Python knows codecs that are no character sets of pages; those that choke count as not named.
        with suppress(LookupError, ValueError):
            return clean_text(body.decode(codec, "replace").removeprefix("\ufeff"))
    encoding = detect(body, whole=not reply.cut)
    return clean_text(body[len(encoding.mark) :].decode(encoding.codec, "replace"))


def is_html(reply: WebReply, text: str) -> bool:
    """Whether ``text`` of ``reply`` is a page: the server says so, or it says nothing and it looks like one."""
    if reply.content_type:
        return reply.content_type in {"text/html", "application/xhtml+xml"}
    return looks_like_html(text)


def looks_like_html(text: str) -> bool:
    return bool(_TAG.search(text[:HEAD_BYTES]))


async def read_page(kind: PageKind, source: str, base: str = "") -> dict[str, Any]:
    """What page_reader.py makes of ``source``, which came from ``base``.

    Raises:
        Failed: it takes too long, or too much memory.
    """
    task = await asyncio.to_thread(_task, kind, source, base)
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    argv = (sys.executable, "-P", str(READER))
    done = await run_in_thread(BriefRun(argv, SECONDS, environment=environment, input=task))
    if done.trouble == "timeout":
        raise _unreadable("in time")
    if done.code != 0:
        raise _unreadable("within its limits of time and memory")
    return await asyncio.to_thread(json.loads, done.output)


async def read_links(source: str, base: str = "") -> tuple[Sequence[PageLink], int]:
    """The links of HTML, Markdown or plain text, each address once, and how many there were."""
    kind: PageKind = "links" if looks_like_html(source) or "<a " in source else "text"
    read = await read_page(kind, source, base)
    return [PageLink(item["url"], item["text"]) for item in read["links"]], read["count"]


def _task(kind: PageKind, source: str, base: str) -> bytes:
    return json.dumps({"kind": kind, "source": source, "base": base}).encode()


def _unreadable(how: str) -> Failed:
    return Failed("resource_error", f"The page can't be read {how}.", "Use another source, or fetch it raw.")


def _marked(body: bytes) -> str:
    if body.startswith(codecs.BOM_UTF8):
        return "utf-8"
    return "utf-16" if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else ""


def _named(reply: WebReply) -> list[str]:
    """The character sets that header and page name, as Python knows them; page and text only, JSON is UTF-8."""
    if reply.content_type.endswith("json"):
        return ["utf-8"]
    names = _CHARSET.findall(reply.headers.get("content-type", ""))
    names += [name.decode("ascii") for name in _META.findall(reply.body[:HEAD_BYTES])[:1]]
    return [_codec(name) for name in names]


def _codec(name: str) -> str:
    try:
        known = codecs.lookup(name).name
        "".encode(known)
    except (LookupError, ValueError):
        return ""
    return _WIDER.get(known, known)
