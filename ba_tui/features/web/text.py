"""Converts replies of web servers to text: detects the encoding, and starts ``page_reader.py`` for HTML."""

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
from ba_tui.features.web.client import WebReply
from ba_tui.processes.programs import BriefRun, run_in_thread
from ba_tui.tools.editing.documents import binary_kind, detect
from ba_tui.tools.failures import ToolFailure

READER = Path(__file__).with_name("page_reader.py")
SECONDS = 20.0
HEAD_BYTES = 2_048
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "SYSTEMROOT")
_CHARSET = regex(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_META = regex(rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_TAG = regex(r"<(?:!doctype\s+html|html|head|body|title|div|table|a\s[^>]*href|p|h1)\b", re.IGNORECASE)
_WIDER = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949"}
"""Actual encodings by declared name, as browsers treat them."""

PageKind: TypeAlias = Literal["page", "links", "text", "results"]


@frozen
class PageLink:
    """A link. ``text``: its label, possibly empty."""

    url: str
    text: str


def decoded(reply: WebReply) -> str:
    """Decode the body by its byte order mark, the header or the page's declaration; else detect the encoding.

    Raises:
        ToolFailure: the body is binary.
    """
    body = reply.body
    if kind := binary_kind(body[:HEAD_BYTES]):
        raise ToolFailure(
            "validation_error", f"{reply.address} is {kind}, not text.", "Fetch a page or a text instead."
        )
    for codec in filter(None, (_marked(body), *_named(reply))):
        # Some of Python's codecs are not text encodings; ignore those that fail.
        with suppress(LookupError, ValueError):
            return clean_text(body.decode(codec, "replace").removeprefix("\ufeff"))
    encoding = detect(body, whole=not reply.cut)
    return clean_text(body[len(encoding.mark) :].decode(encoding.codec, "replace"))


def is_html(reply: WebReply, text: str) -> bool:
    """Return whether the reply is HTML by its content type; without one, by its text."""
    if reply.content_type:
        return reply.content_type in {"text/html", "application/xhtml+xml"}
    return looks_like_html(text)


def looks_like_html(text: str) -> bool:
    return bool(_TAG.search(text[:HEAD_BYTES]))


async def read_page(kind: PageKind, source: str, base: str = "") -> dict[str, Any]:
    """Return the output of ``page_reader.py`` for ``source``, a page at the address ``base``.

    Raises:
        ToolFailure: the page needs too much time or memory.
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
    """Return the links of HTML, Markdown or plain text without duplicates, and their total number."""
    kind: PageKind = "links" if looks_like_html(source) or "<a " in source else "text"
    read = await read_page(kind, source, base)
    return [PageLink(item["url"], item["text"]) for item in read["links"]], read["count"]


def _task(kind: PageKind, source: str, base: str) -> bytes:
    return json.dumps({"kind": kind, "source": source, "base": base}).encode()


def _unreadable(how: str) -> ToolFailure:
    return ToolFailure("resource_error", f"The page can't be read {how}.", "Use another source, or fetch it raw.")


def _marked(body: bytes) -> str:
    if body.startswith(codecs.BOM_UTF8):
        return "utf-8"
    return "utf-16" if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else ""


def _named(reply: WebReply) -> list[str]:
    """Return the declared encodings of header and page as Python codecs; JSON is always UTF-8."""
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
