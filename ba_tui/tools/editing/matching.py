"""Finds the text that an exact replacement means: exactly, or with other white space if that is certain.

No I/O; all line ends are ``\\n``. An uncertain match is an error that shows the candidates, never an edit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import nearest
from ba_tui.core.values import frozen
from ba_tui.tools.editing.documents import Splice, shared_ends
from ba_tui.tools.failures import ToolFailure

# Re-indentation. An edit may be written with the indentation of the file, or with that of its search text. It is
# re-indented only if this is certain; otherwise indentation would be doubled or lost.

OPENERS = (":", "{", "[", "(", "=>", "->", ">", " do", " then", "else", "begin", "try")
"""Endings of a line that may be followed by a deeper one."""
USUAL = 4
"""Columns of one level if the text has no indented lines."""


def written_for(there: Sequence[str], wanted: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether ``new`` certainly has the indentation of the file, where the search text ``wanted`` matched
    ``there``: unchanged lines are indented as in the file, or each line is."""
    base, found = _base(there), _filled(new)
    if not found or base == _base(wanted) or _base(new) != base:
        return False
    if any(not line.startswith(base) for line in found):
        return False
    places = _line_places(there)
    stays = [line for line in found if line.strip() in places]
    if stays:
        return all(_stands(line, places) for line in stays)
    return [indent_of(line) for line in found] == [indent_of(line) for line in _filled(there)]


