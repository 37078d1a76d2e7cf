"""Which indentation the lines of an edit were written with: the file's, or that of the text it was to find.

An edit is re-indented only where that can be told for certain; else it would double or lose what stands in the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

OPENERS = (":", "{", "[", "(", "=>", "->", ">", " do", " then", "else", "begin", "try")
"""What a line ends with that may be followed by a deeper one."""
USUAL = 4
"""Columns of one level where the text itself has none to measure."""


def written_for(there: Sequence[str], wanted: Sequence[str], new: Sequence[str]) -> bool:
    """Whether ``new`` certainly has the indentation of the file, whose lines ``there`` were looked for as ``wanted``:
    lines that stay stand where the file has them, or line for line it is indented as the file is."""
    base, found = _base(there), _filled(new)
    if not found or base == _base(wanted) or _base(new) != base:
        return False
    if any(not line.startswith(base) for line in found):
        return False
    places = _places(there)
    stays = [line for line in found if line.strip() in places]
    if stays:
        return all(_stands(line, places) for line in stays)
    return [indent_of(line) for line in found] == [indent_of(line) for line in _filled(there)]


def written_beside(there: Sequence[str], wanted: Sequence[str], new: Sequence[str]) -> bool:
    """Whether ``new`` certainly has the indentation that ``wanted`` has: it begins as far left, and lines that stay say
    so, or it is indented line for line alike, or goes deeper by one level behind lines that open a block only."""
    found, ours, theirs = _filled(new), _places(there), _places(wanted)
    if _base(new) != _base(wanted) or (_stands(found[0], ours) and not _stands(found[0], theirs)):
        return False
    stays = [line for line in found if line.strip() in theirs]
    settled = all(_stands(line, theirs) or not _stands(line, ours) for line in stays)
    if settled and any(_stands(line, theirs) for line in stays if line is not found[0]):
        return True
    if [indent_of(line) for line in found] == [indent_of(line) for line in _filled(wanted)]:
        return True
    steps = [len(indent_of(after)) - len(indent_of(before)) for before, after in pairwise(_filled(wanted))]
    level = min((step for step in steps if step > 0), default=1 if "\t" in "".join(map(indent_of, wanted)) else USUAL)
    for before, after in pairwise(found):
        step = len(indent_of(after)) - len(indent_of(before))
        opened = step <= level and before.rstrip().endswith(OPENERS)
        if step > 0 and not opened and not _stands(after, theirs):
            return False
    return True


def reindented(line: str, indents: dict[str, str]) -> str | None:
    """``line`` with the indentation that ``indents`` (theirs to ours) leads to; None when that is not certain."""
    if not line.strip():
        return line.strip()
    indent = indent_of(line)
    if indent in indents:
        return indents[indent] + line[len(indent) :]
    shifts = {_shift(theirs, ours) for theirs, ours in indents.items()}
    shift = shifts.pop() if len(shifts) == 1 else None
    if shift is None:
        return None
    removed, added = shift
    if not indent.startswith(removed):
        return None
    return added + line[len(removed) :]


def _shift(theirs: str, ours: str) -> tuple[str, str] | None:
    """What to take from the front of an indentation and what to put there, to turn one into the other."""
    if ours.endswith(theirs):
        return "", ours[: len(ours) - len(theirs)]
    if theirs.endswith(ours):
        return theirs[: len(theirs) - len(ours)], ""
    return None


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _filled(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip()]


def _base(lines: Sequence[str]) -> str:
    """The indentation of the line that begins furthest left."""
    return min((indent_of(line) for line in _filled(lines)), key=len, default="")


def _places(lines: Sequence[str]) -> dict[str, set[str]]:
    """The indentations of each text among ``lines``."""
    found: dict[str, set[str]] = {}
    for line in _filled(lines):
        found.setdefault(line.strip(), set()).add(indent_of(line))
    return found


def _stands(line: str, places: Mapping[str, Collection[str]]) -> bool:
    """Whether the text of ``line`` is among ``places``, with the same indentation."""
    return indent_of(line) in places.get(line.strip(), ())
