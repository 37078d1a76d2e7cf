"""Code in a reply: fenced blocks and spans between backticks. Their content may be an example."""

from __future__ import annotations

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

_FENCE = regex(r"(?m)^[ \t>]*+(?P<mark>`{3,}|~{3,})[ \t]*+(?P<label>[\w.+-]*)(?P<rest>[^\n]*)$")
_TICKS = regex(r"`++")
_LOOK_BACK = 2_000
MOST = 1_000
"""Blocks that are told from prose."""


@frozen
class Fence:
    """A block from ``start`` to ``end`` with ``inner`` to ``inner_end`` inside; ``label`` is in small letters."""

    start: int
    inner: int
    inner_end: int
    end: int
    label: str = ""


def fences(text: str) -> list[Fence]:
    """The fenced blocks of ``text``. One without an end reaches to the end of the text."""
    found: list[Fence] = []
    opened = None
    for line in _FENCE.finditer(text):
        if len(found) >= MOST:
            break
        mark, label, rest = line["mark"], line["label"], line["rest"].strip()
        if opened is None:
            if rest.endswith(mark) and len(rest) > len(mark):
                inner = line.start("rest")
                found.append(Fence(line.start(), inner, line.end() - len(mark), line.end(), label.lower()))
            elif "`" not in rest:
                opened = line
        elif mark.startswith(opened["mark"]) and not label and not rest:
            found.append(_block(opened.start(), opened.end(), line.start(), line.end(), opened["label"]))
            opened = None
    if opened is not None:
        found.append(_block(opened.start(), opened.end(), len(text), len(text), opened["label"]))
    return found


def _block(start: int, opened: int, closed: int, end: int, label: str) -> Fence:
    inner = min(opened + 1, closed)
    return Fence(start, inner, max(inner, closed), end, label.lower())


def in_span(text: str, at: int) -> bool:
    """Whether ``at`` stands between backticks of its line: a span ends with as many as it begins with."""
    line = text.rfind("\n", max(0, at - _LOOK_BACK), at) + 1 or max(0, at - _LOOK_BACK)
    opened = ""
    for run in _TICKS.finditer(text, line, at):
        opened = run[0] if not opened else "" if run[0] == opened else opened
    return bool(opened)
