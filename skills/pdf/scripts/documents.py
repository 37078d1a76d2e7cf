"""PDF files and page numbers. No script: text.py and pages.py use it."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

from workspace import Args, Refused, option, shown

try:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError
except ModuleNotFoundError:
    sys.exit("error: the package pypdf is not installed; it stands in requirements.txt of this skill")

logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def opened(path: Path, args: Args) -> PdfReader:
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(option(args, "password", str, "")):
            raise Refused(f'{shown(path)} is locked: ask the user for its "password"')
        len(reader.pages)
    except (PyPdfError, DependencyError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise Refused(f"{shown(path)} cannot be read as a PDF: {error}") from None
    return reader


def chosen(args: Args, count: int, key: str = "pages") -> list[int]:
    """ "1-3,7" as numbers, in that order; "8-" goes to the end; nothing is all."""
    numbers: list[int] = []
    for part in option(args, key, str, f"1-{count}").replace(" ", "").split(","):
        match = re.fullmatch(r"(\d+)(?:(-)(\d*))?", part)
        first = int(match[1]) if match else 0
        last = int(match[3] or count) if match and match[2] else first
        if not match or not 1 <= first <= last <= count:
            raise Refused(f"{part!r} is no page of 1 to {count}; write it as 1-3,7")
        numbers.extend(range(first, last + 1))
    return numbers
