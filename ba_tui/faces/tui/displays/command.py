"""A command and what it printed, in its own colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ba_tui.core.results import CommandText
from ba_tui.faces.tui.displays.renderer import Build, Renderer
from ba_tui.faces.tui.inspector.json_values import looks_like_json
from ba_tui.faces.tui.inspector.source import command_rows
from ba_tui.faces.tui.inspector.terminal import folder_row, terminal_rows
from ba_tui.faces.tui.transcript.excerpt import PreviewSpace, Rows, first_lines, last_lines
from ba_tui.faces.tui.transcript.markdown import plain_lines
from ba_tui.faces.tui.transcript.printed import printed_lines


def _preview(display: CommandText, space: PreviewSpace) -> Rows:
    """The last lines of the output: they say why it failed. The end of JSON says nothing, so of that the first."""
    command = Rows()
    if space.unfolded:
        above = space._replace(limit=space.limit // 3)
        command = first_lines(f"$ {display.command}", above, plain_lines(above, space.palette.text))
    rest = space._replace(limit=space.limit - len(command))
    if looks_like_json(display.output) and not display.exit_code:
        return command + first_lines(display.output, rest, printed_lines(rest))
    lacking = max(0, display.lines - display.output.count("\n"))
    return command + last_lines(display.output, rest, printed_lines(rest), lacking)


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
