"""Files that are no plain text: shown where the model can see them, else said plainly, never a crash or a hang."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfWriter

from ba_tui.core.messages import Document, Image
from ba_tui.core.provider import Modalities
from ba_tui.core.results import ToolResult
from ba_tui.tools.builtin.files import read_file_tool
from ba_tui.tools.builtin.media import measured, read_pdf
from ba_tui.tools.editing.seen_files import SeenFiles
from ba_tui.tools.failures import ToolFailure
from tests.tools.conftest import Harness

EVERYTHING = Modalities(lambda: True, lambda: True)


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(width) for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + b";"


def jpeg(width: int, height: int) -> bytes:
    thumbnail = b"\xff\xe1" + struct.pack(">H", 12) + b"Exif\0\0\xff\xc0\0\1"
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + thumbnail + b"\xff" + frame + b"\xff\xd9"


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 12 + len(body)) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


def lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width | 0x4000, height))


def lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14))


def extended(width: int, height: int) -> bytes:
    return webp(b"VP8X", bytes(4) + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3])


def pdf(*pages: str) -> bytes:
    """A document with one line of text a page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids: list[str] = []
    for text in pages:
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else ""
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"{page} /Contents {len(objects)} 0 R >>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    places: list[int] = []
    for number, content in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n{content}\nendobj\n".encode())
    start = out.tell()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode())
    out.write(f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode())
    return out.getvalue()


def sees(harness: Harness, modalities: Modalities) -> None:
    harness.tools["read_file"] = read_file_tool(
        harness.definitions["read_file"], harness.workspace, SeenFiles(), modalities
    )


@pytest.mark.parametrize("make", [png, gif, jpeg, lossy, lossless, extended])
async def test_pictures_are_measured_and_attached(harness: Harness, make: Callable[[int, int], bytes]) -> None:
    data = make(31, 7)
    harness.write("picture", data)
    sees(harness, EVERYTHING)
    result = await harness.run("read_file", path="picture")
    assert "31×7 pixels" in result.text
    (image,) = result.attachments
    assert isinstance(image, Image)
    assert image.media_type == "image/" + ("webp" if data.startswith(b"RIFF") else make.__name__)
    assert base64.b64decode(image.data) == data


async def test_a_model_without_eyes_is_told_what_it_is(harness: Harness) -> None:
    harness.write("plot.png", png(640, 480))
    result = await harness.run("read_file", path="plot.png")
    assert result.is_error
    assert "plot.png is a PNG image, 640×480 pixels" in result.text
    assert "can't see pictures" in result.text


async def test_pictures_that_no_provider_takes(harness: Harness) -> None:
    sees(harness, EVERYTHING)
    harness.write("wide.gif", gif(9_000, 10))
    harness.write("heavy.png", png(10, 10) + bytes(4_000_000))
    for name, said in (("wide.gif", "9000×10"), ("heavy.png", "4.0 MB; models can be shown at most")):
        with pytest.raises(ToolFailure, match=said):
            await harness.run("read_file", path=name)


@given(st.sampled_from([png(3, 2), jpeg(3, 2), lossy(3, 2), lossless(3, 2), extended(3, 2)]), st.data())
def test_a_broken_header_never_breaks_the_reader(whole: bytes, data: st.DataObject) -> None:
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    at = data.draw(st.integers(0, len(cut)))
    found = measured(cut[:at] + data.draw(st.binary(max_size=4)) + cut[at:])
    assert found is None or (found.width > 0 and found.height > 0)


async def test_the_pages_of_a_pdf(harness: Harness) -> None:
    harness.write("report.pdf", pdf("First page", "", "Third page"))
    result = await harness.run("read_file", path="report.pdf")
    assert result.text == ("[page 1]\nFirst page\n\n[page 2]\n(no text)\n\n[page 3]\nThird page\n\n[pages 1-3 of 3]")
    part = await harness.run("read_file", path="report.pdf", offset=1, limit=1)
    assert part.text == "[page 1]\nFirst page\n\n[page 1 of 3; go on with offset=2]"
    assert "there is no page 4" in (await harness.run("read_file", path="report.pdf", offset=4)).text


