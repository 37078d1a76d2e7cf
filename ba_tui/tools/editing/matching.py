"""Finds the place that an exact replacement means: exactly, or with other white space where that is certain.

Pure text work on ``\\n`` line ends. An uncertain match is an error that shows the candidates, never an edit.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterator, Sequence

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.tools.editing.documents import Splice
from ba_tui.tools.editing.indentation import indent_of, reindented, written_beside, written_for
from ba_tui.tools.failed import Failed

SHOWN_LINES = 8
LINE_CHARS = 200
COMPARED_LINES = 200
_WORD = regex(r"\w+")
_NUMBERED = regex(r"^ *(\d+)\t")


@frozen
class Edit:
    """``note`` says what was tolerated to find the place; empty after an exact match."""

    changes: tuple[Splice, ...]
    note: str = ""


def find_edit(text: str, old: str, new: str, *, replace_all: bool = False) -> Edit:
    """The changes that replacing ``old`` by ``new`` in ``text`` means.

    Raises:
        Failed: nothing matches, several places do, or the match is not certain.
    """
    if not old:
        raise Failed("invalid_parameters", "old_string is empty.", "Give the text to replace, or use write_file.")
    if old == new:
        raise Failed("invalid_parameters", "old_string and new_string are the same: nothing would change.")
    places = _places(text, old)
    if any(_deeper(text, at, old, new) for at in places):
        try:
            return _tolerant(text, old, new, replace_all=replace_all)
        except Failed as error:
            line = text.count("\n", 0, places[0]) + 1
            message = (
                f"old_string stands at line {line}, but indented deeper, so the other lines of new_string are unsure."
            )
            raise Failed("validation_error", message, "Give whole lines with the indentation of the file.") from error
    if any(_doubled(text, at, old, new) for at in places):
        message = "new_string begins with the indentation that stands before old_string already, and would double it."
        raise Failed("validation_error", message, "Give both as whole lines, with the indentation of the file.")
    if places:
        return Edit(_exact(text, places, (old, new), replace_all=replace_all))
    plain_old = _without_numbers(old)
    if plain_old and (places := [at for at in _places(text, plain_old) if _fills_lines(text, at, plain_old)]):
        pair = (plain_old, _numbers_left_out(new))
        return Edit(_exact(text, places, pair, replace_all=replace_all), "line numbers left out of old_string")
    return _tolerant(text, old, new, replace_all=replace_all)


def _places(text: str, old: str) -> list[int]:
    """Every place where ``old`` stands, also where two of them overlap, but not where its last letter has an accent."""
    found: list[int] = []
    at = text.find(old)
    while at >= 0:
        if not unicodedata.combining(text[at + len(old) : at + len(old) + 1] or "."):
            found.append(at)
        at = text.find(old, at + 1)
    return found


def _fills_lines(text: str, at: int, old: str) -> bool:
    """Whether ``old`` stands there from the start of a line to the end of one, as what was copied with numbers does."""
    end = at + len(old)
    return (at == 0 or text[at - 1] == "\n") and (end == len(text) or text[end] == "\n" or old.endswith("\n"))


def _numbers_left_out(new: str) -> str:
    """``new`` for an ``old`` that had line numbers. Raises Failed when it has some that can't be told from its text."""
    if (plain := _without_numbers(new)) is not None:
        return plain
    if any(map(_NUMBERED.match, new.split("\n"))):
        message = "new_string has line numbers on some lines, or not in order, so what is to be written is unsure."
        raise Failed("validation_error", message, "Leave the line numbers out of old_string and new_string.")
    return new


def _deeper(text: str, at: int, old: str, new: str) -> bool:
    """Whether ``old`` begins with its line's indentation but the file has more of it, so that ``new``, where it has
    several lines, would come out ragged."""
    if old[0] not in " \t" or "\n" not in new.rstrip("\n"):
        return False
    start = at
    while start and text[start - 1] in " \t":
        start -= 1
    return start < at and (not start or text[start - 1] == "\n")


def _doubled(text: str, at: int, old: str, new: str) -> bool:
    """Whether ``old`` begins behind the indentation of its line, and ``new`` repeats that indentation."""
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
    """``text`` without the line numbers of read_file, when every line carries one and they count up by one."""
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
    """Whole lines that differ from ``old`` in white space at their ends or in their indentation only."""
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
    starts = _starts(lines)
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
    """With each accent on its letter: some file systems and editors write the two apart, models do not."""
    return line if line.isascii() else unicodedata.normalize("NFC", line)


