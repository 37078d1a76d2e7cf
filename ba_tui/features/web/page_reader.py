"""Converts one untrusted HTML page to Markdown, links or search results, in a separate process.

A program that reads one JSON object and writes one. ``client`` starts, limits and ends it.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

from justhtml import JustHTML
from justhtml.dom import Element, Text

from ba_tui.core.text.patterns import regex

CPU_SECONDS = 20
MAX_MEMORY_BYTES = 1_500_000_000
MAX_MARKDOWN_CHARS = 2_000_000
MAX_LINKS = 5_000
LABEL_CHARS = 200
MAX_COLUMNS = 50
MAIN = 200
"""Least characters of a page's main part; if it has fewer, the whole page is used."""
UNSEEN = (
    "script,style,template,svg,canvas,object,embed,iframe,button,select,textarea,input,dialog,[hidden],"
    '[aria-hidden="true"],[style*="display:none"],[style*="display: none"]'
)
SCHEMES = ("http://", "https://", "mailto:")
# Unicode noncharacters replace characters that the renderer would escape.
ESCAPED = "<&_*`[]\\"
BACK = {0xFDD0 + number: char for number, char in enumerate(ESCAPED)}
MARK, MARK_END = "\ufde0", "\ufde1"
PLAIN: dict[int, int | None] = {
    **dict.fromkeys(range(0xFDD0, 0xFDF0)),
    **{ord(char): stand_in for stand_in, char in BACK.items()},
}
BARE = regex(r"https?://[^\s<>\"'`\\^{|}]+")


def page(html: str, base: str) -> dict[str, Any]:
    """Return the page, or its main part, as Markdown, with its title and description."""
    document = JustHTML(html, sanitize=False, scripting_enabled=False)
    base = _base(document, base)
    found = {
        "title": _line(_text(document.query_one("title"))),
        "description": _line(_meta(document, "description")),
    }
    mains = document.query("main,[role=main]")
    root = mains[0] if len(mains) == 1 and len(_text(mains[0])) >= MAIN else document.root
    for node in root.query(UNSEEN):
        _drop(node)
    for image in root.query("img"):
        _swap(image, Text(_image(image, base)))
    for link in root.query("a"):
        _resolve(link, base)
    for node in root.query("li,h1,h2,h3,h4,h5,h6,dt,dd"):
        if not _text(node):
            _drop(node)
        elif node.name in {"dt", "dd"}:
            node.name = "p"
    _plain_text(root)
    # Tables are rendered separately; a mark replaces each of them until the page is rendered.
    tables = dict(_tables(root))
    text = _markdown(root)
    text = re.sub(f"{MARK}([0-9]+){MARK_END}", lambda match: tables.get(int(match[1]), ""), text)
    return {**found, "markdown": text[:MAX_MARKDOWN_CHARS], "cut": len(text) > MAX_MARKDOWN_CHARS}


def _resolve(link: Any, base: str) -> None:
    """Make the address absolute; a link without text, or within the same page, becomes plain text."""
    address = _absolute(base, _attribute(link, "href"))
    if address.startswith(SCHEMES) and address.partition("#")[0] != base and _text(link):
        link.attrs = {"href": address}
    else:
        link.name = "span"


def links(html: str, base: str) -> dict[str, Any]:
    """Return all links of a page with their labels."""
    document = JustHTML(html, sanitize=False)
    base = _base(document, base)
    found: list[tuple[str, str]] = []
    for node in document.query("a[href],area[href]"):
        image = node.query_one("img[alt]")
        label = _text(node) or (_attribute(image, "alt") if image else "")
        others = (_attribute(node, name) for name in ("aria-label", "title", "alt"))
        found.append((_absolute(base, _attribute(node, "href")), _line(label or next(filter(None, others), ""))))
    return {"title": _line(_text(document.query_one("title"))), **_unique(found)}


def text(source: str, base: str) -> dict[str, Any]:
    """Return the links of Markdown or plain text in order, including bare addresses."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only this kind of source needs it

    found: list[tuple[str, str]] = []
    for block in MarkdownIt("commonmark").parse(source):
        target, label = "", ""
        for token in block.children or ():
            if token.type == "link_open":
                target, label = str(token.attrs.get("href", "")), ""
            elif token.type == "link_close":
                found.append((_absolute(base, target), _line(label)))
                target = ""
            elif target:
                label += token.content
            else:
                found += [(_trimmed(match[0]), "") for match in BARE.finditer(token.content)]
        if not block.children:
            found += [(_trimmed(match[0]), "") for match in BARE.finditer(block.content)]
    return {"title": "", **_unique(found)}


def results(html: str, base: str) -> dict[str, Any]:
    """Return the hits of DuckDuckGo's HTML page. ``blocked``: the page shows a CAPTCHA."""
    document = JustHTML(html, sanitize=False)
    hits: list[dict[str, str]] = []
    for node in document.query(".result"):
        link = node.query_one("a.result__a[href]")
        if link is None or "result--ad" in _attribute(node, "class").split():
            continue
        address = _unwrapped(_absolute(base, _attribute(link, "href")))
        snippet = node.query_one(".result__snippet")
        hits.append({"title": _line(_text(link)), "url": address, "snippet": _text(snippet)[: 5 * LABEL_CHARS]})
    return {"hits": hits, "blocked": document.query_one(".anomaly-modal__title, #challenge-form") is not None}


def _unwrapped(address: str) -> str:
    """Return the target of a result, which the search page wraps in a redirect."""
    parts = urlsplit(address)
    return parse_qs(parts.query).get("uddg", [address])[0] if parts.path == "/l/" else address


