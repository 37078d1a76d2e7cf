"""What the model in use can take in beside text. Asked anew for each call: the model may change between turns.

Reading the files is images.py, pdf.py and notebooks.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Senses:
    """``pictures``: it sees images; ``documents``: its provider takes whole PDF files."""

    pictures: Callable[[], bool] = _never
    documents: Callable[[], bool] = _never


ATTACHED = 3_750_000
"""Bytes of one attachment: five million as base64, which is what providers take."""


def size_in_words(size: int) -> str:
    """``830 bytes``, ``12 kB``, ``3.4 MB``."""
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1_000:.0f} kB" if size < 999_500 else f"{size / 1_000_000:.1f} MB"
