"""A few lines of a tool's result, for a row that is expanded in place. The whole of it opens in the inspector."""

from __future__ import annotations

from ba_tui.faces.tui.transcript.lines import PaintedLine
from ba_tui.faces.tui.transcript.markdown import plain
from ba_tui.faces.tui.transcript.palette import Palette
from ba_tui.faces.tui.transcript.printed import printed
from ba_tui.faces.tui.transcript.records import ToolRow


def preview(record: ToolRow, width: int, palette: Palette, limit: int) -> tuple[list[PaintedLine], int]:
    """At most ``limit`` lines, and how many are left out."""
    from ba_tui.faces.tui.displays.renderer import MOST, PreviewSpace  # noqa: PLC0415 - only for a row that is expanded
    from ba_tui.faces.tui.displays.renderers import renderer_of  # noqa: PLC0415 - see above

    result, late = record.result, record.result is None
    if result is None:
        lines = printed(record.tail, width, palette)
    elif result.error is not None:
        hint = plain(result.error.hint, width, palette.dim) if result.error.hint else []
        lines = plain(result.error.message[:MOST], width, palette.failed) + hint
    elif result.display is not None:
        renderer = renderer_of(result.display)
        lines, late = renderer.preview(result.display, PreviewSpace(width, palette, limit)), renderer.printed
    else:
        lines = plain(result.text[:MOST], width, palette.text) if result.text else []
    lines = lines or plain("No output.", width, palette.dim)
    if len(lines) <= limit:
        return lines, 0
    return (lines[-limit:] if late else lines[:limit]), len(lines) - limit
