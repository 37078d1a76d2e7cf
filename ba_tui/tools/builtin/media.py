"""Files that are not text, for read_file: pictures, PDF files, and what other binary files are.

Pictures are not decoded: their size comes from the header.
"""

from __future__ import annotations

import base64
import hashlib
import io
import logging
import time
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.messages import Document, Image
from ba_tui.core.provider import Modalities
from ba_tui.core.results import Prose, ToolResult
from ba_tui.core.text.wording import byte_size
from ba_tui.core.values import frozen
from ba_tui.processes.terminal_text import unescaped
from ba_tui.tools.failures import ToolFailure

if TYPE_CHECKING:
    from pypdf import PdfReader


ATTACHED = 3_750_000
"""Bytes of one attachment: five million as base64, the limit of providers."""


SMALLER = "Make a smaller copy, for example: magick IN.png -resize 2000x2000 OUT.png."
LONGEST_SIDE = 8_000
"""Pixels of the longest side that providers accept."""
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_ALONE = {0x01, *range(0xD0, 0xD9)}


@frozen
class Picture:
    media_type: str
    width: int
    height: int

    @property
    def shown(self) -> str:
        return f"a {self.media_type.removeprefix('image/').upper()} image, {self.width}×{self.height} pixels"


def is_picture(head: bytes) -> bool:
    """Return whether a file that starts with ``head`` is a picture that models can see."""
    return head.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")) or (
        head.startswith(b"RIFF") and head[8:12] == b"WEBP"
    )


def read_picture(data: bytes, shown: str, modalities: Modalities) -> ToolResult:
    """Return a result with the picture attached. Raises ToolFailure if the model can't see the picture."""
    picture = measured(data)
    if picture is None:
        message = f"{shown} begins like a picture, but its header is broken ({byte_size(len(data))})."
        raise ToolFailure("validation_error", message, "Create it again, or open it with another program.")
    what = f"{shown} is {picture.shown}, {byte_size(len(data))}"
    if not modalities.pictures():
        raise ToolFailure(
            "validation_error",
            f"{what}. The model in use can't see pictures.",
            "Say what it shows in words, or choose a model that sees pictures: /model.",
        )
    if why := _too_large(picture, len(data)):
        raise ToolFailure("resource_error", f"{what}; {why}.", SMALLER)
    return ToolResult(
        f"{what}. It is attached.",
        summary=f"{picture.width}×{picture.height}",
        attachments=(attached(picture, data),),
    )


def kept_picture(folder: Path, data: bytes) -> str:
    """Write a picture into ``folder`` of the session and return its name for mentions.

    Raises:
        UsageError: models can't see it. StorageError: it can't be written.
    """
    picture = measured(data)
    if picture is None:
        raise UsageError("This picture is not a PNG, JPEG, GIF or WebP file.", "Convert it to PNG.")
    if why := _too_large(picture, len(data)):
        raise UsageError(f"The picture has {byte_size(len(data))}; {why}.", SMALLER)
    name = f"image-{hashlib.sha256(data).hexdigest()[:8]}.{picture.media_type.removeprefix('image/')}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o600)
    except OSError as error:
        raise StorageError(
            f"The picture can't be kept: {error.strerror or error}.", "Make room on the disk."
        ) from error
    return f"{folder.name}/{name}"


def _too_large(picture: Picture, size: int) -> str:
    """Return why models can't see the picture; empty when they can."""
    if size <= ATTACHED and max(picture.width, picture.height) <= LONGEST_SIDE:
        return ""
    return f"models can be shown at most {byte_size(ATTACHED)} and {LONGEST_SIDE} pixels a side"


def attached(picture: Picture, data: bytes) -> Image:
    return Image(picture.media_type, base64.b64encode(data).decode("ascii"))


