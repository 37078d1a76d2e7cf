"""Renderers of source code, prose, commands with their output, and calls of skill scripts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, cast

from rich.segment import Segment

from ba_tui.core.results import CommandText, Prose, ScriptCall, Source
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.displays.renderer import Build, Renderer
from ba_tui.faces.tui.inspector.json_values import argument_rows, json_rows, looks_like_json
from ba_tui.faces.tui.inspector.rows import GridRow, line, visible
from ba_tui.faces.tui.inspector.source import (
    coloured,
    command_rows,
    folder_row,
    prose_rows,
    source_rows,
    terminal_rows,
)
from ba_tui.faces.tui.transcript.lines import (
    PaintedLine,
    PreviewSpace,
    Rows,
    first_lines,
    last_lines,
    printed_lines,
    wrapped,
)
from ba_tui.faces.tui.transcript.markdown import MEASURE, highlighted, plain_lines


class SourceRenderer(Renderer[Source]):
    """Shows numbered, coloured lines of a file."""

    quiet: ClassVar[bool] = True

    def preview(self, display: Source, space: PreviewSpace) -> Rows:
        path, start = display.path, display.start
        size = len(str(start + space.limit))
        language = path.rsplit(".", 1)[-1] if "." in path else ""

        def paint(text: str) -> list[Rows]:
            found: list[Rows] = []
            lines = highlighted(paintable(text).expandtabs(4), language, space.palette)
            for number, runs in enumerate(lines, start):
                rows = wrapped(runs, space.width - size - 1, hard=True)
                signs = [f"{number:>{size}} ", *[" " * (size + 1)] * len(rows)]
                found.append(
                    [
                        PaintedLine(part, (Segment(sign, space.palette.dim),), glue=glue)
                        for sign, (part, glue) in zip(signs, rows, strict=False)
                    ]
                )
            return found

        return first_lines(display.text, space, paint)

    def page(self, display: Source, *, split: bool) -> Sequence[Build]:
        return [lambda colours=colours: source_rows(display, colours=colours) for colours in (False, True)]

    def question(self, display: Source) -> Sequence[Build]:
        return [lambda colours=colours: source_rows(display, colours=colours, reveal=True) for colours in (False, True)]

    def text(self, display: Source) -> str:
        return display.text

    def values(self, display: Source) -> Sequence[object]:
        return [display.text]

    def shows(self, display: Source, argument: object) -> bool:
        return argument in (display.path, display.text)


class ProseRenderer(Renderer[Prose]):
    """Shows text, Markdown with its signs coloured."""

    word_wrap: ClassVar[bool] = True
    quiet: ClassVar[bool] = True

    def preview(self, display: Prose, space: PreviewSpace) -> Rows:
        space = space._replace(width=min(space.width, MEASURE))
        return first_lines(display.text, space, plain_lines(space, space.palette.text))

    def page(self, display: Prose, *, split: bool) -> Sequence[Build]:
        return [lambda colours=colours: prose_rows(display, colours=colours) for colours in (False, True)]

    def question(self, display: Prose) -> Sequence[Build]:
        return [lambda colours=colours: prose_rows(display, colours=colours, reveal=True) for colours in (False, True)]

    def text(self, display: Prose) -> str:
        return display.text

    def values(self, display: Prose) -> Sequence[object]:
        return [display.text]

    def shows(self, display: Prose, argument: object) -> bool:
        return argument == display.text


class CommandRenderer(Renderer[CommandText]):
    """Shows a command and the end of its output, which explains failures; of JSON the beginning."""

    printed: ClassVar[bool] = True

    def preview(self, display: CommandText, space: PreviewSpace) -> Rows:
        command = Rows()
        # The row above shows a short command in full.
        if space.unfolded and ("\n" in display.command or len(display.command) > space.width // 2):
            above = space._replace(limit=space.limit // 3)
            command = first_lines(f"$ {display.command}", above, plain_lines(above, space.palette.text))
        rest = space._replace(limit=space.limit - len(command))
        if looks_like_json(display.output) and not display.exit_code:
            return command + first_lines(display.output, rest, printed_lines(rest))
        lacking = max(0, display.lines - display.output.count("\n"))
        return command + last_lines(display.output, rest, printed_lines(rest), lacking)

    def page(self, display: CommandText, *, split: bool) -> Sequence[Build]:
        return [lambda: terminal_rows(display)]

    def question(self, display: CommandText) -> Sequence[Build]:
        where = [folder_row(display.cwd)] if display.cwd else []
        return [
            lambda colours=colours: [*command_rows(display.command, colours=colours), *where]
            for colours in (False, True)
        ]

    def text(self, display: CommandText) -> str:
        return display.output

    def values(self, display: CommandText) -> Sequence[object]:
        return [display.command, display.cwd]

    def shows(self, display: CommandText, argument: object) -> bool:
        return argument == display.command

    def edited(self, display: CommandText, texts: Mapping[str, str]) -> Sequence[str]:
        return [key for key, value in texts.items() if value == display.command]


LANGUAGES = {"sql": "sql", "query": "sql", "code": "python", "command": "bash"}
"""Fields of the input that say what a script does, which come first, and the languages that they are written in."""


def _argument_rows(display: ScriptCall, *, colours: bool) -> list[GridRow]:
    """Return the arguments as they would be written in a shell, then the standard input, both in full."""
    rows: list[GridRow] = []
    if display.args:
        words = " ".join([display.path.rpartition("/")[2], *map(shlex.quote, display.args)])
        rows += [line((visible(text), "")) for text in words.split("\n")]
    if display.stdin not in (None, ""):
        rows += [line(("standard input:", "muted"))] if display.args else []
        rows += _input_rows(display.stdin, colours=colours)
    return rows or [line(("The script is given nothing.", "muted"))]


def _input_rows(stdin: Any, *, colours: bool) -> Iterator[GridRow]:
    if isinstance(stdin, str):
        yield from (line((visible(text), "string")) for text in stdin.split("\n"))
    elif isinstance(stdin, dict):
        fields = cast("dict[str, Any]", stdin)
        first = [name for name in LANGUAGES if isinstance(fields.get(name), str)]
        for name in first:
            plain_rows = [line((visible(text), "")) for text in fields[name].split("\n")]
            yield from coloured(plain_rows, LANGUAGES[name]) if colours else plain_rows
        yield from argument_rows({name: value for name, value in fields.items() if name not in first})
    else:
        yield from json_rows(stdin)


class ScriptCallRenderer(Renderer[ScriptCall]):
    """Shows the arguments and the input of a skill's script; the inspector shows its source, too."""

    word_wrap: ClassVar[bool] = True

    def preview(self, display: ScriptCall, space: PreviewSpace) -> Rows:
        text = "\n".join(row[0].text for row in _argument_rows(display, colours=False))
        return first_lines(text, space, plain_lines(space, space.palette.text))

    def page(self, display: ScriptCall, *, split: bool) -> Sequence[Build]:
        source, head = Source(display.path, display.text), line((visible(display.path), "heading"))

        def rows(*, colours: bool) -> list[GridRow]:
            code = source_rows(source, colours=colours, reveal=True)
            return [*_argument_rows(display, colours=colours), line(), head, *code]

        return [partial(rows, colours=colours) for colours in (False, True)]

    def question(self, display: ScriptCall) -> Sequence[Build]:
        lines = display.text.count("\n") + (not display.text.endswith("\n"))
        source = line((f"{visible(display.path)} · {count(lines, 'line')}: d shows the source", "muted"))
        return [
            lambda colours=colours: [*_argument_rows(display, colours=colours), source] for colours in (False, True)
        ]

    def text(self, display: ScriptCall) -> str:
        return display.text

    def values(self, display: ScriptCall) -> Sequence[object]:
        return [list(display.args), display.stdin]

    def shows(self, display: ScriptCall, argument: object) -> bool:
        if isinstance(argument, str) and display.path.endswith(f"/{argument}"):
            return True
        return argument in (list(display.args), display.stdin, display.path.split("/")[1])
