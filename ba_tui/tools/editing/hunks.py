"""Finds where the hunks of a patch belong in a text. A place that is not certain is an error, never an edit.

Pure text work on ``\\n`` line ends; reading patches is patch_formats.py, writing files is transaction.py.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ba_tui.core.values import frozen
from ba_tui.tools.editing.documents import Splice
from ba_tui.tools.editing.matching import composed, nearest_lines, reindented, telling
from ba_tui.tools.editing.patch_parts import Hunk
from ba_tui.tools.failed import Failed

SHOWN_LINES = 8
LINE_CHARS = 200
LAST = 0x10FFFF
"""The last character there is."""
_DASHES = "\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{FIGURE DASH}\N{EN DASH}\N{EM DASH}\N{HORIZONTAL BAR}\N{MINUS SIGN}"
_PLAIN = str.maketrans(
    {
        **dict.fromkeys(_DASHES, "-"),
        **dict.fromkeys("\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}\N{PRIME}", "'"),
        **dict.fromkeys("\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}", '"'),
        **dict.fromkeys("\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}\N{IDEOGRAPHIC SPACE}", " "),
        "\N{HORIZONTAL ELLIPSIS}": "...",
    }
)
_HINT = "Read the file again and take the lines of the hunk from it."


def _typed(line: str) -> str:
    """As it comes from a keyboard: plain quotes, dashes and spaces, each accent on its letter."""
    return composed(line).translate(_PLAIN).strip()


@frozen
class Tolerance:
    """``seen`` is what of a line counts; ``note`` says what does not."""

    seen: Callable[[str], str]
    note: str = ""
    indents: bool = False


TOLERANCES = (
    Tolerance(lambda line: line),
    Tolerance(str.rstrip, "white space at line ends did not matter"),
    Tolerance(str.strip, "matched with different indentation, and the file's own was kept", indents=True),
    Tolerance(_typed, "matched with other quotes, dashes, spaces or accents", indents=True),
)


class _Text:
    """The lines of a text, indexed by what a tolerance sees of them. ``closed``: the last one has a line end."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.closed = self.lines[-1] == ""
        if self.closed:
            self.lines.pop()
        self._seen: dict[str, tuple[str, dict[str, str]]] = {}
        self._found: dict[tuple[str, str], tuple[int, ...]] = {}

    def matches(self, wanted: Sequence[str], tolerance: Tolerance) -> tuple[int, ...]:
        """Where ``wanted`` stands."""
        if tolerance.note not in self._seen:
            # Each different line is one character of a text, in which Python searches quickly whatever stands there.
            codes: dict[str, str] = {}
            self._seen[tolerance.note] = (
                "".join(codes.setdefault(tolerance.seen(line), chr(min(len(codes), LAST))) for line in self.lines),
                codes,
            )
        coded, codes = self._seen[tolerance.note]
        signs = [codes.get(tolerance.seen(line)) for line in wanted]
        target = "".join(sign for sign in signs if sign is not None)
        if len(target) < len(signs):
            return ()
        if (tolerance.note, target) not in self._found:
            there = _everywhere(coded, target)
            if len(codes) > LAST:
                plain = [tolerance.seen(line) for line in wanted]
                there = (at for at in there if list(map(tolerance.seen, self.lines[at : at + len(plain)])) == plain)
            self._found[tolerance.note, target] = tuple(there)
        return self._found[tolerance.note, target]

    def anchored(self, anchor: str) -> tuple[int, ...]:
        """The lines that are ``anchor``, or else those that begin with it."""
        for tolerance in TOLERANCES[1:]:
            if there := self.matches([anchor], tolerance):
                return there
        if ("anchor", anchor) not in self._found:
            begins = re.compile(re.escape(anchor.strip()) + r"(?!\w)")
            there = (at for at, line in enumerate(self.lines) if begins.match(line.strip()))
            self._found["anchor", anchor] = tuple(there)
        return self._found["anchor", anchor]


