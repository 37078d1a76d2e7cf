"""Which media the model in use accepts beside text. Asked anew for each call: the model may change between turns.

Reading the files is images.py, pdf.py and notebooks.py.
"""

from __future__ import annotations

from collections.abc import Callable

from ba_tui.core.values import frozen


def _never() -> bool:
    return False


@frozen
class Modalities:
    """``pictures``: it sees images; ``documents``: its provider takes whole PDF files."""

    pictures: Callable[[], bool] = _never
    documents: Callable[[], bool] = _never


ATTACHED = 3_750_000
"""Bytes of one attachment: five million as base64, which is what providers take."""
