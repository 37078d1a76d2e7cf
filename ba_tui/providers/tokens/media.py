"""About how many tokens pictures and documents have, by their size. How a picture's size is read is not known here."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable

from ba_tui.core.messages import Document, Image
from ba_tui.core.text.patterns import regex
from ba_tui.providers.tokens.config import Family

Pixels = Callable[[bytes], tuple[int, int] | None]
"""Width and height of a picture from its first bytes; None when they can't be read."""
HEADER = 400_000
"""Base64 characters in which a picture says its size."""
PAGE = 2_000
"""Tokens of a PDF's page: its words, and for some vendors a picture of it."""
PAGE_BYTES = 400_000
"""A PDF of this size has at least a page, however it is packed."""
_PAGES = regex(rb"/Type\s*/Page(?![A-Za-z])")
_CLAUDE_SIDE, _CLAUDE_PIXELS, _CLAUDE_MOST = 1_568, 750, 1_600
_GPT_SIDE, _GPT_SHORT, _GPT_TILE = 2_048, 768, 512
_GEMINI_SMALL, _GEMINI_TILE, _GEMINI_TOKENS = 384, 768, 258


def unmeasured(data: bytes) -> None:
    """For where nobody reads pictures."""


def picture_tokens(image: Image, family: Family, pixels: Pixels) -> int:
    """What ``family`` takes for a picture of that size; where the size is unknown, for a large one."""
    size = pixels(_decoded(image.data[:HEADER])) if image.data else None
    width, height = size or (1_600, 1_200)
    if family is Family.GPT:
        return _gpt(width, height)
    if family is Family.GEMINI:
        small = max(width, height) <= _GEMINI_SMALL
        tiles = 1 if small else math.ceil(width / _GEMINI_TILE) * math.ceil(height / _GEMINI_TILE)
        return tiles * _GEMINI_TOKENS
    shrink = min(1.0, _CLAUDE_SIDE / max(width, height))
    return min(_CLAUDE_MOST, max(1, round(width * shrink * height * shrink / _CLAUDE_PIXELS)))


def _gpt(width: int, height: int) -> int:
    shrink = min(1.0, _GPT_SIDE / max(width, height))
    width, height = round(width * shrink), round(height * shrink)
    shrink = min(1.0, _GPT_SHORT / min(width, height)) if min(width, height) else 1.0
    tiles = math.ceil(width * shrink / _GPT_TILE) * math.ceil(height * shrink / _GPT_TILE)
    return 85 + 170 * max(1, tiles)


def document_text(document: Document) -> str | None:
    """The words of a plain text document; None when it is of another kind."""
    if not document.media_type.startswith("text/"):
        return None
    return _decoded(document.data).decode("utf-8", "replace")


def document_tokens(document: Document) -> int:
    """By its pages; where they are packed away, by its size."""
    data = _decoded(document.data)
    return PAGE * max(1, len(_PAGES.findall(data)), len(data) // PAGE_BYTES)


def _decoded(data: str) -> bytes:
    whole = data[: len(data) - len(data) % 4]
    try:
        return base64.b64decode(whole)
    except (binascii.Error, ValueError):
        return b""
