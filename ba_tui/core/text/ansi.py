"""Parse colours and styles of terminal output (ECMA-48 SGR sequences), line by line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import _SEQUENCE, paintable
from ba_tui.core.values import frozen

Colour: TypeAlias = int | tuple[int, int, int] | None
"""An index into the 256-colour table, a red-green-blue triple, or None for the terminal's default."""


@frozen
class Ink:
    """Style of a run of text. Conceal and blink are ignored, so that hidden text stays readable."""

    fg: Colour = None
    bg: Colour = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    reverse: bool = False


PLAIN = Ink()
PLAYED = 4_000_000
Inked: TypeAlias = list[tuple[str, Ink]]
_SGR = regex(r"(?:\x1b\[|\x9b)([0-9;:]*)m")
_ERASE = regex(r"(?:\x1b\[|\x9b)([0-2]?)K")
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_OFF = {
    21: ("bold",),
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    27: ("reverse",),
    29: ("strike",),
}


def inked_lines(text: str) -> list[Inked]:
    """Parse command output into styled lines as a terminal would show them; overwritten progress lines keep their last
    state. All other sequences are removed. The text of each line is safe to paint."""
    lines: list[Inked] = []
    ink = PLAIN
    for line in text.replace("\r\n", "\n").split("\n"):
        if "\x1b" not in line and "\r" not in line and "\b" not in line and "\x9b" not in line:
            lines.append([(paintable(line), ink)] if line else [])
            continue
        pieces, ink = _pieces(line.rstrip("\r"), ink)
        erased = sum(isinstance(piece, int) for piece, _ in pieces)
        moved = erased or any(piece in ("\r", "\b") for piece, _ in pieces)
        # Each erase costs as much as the line is long, so lines with too many of them are not played.
        moved = moved and erased * len(line) < PLAYED
        runs = _overwritten(pieces) if moved else [(piece, of) for piece, of in pieces if isinstance(piece, str)]
        lines.append([(paintable(words), of) for words, of in runs if words])
    if lines and not lines[-1]:
        lines.pop()
    return lines


def _pieces(line: str, ink: Ink) -> tuple[list[tuple[str | int, Ink]], Ink]:
    """Return the pieces of a line with their style, and the style at its end. ``\\r`` and ``\\b`` move the cursor. A
    number erases: 0 to the right of the cursor, 1 to its left, 2 the whole line."""
    pieces: list[tuple[str | int, Ink]] = []
    for part in _parts(line):
        if sgr := _SGR.fullmatch(part):
            ink = _dipped(ink, sgr[1])
        elif erase := _ERASE.fullmatch(part):
            pieces.append((int(erase[1] or 0), ink))
        elif part and not _SEQUENCE.fullmatch(part):
            pieces += [(piece, ink) for piece in re.split("([\r\b])", part) if piece]
    return pieces, ink


def _parts(line: str) -> Iterator[str]:
    """Split ``line`` into escape sequences and the text between them."""
    last = 0
    for found in _SEQUENCE.finditer(line):
        yield line[last : found.start()]
        yield found[0]
        last = found.end()
    yield line[last:]


def _overwritten(pieces: list[tuple[str | int, Ink]]) -> Inked:
    """Play cursor moves with one character a column: enough for progress bars, spinners and overstriking."""
    cells: list[tuple[str, Ink]] = []
    at = 0
    for piece, ink in pieces:
        if piece == "\r":
            at = 0
        elif piece == "\b":
            at = max(0, at - 1)
        elif isinstance(piece, int):
            if piece == 0:
                del cells[at:]
            else:
                upto = len(cells) if piece == 2 else at
                cells[:upto] = [(" ", PLAIN)] * min(upto, len(cells))
        else:
            cells += [(" ", PLAIN)] * (at - len(cells))
            cells[at : at + len(piece)] = [(character, ink) for character in piece]
            at += len(piece)
    runs: Inked = []
    for character, ink in cells:
        if runs and runs[-1][1] == ink:
            runs[-1] = (runs[-1][0] + character, ink)
        else:
            runs.append((character, ink))
    if runs and runs[-1][1].bg is None and not runs[-1][1].reverse:
        runs[-1] = (runs[-1][0].rstrip(), runs[-1][1])
    return runs


@lru_cache(1024)
def _dipped(ink: Ink, codes: str) -> Ink:
    """Return ``ink`` after one SGR sequence."""
    numbers = [int(code) if code.isdigit() else 0 for code in re.split("[;:]", codes[:200])]
    index = 0
    while index < len(numbers):
        code = numbers[index]
        index += 1
        if code == 0:
            ink = PLAIN
        elif code in _ON:
            ink = replace(ink, **{_ON[code]: True})
        elif code in _OFF:
            ink = replace(ink, **dict.fromkeys(_OFF[code], False))
        elif code in (38, 48):
            colour, index = _extended(numbers, index)
            ink = replace(ink, fg=colour) if code == 38 else replace(ink, bg=colour)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            ink = replace(ink, fg=code - 30 if code < 90 else code - 82)
        elif 40 <= code <= 47 or 100 <= code <= 107:
            ink = replace(ink, bg=code - 40 if code < 100 else code - 92)
        elif code == 39:
            ink = replace(ink, fg=None)
        elif code == 49:
            ink = replace(ink, bg=None)
    return ink


def _extended(numbers: list[int], index: int) -> tuple[Colour, int]:
    """Return the colour after code 38 or 48, and the index of the next code."""
    kind = numbers[index] if index < len(numbers) else 0
    if kind == 5 and index + 1 < len(numbers):
        return min(numbers[index + 1], 255), index + 2
    if kind == 2 and index + 3 < len(numbers):
        red, green, blue = (min(value, 255) for value in numbers[index + 1 : index + 4])
        return (red, green, blue), index + 4
    return None, len(numbers)
