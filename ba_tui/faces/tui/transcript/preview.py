"""A few lines of a tool's result, for a row that is expanded in place. The whole of it opens in the inspector."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from rich.segment import Segment
from rich.style import Style

from ba_tui.core.results import CommandText, Diff, Diffs, Prose, Source, Table, Todos
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.transcript.ansi import ansi_segments
from ba_tui.faces.tui.transcript.code import highlighted
from ba_tui.faces.tui.transcript.lines import PaintedLine, wrapped
from ba_tui.faces.tui.transcript.markdown import plain
from ba_tui.faces.tui.transcript.palette import Palette
from ba_tui.faces.tui.transcript.records import ToolRow
from ba_tui.faces.tui.transcript.tables import TableLayout, table

WORTH = 40_000
"""Characters looked at: a glance must not cost more than a frame."""
COMPARED = 4_000


def preview(record: ToolRow, width: int, palette: Palette, limit: int) -> tuple[list[PaintedLine], int]:
    """At most ``limit`` lines, and how many are left out."""
    lines = _lines(record, width, palette, limit)
    if not lines:
        lines = plain("No output.", width, palette.dim)
    if len(lines) <= limit:
        return lines, 0
    late = record.result is None or isinstance(record.result.display, CommandText)
    return (lines[-limit:] if late else lines[:limit]), len(lines) - limit


def _lines(record: ToolRow, width: int, palette: Palette, limit: int) -> list[PaintedLine]:
    result = record.result
    if result is None:
        return inked(record.tail, width, palette)
    if result.error is not None:
        hint = plain(result.error.hint, width, palette.dim) if result.error.hint else []
        return plain(result.error.message[:WORTH], width, palette.failed) + hint
    match result.display:
        case CommandText(command=command, output=output):
            return plain(f"$ {command[:WORTH]}", width, palette.text) + inked(output[-WORTH:], width, palette)
        case Diff():
            return _diff(result.display, width, palette)
        case Diffs(items=items):
            return [
                line for item in items for line in (*plain(item.path, width, palette.dim), *_diff(item, width, palette))
            ]
        case Source(path=path, text=text, start=start):
            return _source(path, text[:WORTH], start, width, palette)
        case Table(columns=columns, rows=rows):
            return _grid(columns, rows, width, palette, limit)
        case Prose(text=text):
            return plain(text[:WORTH], width, palette.text)
        case Todos(items=items):
            glyphs = palette.glyphs
            signs = {"pending": glyphs.todo, "in_progress": glyphs.running, "completed": glyphs.done}
            return [
                line for item in items for line in plain(f"{signs[item.status]} {item.content}", width, palette.text)
            ]
        case None:
            return plain(result.text[:WORTH], width, palette.text) if result.text else []


def inked(output: str, width: int, palette: Palette) -> list[PaintedLine]:
    """Terminal output in its own colours, cut hard at ``width``."""
    lines: list[PaintedLine] = []
    for segments in ansi_segments(output, palette.text):
        lines += [PaintedLine(part, glue=glue) for part, glue in wrapped(segments, width, hard=True)]
    return lines


def _diff(diff: Diff, width: int, palette: Palette) -> list[PaintedLine]:
    import difflib  # noqa: PLC0415 - only when a change is expanded

    before, after = (diff.before or "").splitlines(), diff.after.splitlines()
    if len(before) + len(after) > COMPARED:
        return plain("Too long to compare here: Enter opens the difference.", width, palette.dim)
    tones = {"+": palette.added, "-": palette.removed, "@": palette.comment}
    lines: list[PaintedLine] = []
    for line in islice(difflib.unified_diff(before, after, lineterm="", n=2), 2, None):
        style = tones.get(line[:1], palette.text)
        lines += plain(line, width, style)
    return lines or plain("No change.", width, palette.dim)


def _source(path: str, text: str, start: int, width: int, palette: Palette) -> list[PaintedLine]:
    shown = paintable(text).expandtabs(4).rstrip("\n")
    size = len(str(start + shown.count("\n")))
    language = path.rsplit(".", 1)[-1] if "." in path else ""
    lines: list[PaintedLine] = []
    for at, runs in enumerate(highlighted(shown, language, palette), start):
        first = wrapped(runs, width - size - 1, hard=True)[0][0]
        lines.append(PaintedLine(first, (Segment(f"{at:>{size}} ", palette.dim),)))
    return lines


def _grid(
    columns: Sequence[str], rows: Sequence[Sequence[object]], width: int, palette: Palette, limit: int
) -> list[PaintedLine]:
    def cell(value: object, style: Style) -> list[Segment]:
        return [Segment(paintable(str(value)[:200], newlines=False), style)]

    body = [[cell(value, palette.text) for value in row] for row in rows[:limit]]
    head = [cell(name, palette.heading) for name in columns]
    numeric = [bool(rows) and isinstance(rows[0][at], int | float) for at in range(len(columns))]
    aligns = ["right" if is_number else "" for is_number in numeric]
    sources = ["\t".join(columns), "", *("\t".join(map(str, row)) for row in rows[:limit])]
    return table(TableLayout([head, *body], aligns, sources), width, palette)
