"""A Word document as Markdown: headings, lists, tables, emphasis, links, and what Markdown cannot hold, counted.

In: {"path": "letter.docx"}; also output (a .md file instead of the text in the answer), overwrite, images (a folder to
write pictures to).
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workspace import Args, Refused, inside, option, run, shown, source, target

try:
    from docx import Document
    from docx.oxml.ns import qn
    from docx.table import Table
    from docx.text.paragraph import Paragraph
except ModuleNotFoundError:
    sys.exit("error: the package python-docx is not installed; it stands in requirements.txt of this skill")

COUNTED = {
    "w:ins": "insertions not yet accepted",
    "w:del": "deletions not yet accepted",
    "w:commentReference": "comments",
}
COUNTED |= {"w:footnoteReference": "footnotes", "w:txbxContent": "text boxes", "w:sdt": "content controls"}
LISTED = re.compile(r"List (Bullet|Number)( \d)?")


def convert(args: Args) -> Args:
    path = source(args)
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(part.file_size for part in packed.infolist()) > 1 << 29:
                raise Refused(f"{shown(path)} unpacks to more than 500 MB")
        document: Any = Document(str(path))
    except (zipfile.BadZipFile, KeyError, ValueError, SyntaxError) as error:
        raise Refused(f"{shown(path)} cannot be read as .docx: {error}") from None
    blocks = list(written(document))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(blocks)).strip() + "\n"
    body = document.element.body
    lost = {name: len(list(body.iter(qn(tag)))) for tag, name in COUNTED.items()}
    said: Args = {
        "path": shown(path),
        "title": document.core_properties.title,
        "author": document.core_properties.author,
        "words": len(text.split()),
        "tables": len(document.tables),
        "pictures": len(document.inline_shapes),
        "not_in_the_text": {name: count for name, count in lost.items() if count},
        "headers": sorted({p.text for s in document.sections for p in s.header.paragraphs if p.text.strip()}),
    }
    if folder := option(args, "images", str, ""):
        said["images"] = saved_pictures(document, inside(folder))
    if "output" not in args:
        return said | {"markdown": text}
    output = target(args)
    output.write_text(text, "utf-8")
    return said | {"written": shown(output)}


def written(document: Any) -> Iterator[str]:
    numbers: dict[str, int] = {}
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            yield from ["", *table(block), ""]
            continue
        words, style = inline(block), (block.style.name or "") if block.style is not None else ""
        if not words.strip():
            numbers.clear()
            yield ""
        elif heading := re.fullmatch(r"(?:Heading (\d)|Title)", style):
            yield f"\n{'#' * min(6, int(heading[1] or 1))} {words}\n"
        elif kind := listed(block, style):
            depth, ordered = kind
            numbers[style] = numbers.get(style, 0) + 1
            yield f"{'   ' * depth}{f'{numbers[style]}.' if ordered else '-'} {words}"
        else:
            numbers.clear()
            yield f"\n{'> ' if 'Quote' in style else ''}{words}\n"


def listed(paragraph: Paragraph, style: str) -> tuple[int, bool] | None:
    """Depth, and whether it is numbered; by style or by the numbering of the paragraph itself."""
    properties = paragraph._p.pPr
    numbering = properties.numPr if properties is not None else None
    if match := LISTED.fullmatch(style):
        return int(match[2] or 1) - 1, match[1] == "Number"
    if numbering is None or numbering.numId is None:
        return None
    depth = int(numbering.ilvl.val) if numbering.ilvl is not None else 0
    return depth, number_format(paragraph, int(numbering.numId.val), depth) != "bullet"


def number_format(paragraph: Paragraph, number: int, depth: int) -> str:
    try:
        numbering: Any = paragraph.part.numbering_part.element
    except (KeyError, NotImplementedError):
        return "bullet"
    abstract = numbering.xpath(f"w:num[@w:numId='{number}']/w:abstractNumId/@w:val")
    where = (
        f"w:abstractNum[@w:abstractNumId='{abstract[0]}']/w:lvl[@w:ilvl='{depth}']/w:numFmt/@w:val" if abstract else ""
    )
    return next(iter(numbering.xpath(where)), "bullet") if where else "bullet"


def inline(paragraph: Paragraph) -> str:
    """Runs of the same kind are joined first, so that **one** word is not **on****e**."""
    parts: list[tuple[str, bool, bool, str]] = []
    for item in paragraph.iter_inner_content():
        link = "" if hasattr(item, "bold") else str(item.address or "")
        text, bold, italic = item.text, bool(getattr(item, "bold", False)), bool(getattr(item, "italic", False))
        if parts and parts[-1][1:] == (bold, italic, link):
            parts[-1] = (parts[-1][0] + text, bold, italic, link)
        else:
            parts.append((text, bold, italic, link))
    return "".join(marked(*part) for part in parts).replace("\n", "  \n")


def marked(text: str, bold: bool, italic: bool, link: str) -> str:
    inner = text.strip()
    if not inner:
        return text
    sign = "*" * (2 * bold + italic)
    plain = re.sub(r"([\\`*_\[\]<>])", r"\\\1", inner)
    words = f"{sign}{plain}{sign}"
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{before}{f'[{words}]({link})' if link else words}{after}"


def table(table: Table) -> list[str]:
    rows = [[cell.text.strip().replace("|", "\\|").replace("\n", "<br>") for cell in row.cells] for row in table.rows]
    if not rows:
        return []
    width = max(len(row) for row in rows)
    lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in rows]
    return [lines[0], "|" + " --- |" * width, *lines[1:]]


def saved_pictures(document: Any, folder: Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    done: list[str] = []
    for part in document.part.package.iter_parts():
        if part.content_type.startswith("image/") and str(part.partname).startswith("/word/"):
            place = inside(f"{folder}/{Path(str(part.partname)).name}")
            place.write_bytes(part.blob)
            done.append(shown(place))
    return done


if __name__ == "__main__":
    sys.exit(run(convert, "path output overwrite images"))
