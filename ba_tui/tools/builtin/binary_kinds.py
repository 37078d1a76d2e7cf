"""Says of what kind a file is that is not text, by its first bytes or its suffix, and how it can be read instead.

Telling text from bytes is documents.py.
"""

from __future__ import annotations

from ba_tui.core.text.wording import byte_size
from ba_tui.tools.failed import Failed

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


def no_text(head: bytes, shown: str, size: int, kind: str) -> Failed:
    """The refusal to read or edit a file as text; ``kind`` is what ``binary_kind`` calls it."""
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
    return Failed("validation_error", f"{shown} is {kind} ({byte_size(size)}), not text.", hint)
