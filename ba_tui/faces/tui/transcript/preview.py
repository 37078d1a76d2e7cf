"""What came of a call, in a few lines below its row. All of it opens in the inspector."""

from __future__ import annotations

from rich.segment import Segment

from ba_tui.core.results import ToolResult
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.transcript.excerpt import PreviewSpace, Rows, first_lines, last_lines, missing
from ba_tui.faces.tui.transcript.lines import PaintedLine, Unit, clipped
from ba_tui.faces.tui.transcript.markdown import MEASURE, plain, plain_lines
from ba_tui.faces.tui.transcript.printed import printed_lines
from ba_tui.faces.tui.transcript.records import ToolRow, unread

MESSAGE = 4
"""Rows that the reason of a failure takes from what was printed before it."""


def preview(record: ToolRow, space: PreviewSpace) -> list[PaintedLine]:
    """At most ``space.limit`` rows, and one more about what the model was not given; none for a folded row that says
    enough itself."""
    result = record.result
    if result is None:
        return last_lines(record.tail, space, printed_lines(space)) if space.unfolded else []
    reason = _reason(record, result, space)
    shown = _result(result, space._replace(limit=max(1, space.limit - len(reason))))
    lines = [*shown, *reason]
    if words := unread(result):
        words = clipped(words, space.width, space.palette.glyphs.more)
        lines.append(PaintedLine((Segment(words, space.palette.dim),), unit=Unit("")))
    if not lines and space.unfolded:
        return plain("No output.", space.width, space.palette.dim)
    return lines


def _reason(record: ToolRow, result: ToolResult, space: PreviewSpace) -> Rows:
    """Why a call failed or was denied, unless its row says that."""
    error = result.error
    if error is None or (not space.unfolded and (record.refused or record.state == "cancelled")):
        return []
    room = space._replace(width=min(space.width, MEASURE), limit=MESSAGE if result.display else space.limit)
    lines = first_lines(error.message, room, plain_lines(room, space.palette.failed))
    if error.hint and space.unfolded:
        lines += plain(error.hint, room.width, space.palette.dim)
    return lines


def _result(result: ToolResult, space: PreviewSpace) -> Rows:
    from ba_tui.faces.tui.displays.renderers import renderer_of  # noqa: PLC0415 - not before the first result

    if result.display is not None:
        renderer = renderer_of(result.display)
        if renderer.quiet and not space.unfolded:
            return []
        space = space._replace(limit=max(space.limit, renderer.folded_rows))
        lines = renderer.preview(result.display, space)
        if len(lines) <= space.limit:
            return lines
        kept = max(1, space.limit - 1)
        return [*lines[:kept], missing(f"{count(len(lines) - kept, 'more line')} below", space)]
    # What a person's own tool returns comes without a display and without a summary.
    if result.error is not None or (result.summary and not space.unfolded):
        return []
    words = space._replace(width=min(space.width, MEASURE))
    return first_lines(result.text, words, plain_lines(words, space.palette.text))
