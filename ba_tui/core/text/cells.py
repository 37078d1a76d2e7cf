"""Fit text into terminal cells: measure it, cut it with a mark at the cut, and fill it up. Pure.

``wording.clipped`` does so by characters, for text that is not painted in columns.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len, set_cell_size, split_graphemes

ELLIPSIS = "…"
LEAST_MIDDLE = 12
"""Cells below which nothing is cut out of the middle."""


def has_few_characters(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal is a console without Braille, block characters and most other signs."""
    return environ.get("TERM", "") in {"linux", "dumb", "vt100", "vt102", "vt220"}


def width_of(text: str) -> int:
    """Return the cells that printable ``text`` takes."""
    return len(text) if text.isascii() else cell_len(text)


def hard_cuts(text: str, width: int) -> list[tuple[int, int]]:
    """Cut after every ``width`` cells, never within what a reader sees as one character."""
    width = max(1, width)
    if text.isascii():
        return [(at, min(at + width, len(text))) for at in range(0, len(text), width)] or [(0, 0)]
    found: list[tuple[int, int]] = []
    start, used = 0, 0
    # A joiner changes what its neighbours take, so that their sizes do not add up.
    joined = "\u200d" in text
    for begin, end, size in split_graphemes(text)[0]:
        wide = cell_len(text[start:end]) if joined else used + size
        if begin > start and wide > width:
            found.append((start, begin))
            start, wide = begin, size
        used = wide
    found.append((start, len(text)))
    return found


def clip(text: str, width: int, more: str = ELLIPSIS) -> str:
    """Return ``text`` in at most ``width`` cells, cut at its end."""
    if cell_len(text) <= width:
        return text
    room = width - cell_len(more)
    if room <= 0:
        return more[: max(0, width)]
    start, end = hard_cuts(text, room)[0]
    kept = text[start:end].rstrip()
    return kept + more if cell_len(kept) <= room else more


def clip_start(text: str, width: int, more: str = ELLIPSIS) -> str:
    """Return ``text``, such as a path, in at most ``width`` cells, cut at its start."""
    return text if cell_len(text) <= width else more + _end_of(text, width - cell_len(more))


def clip_middle(text: str, width: int, more: str = ELLIPSIS) -> str:
    """Return ``text``, such as a path, in at most ``width`` cells: its end, and of its start what there is room for."""
    if cell_len(text) <= width or width < LEAST_MIDDLE:
        return clip(text, width, more)
    room = width - cell_len(more)
    head = text[: hard_cuts(text, room // 3)[0][1]]
    return head + more + _end_of(text, room - cell_len(head))


def _end_of(text: str, width: int) -> str:
    start = len(text)
    for begin, _end, size in reversed(split_graphemes(text)[0]):
        width -= size
        if width < 0:
            break
        start = begin
    return text[start:]


def fit(text: str, width: int, *, right: bool = False, more: str = ELLIPSIS) -> str:
    """Return ``text`` in exactly ``width`` cells, cut at its end or filled with spaces; ``right`` aligns it there."""
    size = width_of(text)
    if size > width:
        kept = width - len(more)
        return set_cell_size(text, kept) + more if kept > 0 else set_cell_size(text, max(0, width))
    return " " * (width - size) + text if right else text + " " * (width - size)


def fit_words(text: str, width: int) -> str:
    """Return ``text`` in exactly ``width`` cells, cut between words unless much would be lost."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    kept = set_cell_size(text, width - 1)
    whole, _, part = kept.rpartition(" ")
    goes_on = text[len(kept) : len(kept) + 1].strip()
    if text.startswith(kept) and goes_on and whole.strip() and cell_len(part) <= width // 3:
        kept = whole
    return set_cell_size(f"{kept.rstrip()}{ELLIPSIS}", width)
