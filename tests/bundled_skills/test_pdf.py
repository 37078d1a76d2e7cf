"""The scripts of pdf: text by page, pages without text, and new files that hold the pages asked for."""

from __future__ import annotations

from pathlib import Path

from pypdf import PdfReader, PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from tests.bundled_skills.bench import Bench

TEXT, PAGES = "pdf/text.py", "pdf/pages.py"


def paper(path: Path, words: list[str], password: str = "") -> str:
    """A PDF with a page for each of the words; an empty one is a page without text."""
    writer = PdfWriter()
    plain = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    font = DictionaryObject({NameObject(key): NameObject(value) for key, value in plain.items()})
    for word in words:
        page = writer.add_blank_page(200, 200)
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 100 Td ({word}) Tj ET".encode() if word else b"")
        page[NameObject("/Contents")] = writer._add_object(stream)
    if password:
        writer.encrypt(password)
    writer.write(path)
    return path.name


def words(path: Path) -> list[str]:
    return [page.extract_text().strip() for page in PdfReader(path).pages]


def test_text_comes_by_page(bench: Bench) -> None:
    name = paper(bench.folder / "a.pdf", ["one", "two", "", "four"])
    said = bench.run(TEXT, {"path": name, "pages": "2-"})
    assert said["text"] == [{"page": 2, "text": "two"}, {"page": 3, "text": ""}, {"page": 4, "text": "four"}]
    assert (said["pages"], said["without_text"]) == (4, [3])
    bench.run(TEXT, {"path": name, "pages": "4,1", "layout": True, "output": "t.txt"})
    assert (bench.folder / "t.txt").read_text("utf-8").split() == [
        "---",
        "page",
        "4",
        "---",
        "four",
        "---",
        "page",
        "1",
        "---",
        "one",
    ]
    assert "no page of 1 to 4" in bench.refused(TEXT, {"path": name, "pages": "3-9"})


def test_pages_go_into_new_files(bench: Bench) -> None:
    first, second = paper(bench.folder / "a.pdf", ["one", "two", "three"]), paper(bench.folder / "b.pdf", ["four"])
    bench.run(PAGES, {"do": "merge", "paths": [second, first], "output": "all.pdf"})
    assert words(bench.folder / "all.pdf") == ["four", "one", "two", "three"]
    said = bench.run(PAGES, {"do": "split", "path": first, "every": 2, "folder": "parts"})
    assert said["written"] == ["parts/a-001.pdf", "parts/a-003.pdf"]
    assert [words(bench.folder / part) for part in said["written"]] == [["one", "two"], ["three"]]
    bench.run(PAGES, {"do": "rotate", "path": first, "pages": "2", "degrees": 90, "output": "r.pdf"})
    assert [page.rotation for page in PdfReader(bench.folder / "r.pdf").pages] == [0, 90, 0]
    bench.run(PAGES, {"do": "extract", "path": first, "pages": "3,1", "output": "e.pdf"})
    assert words(bench.folder / "e.pdf") == ["three", "one"]
    assert words(bench.folder / "a.pdf") == ["one", "two", "three"]


def test_locked_and_broken_files_are_told(bench: Bench) -> None:
    name = paper(bench.folder / "l.pdf", ["secret"], password="open")
    assert 'ask the user for its "password"' in bench.refused(TEXT, {"path": name})
    assert bench.run(TEXT, {"path": name, "password": "open"})["text"][0]["text"] == "secret"
    bench.write("x.pdf", "no pdf")
    assert "cannot be read as a PDF" in bench.refused(TEXT, {"path": "x.pdf"})