def pixels(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a picture; None when its header can't be read."""
    picture = measured(data)
    return (picture.width, picture.height) if picture else None


def measured(data: bytes) -> Picture | None:
    """Return type and size of a picture; None when its header can't be read."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        return _picture("png", _big(data, 16, 4), _big(data, 20, 4))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return _picture("gif", _little(data, 6, 2), _little(data, 8, 2))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp(data)
    return _jpeg(data) if data.startswith(b"\xff\xd8\xff") else None


def _picture(kind: str, width: int, height: int) -> Picture | None:
    return Picture(f"image/{kind}", width, height) if width and height else None


def _webp(data: bytes) -> Picture | None:
    match data[12:16]:
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            return _picture("webp", _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF)
        case b"VP8L" if data[20:21] == b"\x2f" and len(data) >= 25:
            bits = _little(data, 21, 4)
            return _picture("webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X" if len(data) >= 30:
            return _picture("webp", _little(data, 24, 3) + 1, _little(data, 27, 3) + 1)
        case _:
            return None


def _jpeg(data: bytes) -> Picture | None:
    """Find the segment that begins the frame: it has the size."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _FRAMES:
            return _picture("jpeg", _big(data, at + 7, 2), _big(data, at + 5, 2))
        if marker == 0xFF:
            at += 1
        else:
            at += 2 if marker in _ALONE else 2 + max(2, _big(data, at + 2, 2))
    return None


def _big(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _little(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


_LOOK = "Look at it with a program that reads it."
_UNPACK = "List or unpack it with a shell command, then read what is in it."
_DATA = "It is data, not text: query it with code or SQL, if a suitable tool is available."
_OFFICE = "Convert it to text with a program that reads it, if one is installed."
_SOUND = "Audio and video are not supported: no tool here plays or transcribes them."
_PICTURE = "Only PNG, JPEG, GIF and WebP can be shown: convert it with a program."
_PROGRAM = "Its source tells more; strings or a disassembler are for the shell."

_BY_START = (
    (b"SQLite format 3", "an SQLite database", _DATA),
    (b"PAR1", "a Parquet table", _DATA),
    (b"ARROW1", "an Arrow table", _DATA),
    (b"OggS", "an Ogg audio or video file", _SOUND),
    (b"fLaC", "a FLAC audio file", _SOUND),
    (b"ID3", "an MP3 audio file", _SOUND),
    (b"\xff\xfb", "an MP3 audio file", _SOUND),
    (b"\x1aE\xdf\xa3", "a Matroska or WebM video", _SOUND),
    (b"\x1f\x8b", "a gzip archive", _UNPACK),
    (b"BZh", "a bzip2 archive", _UNPACK),
    (b"\xfd7zXZ\0", "an xz archive", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"\x7fELF", "a program", _PROGRAM),
    (b"MZ", "a Windows program", _PROGRAM),
    (b"\xca\xfe\xba\xbe", "a compiled Java class or a program", _PROGRAM),
    (b"\0asm", "a WebAssembly program", _PROGRAM),
    (b"BM", "a BMP image", _PICTURE),
    (b"II*\0", "a TIFF image", _PICTURE),
    (b"MM\0*", "a TIFF image", _PICTURE),
    (b"\0\0\x01\0", "an icon", _PICTURE),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", _OFFICE),
)
_BY_NAME = {
    "xlsx": ("an Excel workbook", _DATA),
    "xlsm": ("an Excel workbook", _DATA),
    "xls": ("an Excel workbook", _DATA),
    "ods": ("a spreadsheet", _DATA),
    "duckdb": ("a DuckDB database", _DATA),
    "npy": ("a NumPy array", _DATA),
    "npz": ("NumPy arrays", _DATA),
    "docx": ("a Word document", _OFFICE),
    "pptx": ("a PowerPoint presentation", _OFFICE),
    "odt": ("a text document of an office program", _OFFICE),
    "epub": ("an e-book", _UNPACK),
    "jar": ("a Java archive", _UNPACK),
    "whl": ("a Python package", _UNPACK),
    "pyc": ("compiled Python", _PROGRAM),
}


def no_text(head: bytes, shown: str, size: int, kind: str) -> ToolFailure:
    """Return the error for a file that is not text: its kind, by suffix or first bytes, and how to read it.
    ``kind``: the result of ``binary_kind``."""
    hint = _LOOK
    suffix = shown.rpartition(".")[2].lower()
    if suffix in _BY_NAME:
        kind, hint = _BY_NAME[suffix]
    elif head.startswith(b"PK\x03\x04"):
        kind, hint = "a zip archive", _UNPACK
    elif head[257:262] == b"ustar":
        kind, hint = "a tar archive", _UNPACK
    elif head[4:8] == b"ftyp":
        brand = head[8:12]
        kind, hint = ("an AVIF or HEIC image", _PICTURE) if brand[:2] in {b"av", b"he", b"mi"} else ("a video", _SOUND)
    elif head.startswith(b"RIFF"):
        kind, hint = "a WAV or AVI file", _SOUND
    else:
        for start, name, advice in _BY_START:
            if head.startswith(start):
                kind, hint = name, advice
                break
    return ToolFailure("validation_error", f"{shown} is {kind} ({byte_size(size)}), not text.", hint)


MAX_PAGES = 50
MAX_CHARS = 28_000
SECONDS = 20.0
"""Time limit for the text of a document, checked after each page."""
MAX_ATTACHED_PAGES = 100


def read_pdf(data: bytes, shown: str, pages: tuple[int, int], modalities: Modalities) -> ToolResult:
    """Return the text of ``pages``: the first page, from 1, and their number at most. Raises ToolFailure."""
    first, limit = pages
    reader, total = _opened(data, shown)
    if first > total:
        raise ToolFailure(
            "validation_error", f"{shown} has {total} pages; there is no page {first}.", "Use a smaller offset."
        )
    texts = _texts(reader, range(first - 1, min(total, first - 1 + min(limit, MAX_PAGES))))
    last = first + len(texts) - 1
    span = f"page {first}" if first == last else f"pages {first}-{last}"
    if not any(texts):
        return _without_text(data, shown, f"{span} of {total}", modalities, total)
    parts = [f"[page {number}]\n{text or '(no text)'}" for number, text in enumerate(texts, first)]
    note = f"[{span} of {total}{f'; go on with offset={last + 1}' if last < total else ''}]"
    body = "\n\n".join(parts)
    return ToolResult(f"{body}\n\n{note}", Prose(body), summary=f"{len(texts)} of {total} pages")


def _opened(data: bytes, shown: str) -> tuple[PdfReader, int]:
    """Open a PDF and count its pages. Raises ToolFailure for a broken or locked file."""
    from pypdf import PdfReader  # noqa: PLC0415 - heavy, and only needed for a PDF
    from pypdf.errors import DependencyError  # noqa: PLC0415 - as above

    # The library logs each flaw of a document, which readers do not need.
    log = logging.getLogger("pypdf")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
        log.propagate = False
    try:
        reader = PdfReader(io.BytesIO(data))
        locked = reader.is_encrypted and not reader.decrypt("")
        total = 0 if locked else len(reader.pages)
    except DependencyError as error:
        message = f"{shown} is encrypted in a way that needs another package: {error}."
        raise ToolFailure("dependency_error", message, "Tell the user; an unprotected copy would do.") from error
    except Exception as error:
        message = f"{shown} can't be read as a PDF: {_brief(error)}."
        raise ToolFailure("validation_error", message, "It may be damaged or cut off; ask for another copy.") from error
    if locked:
        message = f"{shown} is protected by a password."
        raise ToolFailure("permission_denied", message, "Ask the user for a copy without a password.")
    if not total:
        raise ToolFailure("validation_error", f"{shown} is a PDF without pages.")
    return reader, total


def _texts(reader: PdfReader, numbers: range) -> Sequence[str]:
    """Return the text of the pages that fit into a result, at least one."""
    texts: list[str] = []
    size, start = 0, time.monotonic()
    for number in numbers:
        try:
            text = unescaped(reader.pages[number].extract_text()).strip()
        except Exception as error:  # noqa: BLE001 - as in _opened; the other pages may be whole
            text = f"(this page can't be read: {_brief(error)})"
        if texts and size + len(text) > MAX_CHARS:
            break
        if len(text) > MAX_CHARS:
            text = f"{text[:MAX_CHARS]}… [page cut at {MAX_CHARS} characters]"
        texts.append(text)
        size += len(text)
        if time.monotonic() - start > SECONDS:
            break
    return texts


def _without_text(data: bytes, shown: str, span: str, modalities: Modalities, total: int) -> ToolResult:
    """Attach a scanned document if the model's provider accepts whole documents; else raise ToolFailure."""
    what = f"{shown}, {span}: no text, so the pages are probably scanned"
    if modalities.documents() and len(data) <= ATTACHED and total <= MAX_ATTACHED_PAGES:
        document = Document("application/pdf", base64.b64encode(data).decode("ascii"), PurePath(shown).name)
        return ToolResult(
            f"{what}. The document itself is attached.", summary=f"{total} pages", attachments=(document,)
        )
    why = "The model in use can't be given PDF files"
    if modalities.documents():
        why = f"It is too large to be attached ({byte_size(len(data))}, {total} pages)"
    raise ToolFailure("validation_error", f"{what}. {why}.", "Text recognition is needed; tell the user.")


def _brief(error: Exception) -> str:
    words = " ".join(str(error).split())[:200].rstrip(".")
    return words or type(error).__name__
