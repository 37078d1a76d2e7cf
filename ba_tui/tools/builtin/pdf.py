"""PDF files for read_file: the text of their pages, and the file itself where only a model could read it.

Other documents are not read; what they are is said by binary_kinds.py.
"""

from __future__ import annotations

import base64
import io
import logging
import time
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from ba_tui.core.messages import Document
from ba_tui.core.results import Prose, ToolResult
from ba_tui.core.text.wording import byte_size
from ba_tui.processes.terminal_text import unescaped
from ba_tui.tools.failed import Failed
from ba_tui.tools.modalities import ATTACHED, Modalities

if TYPE_CHECKING:
    from pypdf import PdfReader

MAX_PAGES = 50
MAX_CHARS = 28_000
SECONDS = 20.0
"""Enough for any honest document; checked between pages."""
MAX_ATTACHED_PAGES = 100


def read_pdf(data: bytes, shown: str, pages: tuple[int, int], modalities: Modalities) -> ToolResult:
    """The text of ``pages``: the first, from 1, and how many at most. Raises Failed."""
    first, limit = pages
    reader, total = _opened(data, shown)
    if first > total:
        raise Failed(
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
    """Raises Failed for what is broken or locked."""
    from pypdf import PdfReader  # noqa: PLC0415 - heavy, and only needed for a PDF
    from pypdf.errors import DependencyError  # noqa: PLC0415 - as above

    # The library tells of every flaw it passes over; nobody who reads a document needs that.
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
        raise Failed("dependency_error", message, "Tell the person; an unprotected copy would do.") from error
    except Exception as error:
        message = f"{shown} can't be read as a PDF: {_brief(error)}."
        raise Failed("validation_error", message, "It may be damaged or cut off; ask for another copy.") from error
    if locked:
        message = f"{shown} is protected by a password."
        raise Failed("permission_denied", message, "Ask the person for a copy without a password.")
    if not total:
        raise Failed("validation_error", f"{shown} is a PDF without pages.")
    return reader, total


def _texts(reader: PdfReader, numbers: range) -> Sequence[str]:
    """The text of the pages as far as it fits, at least of one."""
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
    """Pages that are pictures only: the model may see them, if its provider takes the whole document."""
    what = f"{shown}, {span}: no text, so the pages are probably scanned"
    if modalities.documents() and len(data) <= ATTACHED and total <= MAX_ATTACHED_PAGES:
        document = Document("application/pdf", base64.b64encode(data).decode("ascii"), PurePath(shown).name)
        return ToolResult(
            f"{what}. The document itself is attached.", summary=f"{total} pages", attachments=(document,)
        )
    why = "The model in use can't be given PDF files"
    if modalities.documents():
        why = f"It is too large to be attached ({byte_size(len(data))}, {total} pages)"
    raise Failed("validation_error", f"{what}. {why}.", "Text recognition is needed; tell the person.")


def _brief(error: Exception) -> str:
    words = " ".join(str(error).split())[:200].rstrip(".")
    return words or type(error).__name__