def _tables(root: Any) -> Iterator[tuple[int, str]]:
    """Remove data tables from the document and yield them as Markdown; layout tables become blocks."""
    tables = root.query("table")
    outer = {id(table) for table in tables if table.query_one("table")}
    for number, table in enumerate(reversed(tables)):
        rows = [row for row in table.query("tr") if _cells(row)]
        if id(table) in outer or max((len(_cells(row)) for row in rows), default=0) < 2:
            for part in (table, *table.query("table,caption,thead,tbody,tfoot,tr,td,th,colgroup,col")):
                part.name = "div"
            continue
        caption = table.query_one("caption")
        title = f"{_line(_text(caption))}\n\n" if caption else ""
        yield number, title + "\n".join(_row_lines(_grid(rows)))
        place = Element("p", {}, "html")
        place.append_child(Text(f"{MARK}{number}{MARK_END}"))
        _swap(table, place)


def _cells(row: Any) -> list[Any]:
    return [child for child in row.children or () if child.name in {"td", "th"}]


def _grid(rows: list[Any]) -> list[list[str]]:
    """Return the cells of a table by row; a cell that spans several columns is followed by empty ones."""
    grid: list[list[str]] = []
    waiting: dict[int, int] = {}
    for row in rows:
        line: list[str] = []
        for cell in _cells(row):
            _fill(line, waiting)
            if len(line) >= MAX_COLUMNS:
                break
            across, down = _span(cell, "colspan"), _span(cell, "rowspan")
            start = len(line)
            line += [_cell(cell), *[""] * (across - 1)]
            waiting |= {column: down - 1 for column in range(start, start + across) if down > 1}
        _fill(line, waiting)
        grid.append(line[:MAX_COLUMNS])
    return grid


def _fill(line: list[str], waiting: dict[int, int]) -> None:
    """Append empty cells for cells of earlier rows that span this one."""
    while left := waiting.get(len(line)):
        waiting[len(line)] = left - 1
        line.append("")


def _span(cell: Any, name: str) -> int:
    value = _attribute(cell, name).strip()
    return min(max(int(value), 1), MAX_COLUMNS) if value.isascii() and value.isdigit() and len(value) < 6 else 1


def _cell(cell: Any) -> str:
    holder = Element("div", {}, "html")
    for child in list(cell.children or ()):
        holder.append_child(child)
    return " ".join(_markdown(holder).split()).replace("|", r"\|")


def _row_lines(grid: list[list[str]]) -> Iterator[str]:
    width = max(len(row) for row in grid)
    for number, row in enumerate(grid):
        yield f"| {' | '.join(row + [''] * (width - len(row)))} |"
        if not number:
            yield "|" + " --- |" * width


def _image(image: Any, base: str) -> str:
    alt = _line(_attribute(image, "alt"))
    source = _attribute(image, "src")
    if not alt:
        return ""
    return f"[image: {alt}]" if source.startswith("data:") else f"[image: {alt}, {_absolute(base, source)}]"


def _plain_text(root: Any) -> None:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.name == "#text":
            node.data = (node.data or "").translate(PLAIN)
        elif node.name not in {"pre", "code"}:
            waiting += node.children or ()


def _markdown(node: Any) -> str:
    text = node.to_markdown().translate(BACK)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)).strip()


def _base(document: JustHTML, base: str) -> str:
    node = document.query_one("base[href]")
    return _absolute(base, _attribute(node, "href")) if node else base


def _meta(document: JustHTML, name: str) -> str:
    node = document.query_one(f'meta[name="{name}"]') or document.query_one(f'meta[property="og:{name}"]')
    return _attribute(node, "content") if node else ""


def _attribute(node: Any, name: str) -> str:
    attributes: dict[str, str | None] = node.attrs or {}
    return attributes.get(name) or ""


def _absolute(base: str, link: str) -> str:
    try:
        return urljoin(base, link.strip())
    except ValueError:
        return ""


def _unique(found: list[tuple[str, str]]) -> dict[str, Any]:
    """Return each address once, with its first label, and the total number of links."""
    labels: dict[str, str] = {}
    for address, label in found:
        address = address.partition("#")[0] if not address.startswith("mailto:") else address
        if address.lower().startswith(SCHEMES):
            labels[address] = labels.get(address) or label
    pairs = [{"url": address, "text": label} for address, label in labels.items()]
    return {"links": pairs[:MAX_LINKS], "count": len(pairs)}


def _trimmed(address: str) -> str:
    """Return a bare address without the punctuation that follows it."""
    address = address.rstrip(".,;:!?*_~")
    while address and address[-1] in ")]" and address.count(address[-1]) > address.count("(["[")]".index(address[-1])]):
        address = address[:-1].rstrip(".,;:!?*_~")
    return address


def _text(node: Any) -> str:
    return " ".join(node.to_text(separator="", strip=False).split()) if node else ""


def _line(value: str) -> str:
    return " ".join(value.split())[:LABEL_CHARS]


def _drop(node: Any) -> None:
    if node.parent is not None:
        node.parent.remove_child(node)


def _swap(node: Any, other: Any) -> None:
    if node.parent is not None:
        node.parent.replace_child(other, node)


READERS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "page": page,
    "links": links,
    "text": text,
    "results": results,
}


def main() -> None:
    for limit, value in ((resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_AS, MAX_MEMORY_BYTES)):
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
    task = json.load(sys.stdin.buffer)
    answer = READERS[task["kind"]](task["source"], task["base"])
    sys.stdout.buffer.write(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
