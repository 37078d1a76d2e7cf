"""Tells the two forms of a patch apart, out of whatever a model wraps them in, and reads it.

The forms themselves are patch_unified.py and patch_envelope.py.
"""

from __future__ import annotations

from ba_tui.core.text.patterns import regex
from ba_tui.tools.editing.patch_envelope import BEGIN, read_envelope
from ba_tui.tools.editing.patch_parts import FilePatch
from ba_tui.tools.editing.patch_unified import read_unified
from ba_tui.tools.failed import Failed

_HEREDOC = regex(r"\s*(?:apply_patch\s+)?<<-?\s*(['\"]?)(\w+)\1\s*")
_FENCE = regex(r"\s*(`{3,}|~{3,})\s*\w*\s*")
_FORMS = "Give a unified diff (--- a/file, +++ b/file, @@), or *** Begin Patch … *** End Patch."


def read_patch(text: str) -> list[FilePatch]:
    """The files of a patch, in its order.

    Raises:
        Failed: it is no patch, is cut off, or asks for what can't be done; says in which line.
    """
    lines, first = _unwrapped(text)
    if not lines:
        raise Failed("invalid_parameters", "The patch is empty.", _FORMS)
    files = read_envelope(lines, first) if lines[0].strip() == BEGIN else read_unified(lines, first)
    if not files:
        raise Failed("invalid_parameters", "The patch names no file.", _FORMS)
    return files


def _unwrapped(text: str) -> tuple[list[str], int]:
    """Its lines without blank ones, a code fence or a here-document around them, and the number of the first."""
    lines = text.split("\n")
    start, end = 0, len(lines)
    if end and lines[-1] == "":
        end -= 1
    while True:
        while start < end and not lines[start].strip():
            start += 1
        last = end
        while last > start and not lines[last - 1].strip():
            last -= 1
        if last - start < 2:
            break
        opening, closing = lines[start], lines[last - 1].strip()
        fence, here = _FENCE.fullmatch(opening), _HEREDOC.fullmatch(opening)
        if not (fence and closing == fence[1]) and not (here and closing == here[2]):
            break
        start, end = start + 1, last - 1
    return lines[start:end], start + 1
