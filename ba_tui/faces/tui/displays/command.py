"""A command and what it printed, in its own colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ba_tui.core.results import CommandText
from ba_tui.faces.tui.displays.renderer import MOST, Build, PreviewSpace, Renderer
from ba_tui.faces.tui.inspector.source import command_rows
from ba_tui.faces.tui.inspector.terminal import folder_row, terminal_rows
from ba_tui.faces.tui.transcript.lines import PaintedLine
from ba_tui.faces.tui.transcript.markdown import plain
from ba_tui.faces.tui.transcript.printed import printed


def _preview(display: CommandText, space: PreviewSpace) -> list[PaintedLine]:
    command = plain(f"$ {display.command[:MOST]}", space.width, space.palette.text)
    return command + printed(display.output[-MOST:], space.width, space.palette)


def _question(display: CommandText) -> Sequence[Build]:
    where = [folder_row(display.cwd)] if display.cwd else []
    return [
        lambda colours=colours: [*command_rows(display.command, colours=colours), *where] for colours in (False, True)
    ]


def _edited(display: CommandText, texts: Mapping[str, str]) -> Sequence[str]:
    return [key for key, value in texts.items() if value == display.command]


COMMAND: Renderer[CommandText] = Renderer(
    preview=_preview,
    page=lambda display, _split: [lambda: terminal_rows(display)],
    question=_question,
    text=lambda display: display.output,
    values=lambda display: [display.command, display.cwd],
    shows=lambda display, argument: argument == display.command,
    edited=_edited,
    printed=True,
)
