"""Markdown as a Word document with real styles: headings, lists, tables, code, quotes, links, pictures.

In: {"markdown": "# Title…", "output": "report.docx"} or {"path": "report.md", "output": "report.docx"}; template (a
.docx whose styles, header and page set-up are taken), title, author, overwrite. Pictures are read from the workspace.
"""

from __future__ import annotations

import sys
from typing import Any

from workspace import Args, Refused, inside, option, run, shown, source, target

try:
    from docx import Document
    from docx.image.exceptions import UnrecognizedImageError
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn
    from docx.shared import Inches, Pt
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode as Node
except ModuleNotFoundError as missing:
    sys.exit(f"error: the package {missing.name} is not installed; see requirements.txt of this skill")


def convert(args: Args) -> Args:
    text = option(args, "markdown", str, "")
    if bool(text) == ("path" in args):
        raise Refused('give either "markdown" (text) or "path" (a Markdown file)')
    text = text or source(args).read_text("utf-8-sig", "replace")
    output = target(args)
    if output.suffix.lower() != ".docx":
        raise Refused('"output" must end in .docx')
    try:
        document: Any = Document(str(source(args, "template"))) if "template" in args else Document()
    except (KeyError, ValueError) as error:
        raise Refused(f"the template cannot be read: {error}") from None
    for child in list(document.element.body) if "template" in args else []:
        if child.tag != qn("w:sectPr"):
            document.element.body.remove(child)
    document.core_properties.title = option(args, "title", str, "") or document.core_properties.title
    document.core_properties.author = option(args, "author", str, "")
    writer = Writer(document)
    for node in Node(MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(text)).children:
        writer.block(node, 0)
    document.save(str(output))
    return {"written": shown(output), **writer.counts, "beware": writer.beware}


class Writer:
    """Writes blocks one after the other; ``beware`` is what could not be taken over."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self.counts = {"headings": 0, "paragraphs": 0, "tables": 0, "pictures": 0}
        self.beware: list[str] = []

    def paragraph(self, style: str) -> Any:
        known = {one.name for one in self.document.styles}
        if style not in known and (note := f"the template has no style {style}") not in self.beware:
            self.beware.append(note)
        return self.document.add_paragraph(style=style if style in known else None)

    def block(self, node: Any, depth: int) -> None:
        if node.type == "heading":
            self.counts["headings"] += 1
            self.inline(self.paragraph(f"Heading {node.tag[1]}"), node)
        elif node.type == "paragraph":
            self.counts["paragraphs"] += 1
            self.inline(self.paragraph("Normal"), node)
        elif node.type in {"bullet_list", "ordered_list"}:
            self.listing(node, depth)
        elif node.type == "blockquote":
            for child in node.children:
                self.inline(self.paragraph("Quote"), child)
        elif node.type in {"fence", "code_block"}:
            code = self.paragraph("No Spacing").add_run(node.content.rstrip("\n"))
            code.font.name, code.font.size = "Courier New", Pt(9)
        elif node.type == "table":
            self.table(node)
        elif node.type == "hr":
            self.paragraph("Normal").add_run("* * *")
        else:
            self.beware.append(f"{node.type} left as plain text")
            self.paragraph("Normal").add_run(node.content if not node.children else "")

    def listing(self, node: Any, depth: int) -> None:
        kind = "List Bullet" if node.type == "bullet_list" else "List Number"
        style = kind if depth == 0 else f"{kind} {min(depth + 1, 3)}"
        for item in node.children:
            for child in item.children:
                if child.type in {"bullet_list", "ordered_list"}:
                    self.listing(child, depth + 1)
                elif child.type == "paragraph":
                    self.inline(self.paragraph(style), child)
                else:
                    self.block(child, depth)

    def table(self, node: Any) -> None:
        rows = [row.children for part in node.children for row in part.children]
        table = self.document.add_table(len(rows), len(rows[0]))
        table.style = "Table Grid" if "Table Grid" in {one.name for one in self.document.styles} else None
        for row, cells in zip(table.rows, rows, strict=True):
            for place, cell in zip(row.cells, cells, strict=True):
                self.inline(place.paragraphs[0], cell, bold=cell.type == "th")
        self.counts["tables"] += 1

    def inline(self, paragraph: Any, node: Any, bold: bool = False, italic: bool = False) -> None:
        for child in node.children:
            if child.type in {"strong", "em", "inline", "s"}:
                self.inline(paragraph, child, bold or child.type == "strong", italic or child.type == "em")
            elif child.type == "link":
                self.link(paragraph, child)
            elif child.type == "image":
                self.picture(paragraph, child)
            elif child.type in {"softbreak", "hardbreak"}:
                paragraph.add_run(" ") if child.type == "softbreak" else paragraph.add_run().add_break()
            elif child.type == "paragraph":
                self.inline(paragraph, child, bold, italic)
            else:
                piece = paragraph.add_run(child.content)
                piece.bold, piece.italic = bold or None, italic or None
                if child.type == "code_inline":
                    piece.font.name = "Courier New"

    def link(self, paragraph: Any, node: Any) -> None:
        start = len(paragraph.runs)
        self.inline(paragraph, node)
        address = str(node.attrs.get("href", ""))
        if not address.startswith(("https://", "http://", "mailto:")):
            return
        link = OxmlElement("w:hyperlink")
        link.set(qn("r:id"), paragraph.part.relate_to(address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
        for piece in paragraph.runs[start:]:
            piece.font.underline = True
            link.append(piece._r)
        paragraph._p.append(link)

    def picture(self, paragraph: Any, node: Any) -> None:
        name = str(node.attrs.get("src", ""))
        try:
            path = inside(name)
            section = self.document.sections[-1]
            room = section.page_width - section.left_margin - section.right_margin
            shape = paragraph.add_run().add_picture(str(path))
            if shape.width > room:
                shape.height, shape.width = int(shape.height * room / shape.width), room
        except (Refused, OSError, UnrecognizedImageError) as error:
            why = str(error) or "Word takes PNG, JPEG, GIF, BMP and TIFF, not SVG"
            self.beware.append(f"picture {name} left out: {why}")
            paragraph.add_run(f"[{node.content or name}]")
        else:
            self.counts["pictures"] += 1
            if shape.width < Inches(0.2):
                self.beware.append(f"picture {name} is very small")


if __name__ == "__main__":
    sys.exit(run(convert, "markdown path output template title author overwrite"))