def telling(wanted: Sequence[str]) -> bool:
    """Enough substance to recognise a place by: not just brackets or blank lines."""
    return sum(sum(map(str.isalnum, line)) for line in wanted) >= 3


def _windows(lines: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    """Where consecutive lines equal ``wanted`` but for white space around them, and for how accents are written."""
    stripped = [composed(line).strip() for line in lines]
    target = [composed(line).strip() for line in wanted]
    for at in range(len(stripped) - len(target) + 1):
        if stripped[at] == target[0] and stripped[at : at + len(target)] == target:
            yield at


def _but_for_space(lines: Sequence[str], wanted: Sequence[str], at: int) -> bool:
    """Whether white space is all that differs there."""
    return all(ours.strip() == theirs.strip() for ours, theirs in zip(lines[at:], wanted, strict=False))


def _starts(lines: Sequence[str]) -> list[int]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _transferred(there: Sequence[str], wanted: Sequence[str], new: Sequence[str]) -> list[str] | None:
    """``new`` as it reads in the file: as it stands where it was written with the file's indentation, else the lines it
    shares with ``wanted`` as they stand in the file and the others re-indented.

    None when the indentation of some line cannot be told for certain.
    """
    if written_for(there, wanted, new):
        return list(new)
    head = 0
    while head < min(len(wanted), len(new)) and wanted[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(wanted), len(new)) - head and wanted[-1 - tail] == new[-1 - tail]:
        tail += 1
    indents: dict[str, str] = {}
    for ours, theirs in zip(there, wanted, strict=True):
        if theirs.strip() and indents.setdefault(indent_of(theirs), indent_of(ours)) != indent_of(ours):
            return None
    shifted = any(theirs != ours for theirs, ours in indents.items())
    if shifted and any(map(str.strip, new)) and not written_beside(there, wanted, new):
        return None
    middle = [reindented(line, indents) for line in new[head : len(new) - tail]]
    kept = [line for line in middle if line is not None]
    if len(kept) != len(middle):
        return None
    return [*there[:head], *kept, *there[len(there) - tail :]]


def _ambiguous(text: str, at: Sequence[int], count: int) -> Failed:
    """``at``: the lines of the first of ``count`` places."""
    lines = text.split("\n")
    shown = "\n".join(_numbered(lines, index) for index in at[:SHOWN_LINES])
    more = f"\n… and {count - SHOWN_LINES} more" if count > SHOWN_LINES else ""
    message = f"old_string matches {count} places:\n{shown}{more}"
    return Failed("validation_error", message, "Add lines around it until it is unique, or set replace_all.")


def _missing(text: str, old: str, new: str, why: str = "") -> Failed:
    message = f"old_string is not in the file. {why}".rstrip()
    if len(new.strip()) > 8 and new in text:
        line = text.count("\n", 0, text.index(new)) + 1
        message += f" new_string already stands at line {line}: this edit may have been made before."
    return Failed(
        "validation_error",
        message + nearest_lines(text.split("\n"), old.strip("\n").split("\n")),
        "Copy old_string from the file exactly, white space included; read it again if unsure.",
    )


def nearest_lines(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Words that show the place most like ``wanted``; empty when nothing is like it."""
    at = _nearest(lines, wanted)
    if at is None:
        return ""
    count = min(len(wanted) + 2, SHOWN_LINES)
    shown = "\n".join(_numbered(lines, index) for index in range(at, min(at + count, len(lines))))
    return f" Nearest lines:\n{shown}"


def _nearest(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The line where something most like ``wanted`` begins."""
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
    # To compare letter by letter is slow: of many lines only those with the most words in common are.
    words = set(_WORD.findall(longest))
    nearest = sorted(first, key=lambda line: -len(words.intersection(_WORD.findall(line))))[:COMPARED_LINES]
    close = difflib.get_close_matches(longest, nearest, 1, 0.6) if len(longest) > 3 else []
    return first[close[0]] if close else None


def _numbered(lines: Sequence[str], index: int) -> str:
    line = lines[index]
    return f"{index + 1}\t{line[:LINE_CHARS]}{'…' if len(line) > LINE_CHARS else ''}"
