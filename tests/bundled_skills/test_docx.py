"""The scripts of docx: Markdown to Word and back keeps structure and words; what is lost is told."""

from __future__ import annotations

import base64

from docx import Document
from docx.oxml import OxmlElement
from docx.oxml.ns import qn

from tests.bundled_skills.bench import Bench

TO, FROM = "docx/to_markdown.py", "docx/from_markdown.py"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TEXT = """\
# Report

The **total** is *12* EUR, see [the source](https://example.org/a) and `code`.

- one
- two
   - deep

1. first
2. second

| region | amount |
| --- | --- |
| N \\| M | 1 |

> quoted
"""


def test_there_and_back(bench: Bench) -> None:
    bench.write("r.md", TEXT)
    said = bench.run(FROM, {"path": "r.md", "output": "o/r.docx", "title": "Report", "author": "Ann"})
    assert (said["headings"], said["tables"], said["beware"]) == (1, 1, [])
    document = Document(str(bench.folder / "o/r.docx"))
    assert [p.style.name for p in document.paragraphs if p.style][:4] == [
        "Heading 1",
        "Normal",
        "List Bullet",
        "List Bullet",
    ]
    back = bench.run(TO, {"path": "o/r.docx"})
    assert (back["title"], back["author"], back["not_in_the_text"]) == ("Report", "Ann", {})
    assert back["markdown"].replace("\n\n", "\n").strip() == TEXT.replace("`", "").replace("\n\n", "\n").strip()


def test_what_is_not_in_the_text_is_counted(bench: Bench) -> None:
    document = Document()
    paragraph = document.add_paragraph("agreed")
    inserted = OxmlElement("w:ins")
    inserted.append(paragraph.add_run("proposed")._r)
    paragraph._p.append(inserted)
    paragraph._p.append(OxmlElement("w:commentReference"))
    document.sections[0].header.paragraphs[0].text = "Draft"
    assert paragraph._p.find(qn("w:ins")) is not None
    document.save(str(bench.folder / "c.docx"))
    said = bench.run(TO, {"path": "c.docx", "output": "c.md"})
    assert said["not_in_the_text"] == {"insertions not yet accepted": 1, "comments": 1}
    assert (said["headers"], (bench.folder / "c.md").read_text("utf-8")) == (["Draft"], "agreed\n")


def test_pictures_and_templates(bench: Bench) -> None:
    (bench.folder / "p.png").write_bytes(base64.b64decode(PNG))
    template = Document()
    template.add_paragraph("old text")
    template.sections[0].footer.paragraphs[0].text = "House"
    template.save(str(bench.folder / "t.docx"))
    text = "![dot](p.png)\n\n![far](../x.png)\n\n![web](https://example.org/x.png)\n"
    said = bench.run(FROM, {"markdown": text, "output": "n.docx", "template": "t.docx"})
    assert said["pictures"] == 1
    assert "'../x.png' is not a path inside the workspace" in said["beware"][1]
    document = Document(str(bench.folder / "n.docx"))
    assert "old text" not in [paragraph.text for paragraph in document.paragraphs]
    assert document.sections[0].footer.paragraphs[0].text == "House"
    assert bench.run(TO, {"path": "n.docx", "images": "pics"})["images"] == ["pics/image1.png"]


def test_what_is_no_document_is_refused(bench: Bench) -> None:
    bench.write("x.docx", "words")
    assert "cannot be read as .docx" in bench.refused(TO, {"path": "x.docx"})
    assert 'either "markdown"' in bench.refused(FROM, {"output": "y.docx"})