async def test_a_scanned_pdf_is_attached_or_said(harness: Harness) -> None:
    harness.write("scan.pdf", data := pdf("", ""))
    assert "probably scanned" in (await harness.run("read_file", path="scan.pdf")).text
    sees(harness, EVERYTHING)
    result = await harness.run("read_file", path="scan.pdf")
    assert not result.is_error
    (document,) = result.attachments
    assert isinstance(document, Document)
    assert (document.title, base64.b64decode(document.data)) == ("scan.pdf", data)


async def test_locked_and_broken_pdfs(harness: Harness) -> None:
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.encrypt("secret", algorithm="AES-256")
    writer.write(locked := io.BytesIO())
    harness.write("locked.pdf", locked.getvalue())
    harness.write("cut.pdf", pdf("Text")[:120])
    harness.write("empty.pdf", pdf())
    said = (await harness.run("read_file", path="locked.pdf")).text
    assert "password" in said or "another package" in said
    assert "as a PDF" in (await harness.run("read_file", path="cut.pdf")).text
    assert "without pages" in (await harness.run("read_file", path="empty.pdf")).text


@given(st.data())
def test_a_damaged_pdf_is_read_or_refused(data: st.DataObject) -> None:
    whole = pdf("Some text", "More text")
    at = data.draw(st.integers(0, len(whole) - 1))
    spoilt = whole[:at] + data.draw(st.binary(max_size=6)) + whole[at + data.draw(st.integers(0, 9)) :]
    try:
        result: ToolResult | ToolFailure = read_pdf(spoilt, "a.pdf", (1, 5), Modalities())
    except ToolFailure as error:
        result = error
    assert isinstance(result, ToolResult) or str(result).startswith("a.pdf")


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.xlsx", b"PK\x03\x04\0\0", "an Excel workbook"),
        ("a.zip", b"PK\x03\x04\0\0", "unpack it with a shell command"),
        ("a.docx", b"PK\x03\x04\0\0", "a Word document"),
        ("a.db", b"SQLite format 3\0", "query it with code or SQL"),
        ("a.parquet", b"PAR1\0\0", "a Parquet table"),
        ("a.mp3", b"ID3\x04\0\0\0\0\0\0", "are not supported"),
        ("a.mp4", b"\0\0\0\x20ftypisom\0\0\2\0", "a video"),
        ("a.avif", b"\0\0\0\x20ftypavif\0\0\0\0", "convert it"),
        ("a.wav", b"RIFF\0\0\0\0WAVEfmt \0", "a WAV"),
        ("a.tar", b"name" + bytes(253) + b"ustar\0", "a tar archive"),
        ("a.bmp", b"BM\0\0\0\0", "a BMP image"),
        ("a.bin", bytes(64), "a binary file"),
    ],
)
async def test_other_files_are_named_with_what_to_do(harness: Harness, name: str, data: bytes, said: str) -> None:
    harness.write(name, data)
    result = await harness.run("read_file", path=name)
    assert result.is_error
    assert said in result.text


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("cp932", "日本語のテキストです。"),
        ("euc_jp", "これは日本語の文章です。"),
        ("big5", "資料分析報告"),
        ("gb18030", "销售数据,合计,北京 100"),
        ("cp949", "이것은 긴 문장입니다. 데이터 분석 결과를 보고합니다. 매출과 합계를 확인하세요."),
        ("cp932", "設定ファイル"),
        ("cp1251", "Продажи, итого, Москва 100"),
        ("cp1251", "Привет, мир"),
        ("cp1253", "Καλημέρα κόσμε"),
        ("cp1252", "Größe: 10 €, schön – “quoted”"),
        ("cp1252", "größe"),
    ],
)
async def test_texts_of_old_encodings_stay_what_they_are(harness: Harness, codec: str, text: str) -> None:
    file = harness.write("old.txt", f"{text}\nend\n".encode(codec))
    result = await harness.run("read_file", path="old.txt")
    assert result.text == f"1\t{text}\n2\tend\n[encoding: {codec} (guessed)]"
    await harness.run("edit_file", path="old.txt", old_string="end", new_string=text[:3])
    assert file.read_bytes() == f"{text}\n{text[:3]}\n".encode(codec)
