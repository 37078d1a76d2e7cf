"""A script of a skill that would run: what it is given first, its source on the page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any, cast

from ba_tui.core.results import ScriptCall, Source
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.displays.renderer import Build, Renderer
from ba_tui.faces.tui.inspector.json_tree import argument_rows, json_rows
from ba_tui.faces.tui.inspector.rows import GridRow, line, visible
from ba_tui.faces.tui.inspector.source import coloured, source_rows
from ba_tui.faces.tui.transcript.excerpt import PreviewSpace, Rows, first_lines
from ba_tui.faces.tui.transcript.markdown import plain_lines

LANGUAGES = {"sql": "sql", "query": "sql", "code": "python", "command": "bash"}
"""Fields of the input that say what a script does, which come first, and the languages that they are written in."""


def _given(display: ScriptCall, *, colours: bool) -> list[GridRow]:
    """The arguments as a shell would be given them, then the standard input, each whole."""
    rows: list[GridRow] = []
    if display.args:
        words = " ".join([display.path.rpartition("/")[2], *map(shlex.quote, display.args)])
        rows += [line((visible(text), "")) for text in words.split("\n")]
    if display.stdin not in (None, ""):
        rows += [line(("standard input:", "muted"))] if display.args else []
        rows += _input(display.stdin, colours=colours)
    return rows or [line(("The script is given nothing.", "muted"))]


def _input(given: Any, *, colours: bool) -> Iterator[GridRow]:
    if isinstance(given, str):
        yield from (line((visible(text), "string")) for text in given.split("\n"))
    elif isinstance(given, dict):
        fields = cast("dict[str, Any]", given)
        first = [name for name in LANGUAGES if isinstance(fields.get(name), str)]
        for name in first:
            plain_rows = [line((visible(text), "")) for text in fields[name].split("\n")]
            yield from coloured(plain_rows, LANGUAGES[name]) if colours else plain_rows
        yield from argument_rows({name: value for name, value in fields.items() if name not in first})
    else:
        yield from json_rows(given)


def _question(display: ScriptCall) -> Sequence[Build]:
    lines = display.text.count("\n") + (not display.text.endswith("\n"))
    source = line((f"{visible(display.path)} · {count(lines, 'line')}: d shows the source", "muted"))
    return [lambda colours=colours: [*_given(display, colours=colours), source] for colours in (False, True)]


def _page(display: ScriptCall, _split: bool) -> Sequence[Build]:
    source, head = Source(display.path, display.text), line((visible(display.path), "heading"))
    return [
        lambda colours=colours: [
            *_given(display, colours=colours), line(), head, *source_rows(source, colours=colours, reveal=True)
        ]
        for colours in (False, True)
    ]  # fmt: skip


def _preview(display: ScriptCall, space: PreviewSpace) -> Rows:
    text = "\n".join(row[0].text for row in _given(display, colours=False))
    return first_lines(text, space, plain_lines(space, space.palette.text))


def _shows(display: ScriptCall, argument: Any) -> bool:
    if isinstance(argument, str) and display.path.endswith(f"/{argument}"):
        return True
    return argument in (list(display.args), display.stdin, display.path.split("/")[1])


SCRIPT_CALL: Renderer[ScriptCall] = Renderer(
    preview=_preview,
    page=_page,
    question=_question,
    text=lambda display: display.text,
    values=lambda display: [list(display.args), display.stdin],
    shows=_shows,
    word_wrap=True,
)