def written_beside(there: Sequence[str], wanted: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether ``new`` certainly has the indentation of ``wanted``: both begin in the same column, and
    unchanged lines, or all lines, are indented alike, or go deeper only after lines that open a block."""
    found, ours, theirs = _filled(new), _line_places(there), _line_places(wanted)
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
    """Return ``line`` indented by ``indents`` (from the edit's to the file's indentation); None if that is
    uncertain."""
    if not line.strip():
        return line.strip()
    indent = indent_of(line)
    if indent in indents:
        return indents[indent] + line[len(indent) :]
    match list({_shift(theirs, ours) for theirs, ours in indents.items()}):
        case [(removed, added)] if indent.startswith(removed):
            return added + line[len(removed) :]
        case _:
            return None


def _shift(theirs: str, ours: str) -> tuple[str, str] | None:
    """Return the prefix to remove from an indentation and the prefix to add, to turn one into the other."""
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
    """Return the smallest indentation."""
    return min((indent_of(line) for line in _filled(lines)), key=len, default="")


def _line_places(lines: Sequence[str]) -> dict[str, set[str]]:
    """Return the indentations with which each text occurs in ``lines``."""
    found: dict[str, set[str]] = {}
    for line in _filled(lines):
        found.setdefault(line.strip(), set()).add(indent_of(line))
    return found


def _stands(line: str, places: Mapping[str, Collection[str]]) -> bool:
    """Return whether ``places`` has the text of ``line`` with the same indentation."""
    return indent_of(line) in places.get(line.strip(), ())


SHOWN_LINES = 8
LINE_CHARS = 200
COMPARED_LINES = 200
ALIKE = 0.6
_WORD = regex(r"\w+")
_NUMBERED = regex(r"^ *(\d+)\t")


@frozen
class Edit:
    """``note``: what was tolerated to find the place; empty for an exact match."""

    changes: tuple[Splice, ...]
    note: str = ""


def find_edit(text: str, old: str, new: str, *, replace_all: bool = False) -> Edit:
    """Return the changes that replace ``old`` with ``new`` in ``text``.

    Raises:
        ToolFailure: nothing matches, several places do, or the match is not certain.
    """
    if not old:
        raise ToolFailure("invalid_parameters", "old_string is empty.", "Give the text to replace, or use write_file.")
    if old == new:
        raise ToolFailure("invalid_parameters", "old_string and new_string are the same: nothing would change.")
    places = _places(text, old)
    if any(_deeper(text, at, old, new) for at in places):
        try:
            return _tolerant(text, old, new, replace_all=replace_all)
        except ToolFailure as error:
            line = text.count("\n", 0, places[0]) + 1
            message = (
                f"old_string is at line {line}, but indented deeper, so the indentation of new_string is uncertain."
            )
            raise ToolFailure(
                "validation_error", message, "Give whole lines with the indentation of the file."
            ) from error
    if any(_doubled(text, at, old, new) for at in places):
        message = "new_string begins with the indentation that precedes old_string in the file, and would double it."
        raise ToolFailure("validation_error", message, "Give both as whole lines, with the indentation of the file.")
    if places:
        return Edit(_exact(text, places, (old, new), replace_all=replace_all))
    plain_old = _without_numbers(old)
    if plain_old and (places := [at for at in _places(text, plain_old) if _fills_lines(text, at, plain_old)]):
        pair = (plain_old, _numbers_left_out(new))
        return Edit(_exact(text, places, pair, replace_all=replace_all), "line numbers left out of old_string")
    return _tolerant(text, old, new, replace_all=replace_all)


def _places(text: str, old: str) -> list[int]:
    """Return every place of ``old``, overlapping ones too, except where an accent follows its last letter."""
    found: list[int] = []
    at = text.find(old)
    while at >= 0:
        if not unicodedata.combining(text[at + len(old) : at + len(old) + 1] or "."):
            found.append(at)
        at = text.find(old, at + 1)
    return found


def _fills_lines(text: str, at: int, old: str) -> bool:
    """Return whether ``old`` fills whole lines there, as text copied with line numbers does."""
    end = at + len(old)
    return (at == 0 or text[at - 1] == "\n") and (end == len(text) or text[end] == "\n" or old.endswith("\n"))


def _numbers_left_out(new: str) -> str:
    """Return ``new`` without line numbers, for an ``old`` that had some. Raises ToolFailure if they can't be told
    from the text."""
    if (plain := _without_numbers(new)) is not None:
        return plain
    if any(map(_NUMBERED.match, new.split("\n"))):
        message = "new_string has line numbers on some lines, or not in order, so what is to be written is unsure."
        raise ToolFailure("validation_error", message, "Leave the line numbers out of old_string and new_string.")
    return new


def _deeper(text: str, at: int, old: str, new: str) -> bool:
    """Return whether the file's line is indented deeper than ``old``, so that several lines of ``new`` would be
    ragged."""
    if old[0] not in " \t" or "\n" not in new.rstrip("\n"):
        return False
    start = at
    while start and text[start - 1] in " \t":
        start -= 1
    return start < at and (not start or text[start - 1] == "\n")


def _doubled(text: str, at: int, old: str, new: str) -> bool:
    """Return whether ``old`` begins after its line's indentation and ``new`` repeats that indentation."""
    indent = text[text.rfind("\n", 0, at) + 1 : at]
    fresh = indent and not indent.strip() and not old[0].isspace()
    return bool(fresh and new.strip()) and indent_of(new).startswith(indent)


def _exact(text: str, places: Sequence[int], pair: tuple[str, str], *, replace_all: bool) -> tuple[Splice, ...]:
    old, new = pair
    if len(places) > 1 and not replace_all:
        raise _ambiguous(text, [text.count("\n", 0, at) for at in places[:SHOWN_LINES]], len(places))
    changes: list[Splice] = []
    for at in places:
        if not changes or at >= changes[-1].end:
            changes.append(Splice(at, at + len(old), new))
    return tuple(changes)


def _without_numbers(text: str) -> str | None:
    """Return ``text`` without the line numbers of read_file if all lines have consecutive ones; else None."""
    lines = text.split("\n")
    body = lines[:-1] if lines[-1] == "" and len(lines) > 1 else lines
    matches = [_NUMBERED.match(line) for line in body]
    numbers = [int(match[1]) for match in matches if match]
    if len(numbers) != len(body) or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    return "\n".join(
        [*(line[match.end() :] for line, match in zip(body, matches, strict=True) if match), *lines[len(body) :]]
    )


def _tolerant(text: str, old: str, new: str, *, replace_all: bool) -> Edit:
    """Find whole lines that differ from ``old`` only in indentation or in white space at their ends."""
    if old.endswith("\n") and (new.endswith("\n") or not new):
        last, wanted, replacement = True, old[:-1].split("\n"), new[:-1].split("\n") if new else []
    else:
        last, wanted, replacement = False, old.split("\n"), new.split("\n")
    if not telling(wanted) or (old.endswith("\n") and not last):
        raise _missing(text, old, new)
    lines = text.split("\n")
    found = list(_windows(lines, wanted))
    if not found:
        raise _missing(text, old, new)
    if len(found) > 1 and not replace_all:
        raise _ambiguous(text, found, len(found))
    starts = line_starts(lines)
    changes: list[Splice] = []
    for at in found:
        if changes and starts[at] < changes[-1].end:
            continue
        body = _transferred(lines[at : at + len(wanted)], wanted, replacement)
        if body is None:
            raise _missing(text, old, new, "The nearest lines are indented differently, so the edit is not certain.")
        end = starts[at + len(wanted)] - 1
        if last and not replacement:
            changes.append(Splice(starts[at], min(end + 1, len(text)), ""))
        else:
            changes.append(Splice(starts[at], end, "\n".join(body)))
    what = "white space" if _but_for_space(lines, wanted, found[0]) else "white space or accents"
    return Edit(tuple(changes), f"matched with different {what}; the file's own indentation was kept")


def composed(line: str) -> str:
    """Return ``line`` with composed accents: some file systems and editors decompose them, models do not."""
    return line if line.isascii() else unicodedata.normalize("NFC", line)


def telling(wanted: Sequence[str]) -> bool:
    """Return whether the lines identify a place: they are not just brackets or blank lines."""
    return sum(sum(map(str.isalnum, line)) for line in wanted) >= 3


def _windows(lines: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    """Yield where consecutive lines equal ``wanted`` except for outer white space and the form of accents."""
    stripped = [composed(line).strip() for line in lines]
    target = [composed(line).strip() for line in wanted]
    for at in range(len(stripped) - len(target) + 1):
        if stripped[at] == target[0] and stripped[at : at + len(target)] == target:
            yield at


def _but_for_space(lines: Sequence[str], wanted: Sequence[str], at: int) -> bool:
    """Return whether the lines differ only in white space."""
    return all(ours.strip() == theirs.strip() for ours, theirs in zip(lines[at:], wanted, strict=False))


def line_starts(lines: Sequence[str]) -> list[int]:
    """Return the offset of each line in their text, and of the line after the last."""
    return [0, *accumulate(len(line) + 1 for line in lines)]


def even_indents(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str] | None:
    """Return the indentations of ``theirs`` with those of the same lines in ``ours``; None if one has several."""
    indents: dict[str, str] = {}
    for mine, other in zip(ours, theirs, strict=True):
        if other.strip() and indents.setdefault(indent_of(other), indent_of(mine)) != indent_of(mine):
            return None
    return indents


def _transferred(there: Sequence[str], wanted: Sequence[str], new: Sequence[str]) -> list[str] | None:
    """Return ``new`` with the indentation of the file: unchanged if written so, else with shared lines taken from the
    file and the others re-indented.

    Return None if the indentation of a line is uncertain.
    """
    if written_for(there, wanted, new):
        return list(new)
    head, tail = shared_ends(wanted, new)
    indents = even_indents(there, wanted)
    if indents is None:
        return None
    shifted = any(theirs != ours for theirs, ours in indents.items())
    if shifted and any(map(str.strip, new)) and not written_beside(there, wanted, new):
        return None
    middle = [reindented(line, indents) for line in new[head : len(new) - tail]]
    kept = [line for line in middle if line is not None]
    if len(kept) != len(middle):
        return None
    return [*there[:head], *kept, *there[len(there) - tail :]]


def _ambiguous(text: str, at: Sequence[int], count: int) -> ToolFailure:
    """Return the error for an ambiguous match. ``at``: lines of the first of ``count`` places."""
    lines = text.split("\n")
    shown = "\n".join(_numbered(lines, index) for index in at[:SHOWN_LINES])
    more = f"\n… and {count - SHOWN_LINES} more" if count > SHOWN_LINES else ""
    message = f"old_string matches {count} places:\n{shown}{more}"
    return ToolFailure("validation_error", message, "Add lines around it until it is unique, or set replace_all.")


def _missing(text: str, old: str, new: str, why: str = "") -> ToolFailure:
    message = f"old_string is not in the file. {why}".rstrip()
    if len(new.strip()) > 8 and new in text:
        line = text.count("\n", 0, text.index(new)) + 1
        message += f" new_string is already at line {line}: this edit may have been made before."
    return ToolFailure(
        "validation_error",
        message + nearest_lines(text.split("\n"), old.strip("\n").split("\n")),
        "Copy old_string from the file exactly, white space included; read it again if unsure.",
    )


def nearest_lines(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Return a hint with the place most similar to ``wanted``; empty if nothing is similar."""
    at = _nearest(lines, wanted)
    if at is None:
        return ""
    count = min(len(wanted) + 2, SHOWN_LINES)
    shown = "\n".join(_numbered(lines, index) for index in range(at, min(at + count, len(lines))))
    return f" Nearest lines:\n{shown}"


def _nearest(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return the line where the most similar text begins; None if nothing is similar."""
    target = [line.strip() for line in wanted]
    known = {line: index for index, line in reversed(list(enumerate(target))) if len(line) > 3}
    votes: dict[int, int] = {}
    for index, line in enumerate(lines):
        if (offset := known.get(line.strip())) is not None and index >= offset:
            votes[index - offset] = votes.get(index - offset, 0) + 1
    if votes:
        return max(votes, key=lambda start: (votes[start], -start))
    longest = max(target, key=len)[:LINE_CHARS]
    first: dict[str, int] = {}
    for index, line in enumerate(lines[:5000]):
        first.setdefault(line.strip()[:LINE_CHARS], index)
    # Comparison by letters is slow: of many lines, compare only those with the most common words.
    words = set(_WORD.findall(longest))
    candidates = sorted(first, key=lambda line: -len(words.intersection(_WORD.findall(line))))[:COMPARED_LINES]
    close = nearest(longest, candidates, ALIKE) if len(longest) > 3 else ""
    return first[close] if close else None


def _numbered(lines: Sequence[str], index: int) -> str:
    line = lines[index]
    return f"{index + 1}\t{line[:LINE_CHARS]}{'…' if len(line) > LINE_CHARS else ''}"
