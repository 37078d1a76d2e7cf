"""What a command printed, with its colours and its end. The text is foreign: no other escape sequence survives."""

from __future__ import annotations

from rich.style import Style

from ba_tui.core.results import CommandText
from ba_tui.core.text.ansi import PLAIN, Ink, inked_lines
from ba_tui.faces.tui.inspector.rows import GridRow, line, visible
from ba_tui.faces.tui.inspector.source import command_rows
from ba_tui.faces.tui.transcript.ansi import ink_style


def output_rows(text: str) -> list[GridRow]:
    """Printed text, colours kept."""
    return [
        line(*((words.replace("\n", "␤").expandtabs(8), _style(ink)) for words, ink in pieces))
        for pieces in inked_lines(text)
    ]


def folder_row(cwd: str) -> GridRow:
    """Where a command runs."""
    return line((f"in {'the project folder' if cwd == '.' else visible(cwd)}", "muted"), gutter="  ")


def terminal_rows(display: CommandText) -> list[GridRow]:
    """The command, its folder, the output and the exit code."""
    rows = command_rows(display.command)
    if display.cwd:
        rows.append(folder_row(display.cwd))
    if display.output:
        rows += [line(), *output_rows(display.output)]
    elif display.exit_code is not None:
        rows += [line(), line(("No output.", "muted"))]
    if display.exit_code is not None:
        rows += [line(), line((f"exit {display.exit_code}", "error" if display.broke else "plus"))]
    return rows


def _style(ink: Ink) -> str | Style:
    return "" if ink == PLAIN else ink_style(ink)