def _everywhere(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


@frozen
class Candidates:
    """Where ``hunk`` may belong (line indexes), all found with the same tolerance."""

    hunk: Hunk
    places: tuple[int, ...]
    tolerance: Tolerance


@frozen
class Placed:
    """``changes`` for the text; ``exact`` when every line was found as written. ``ended``: whether the last
    line is to get a line end (True) or to lose it (False), None where it stays as it is."""

    changes: tuple[Splice, ...]
    exact: bool
    notes: tuple[str, ...]
    ended: bool | None


@frozen
class _Swap:
    """Lines ``first`` to ``last`` (exclusive) become ``lines``."""

    first: int
    last: int
    lines: tuple[str, ...]


def place(text: str, hunks: Sequence[Hunk]) -> Placed:
    """The changes that ``hunks`` mean in ``text``.

    Raises:
        Failed: a hunk is not there, fits in several places, or is out of order.
    """
    whole = _Text(text)
    lines, closed = whole.lines, whole.closed
    # What comes without any hint goes to the end, wherever the patch says so.
    ordered = sorted(hunks, key=lambda hunk: not (hunk.old or hunk.anchors))
    found = [_candidates(whole, hunk) for hunk in ordered]
    swaps: list[_Swap] = []
    ended: bool | None = None
    for each, at in zip(found, _in_order(lines, found), strict=True):
        for swap in _swaps(lines, each, at):
            if swaps and swaps[-1].last == swap.first:
                before = swaps.pop()
                swap = _Swap(before.first, swap.last, before.lines + swap.lines)
            swaps.append(swap)
        hunk = each.hunk
        if (hunk.open_old or hunk.open_new) and at + len(hunk.old) == len(lines):
            ended = not hunk.open_new
    left = len(lines) + sum(len(swap.lines) - (swap.last - swap.first) for swap in swaps)
    notes = dict.fromkeys(each.tolerance.note for each in found if each.tolerance.note)
    return Placed(
        tuple(_changes(lines, swaps, closed=closed)),
        all(each.tolerance is TOLERANCES[0] for each in found),
        tuple(notes),
        ended if left and ended != closed else None,
    )


def _candidates(text: _Text, hunk: Hunk) -> Candidates:
    lines = text.lines
    if not hunk.old:
        return Candidates(hunk, _room(text, hunk), TOLERANCES[0])
    starts = _after(text, hunk) if hunk.anchors else None
    # Blank lines at its end may be mere spacing of the patch: without them, when it fits nowhere with them.
    shorter = replace(hunk, lines=hunk.lines[: len(hunk.lines) - hunk.loose]) if hunk.loose else hunk
    for tried in (hunk, shorter) if shorter.lines != hunk.lines and shorter.old else (hunk,):
        for tolerance in TOLERANCES:
            if tolerance.indents and not telling(tried.old):
                continue
            if places := _meant(text, tried, tolerance, starts):
                return Candidates(tried, places, tolerance)
    raise _missing(lines, hunk)


def _room(text: _Text, hunk: Hunk) -> tuple[int, ...]:
    """Where lines go that come without any context."""
    if hunk.anchors:
        return tuple(_after(text, hunk))
    if not text.lines:
        return (0,)
    if hunk.start is not None:
        raise _no_place(hunk, "has no line of context, so its place is not certain.", "Add lines around the change.")
    return (len(text.lines),)


def _meant(text: _Text, hunk: Hunk, tolerance: Tolerance, starts: Sequence[int] | None) -> tuple[int, ...] | None:
    """The places of a hunk that its header leaves: behind an anchor the first, at the end, at the line it names."""
    there = text.matches(hunk.old, tolerance)
    if starts is not None:
        behind = {there[index] for start in starts if (index := bisect_left(there, start)) < len(there)}
        # Some repeat the anchor as the first line of the hunk.
        there = tuple(sorted(behind) or [start - 1 for start in starts if _among(there, start - 1)])
    last = len(text.lines) - len(hunk.old)
    if hunk.at_end and _among(there, last):
        return (last,)
    if hunk.start is not None and _among(there, hunk.start - 1):
        return (hunk.start - 1,)
    return there


def _among(places: Sequence[int], at: int) -> bool:
    index = bisect_left(places, at)
    return index < len(places) and places[index] == at


def _after(text: _Text, hunk: Hunk) -> list[int]:
    """The lines behind the anchors, each of which stands behind the one before it."""
    starts = [0]
    for number, anchor in enumerate(hunk.anchors):
        there = text.anchored(anchor)
        if number == 0:
            starts = [at + 1 for at in there]
        else:
            starts = [there[index] + 1 for start in starts if (index := bisect_left(there, start)) < len(there)]
        if not starts:
            raise _no_place(hunk, f"belongs behind {anchor.strip()[:LINE_CHARS]!r}, which is not there.", _HINT)
    return sorted(set(starts))


def _in_order(lines: Sequence[str], found: Sequence[Candidates]) -> list[int]:
    """One place for each hunk, in their order and without overlap, when there is just one way to do so."""
    early: list[int] = []
    at = 0
    for each in found:
        index = bisect_left(each.places, at)
        if index == len(each.places):
            raise _no_place(each.hunk, "stands before or within the hunk in front of it.", "Give hunks in file order.")
        early.append(each.places[index])
        at = early[-1] + len(each.hunk.old)
    at = len(lines)
    for each, first in reversed(list(zip(found, early, strict=True))):
        late = each.places[bisect_right(each.places, at - len(each.hunk.old)) - 1]
        if late != first:
            raise _ambiguous(lines, each)
        at = late
    return early


def _swaps(lines: Sequence[str], found: Candidates, at: int) -> list[_Swap]:
    hunk = found.hunk
    indents: dict[str, str] = {}
    if found.tolerance.indents:
        for ours, theirs in zip(lines[at : at + len(hunk.old)], hunk.old, strict=True):
            if theirs.strip() and indents.setdefault(_indent(theirs), _indent(ours)) != _indent(ours):
                raise _no_place(hunk, "fits only with other indentation, and not evenly.", _HINT)
    swaps: list[_Swap] = []
    group: list[str] = []
    first = at
    for sign, text in (*hunk.lines, (" ", "")):
        if sign == "-":
            at += 1
        elif sign == "+":
            line = reindented(text, indents) if indents else text
            if line is None:
                raise _no_place(hunk, "fits only with other indentation, so that of its new lines is unsure.", _HINT)
            group.append(line)
        else:
            if group or at > first:
                swaps.append(_Swap(first, at, tuple(group)))
            group, at = [], at + 1
            first = at
    return swaps


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _changes(lines: Sequence[str], swaps: Sequence[_Swap], *, closed: bool) -> list[Splice]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    size = starts[-1] if closed else starts[-1] - 1
    changes: list[Splice] = []
    for swap in swaps:
        text = "\n".join(swap.lines)
        start, end = starts[swap.first], min(starts[swap.last], size)
        last = swap.last == len(lines) and not closed
        if swap.lines and swap.last > swap.first:
            changes.append(Splice(start, starts[swap.last] - 1, text))
        elif not swap.lines:
            changes.append(Splice(max(0, start - 1) if last else start, end, ""))
        elif last:
            changes.append(Splice(size, size, f"\n{text}"))
        else:
            changes.append(Splice(start, start, f"{text}\n"))
    return changes


def _no_place(hunk: Hunk, why: str, hint: str) -> Failed:
    return Failed("validation_error", f"The hunk at line {hunk.where} of the patch {why}", hint)


def _ambiguous(lines: Sequence[str], found: Candidates) -> Failed:
    shown = "\n".join(f"{at + 1}\t{lines[at][:LINE_CHARS]}" for at in found.places[:SHOWN_LINES] if at < len(lines))
    return _no_place(
        found.hunk,
        f"fits in {len(found.places)} places:\n{shown}",
        "Add lines of context, or @@ with a line that stands before it, until it fits in one.",
    )


def _missing(lines: Sequence[str], hunk: Hunk) -> Failed:
    near = nearest_lines(lines, hunk.old)
    return _no_place(hunk, f"does not fit: its lines are not there.{near}", _HINT)
