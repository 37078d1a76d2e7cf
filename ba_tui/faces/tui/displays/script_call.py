"""A script of a skill that would run: what it is given first, its source on the page."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.results import ScriptCall, Source
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.displays.renderer import Build, Renderer
from ba_tui.faces.tui.inspector.json_tree import argument_rows
from ba_tui.faces.tui.inspector.rows import GridRow, line, visible
from ba_tui.faces.tui.inspector.source import coloured, source_rows
from ba_tui.faces.tui.transcript.excerpt import PreviewSpace, Rows, first_lines
from ba_tui.faces.tui.transcript.markdown import plain_lines

LANGUAGES = {"sql": "sql", "query": "sql", "code": "python", "command": "bash"}
"""Arguments that say what a script does, which come first, and the languages that they are written in."""


def _given(display: ScriptCall, *, colours: bool) -> list[GridRow]:
    """What the script does and with what, each argument whole."""
    first = [name for name in LANGUAGES if isinstance(display.args.get(name), str)]
    rows: list[GridRow] = []
    for name in first:
        plain_rows = [line((visible(text), "")) for text in display.args[name].split("\n")]
        rows += coloured(plain_rows, LANGUAGES[name]) if colours else plain_rows
    rows += argument_rows({name: value for name, value in display.args.items() if name not in first})
    return rows or [line(("The script is given nothing.", "muted"))]


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


SCRIPT_CALL: Renderer[ScriptCall] = Renderer(
    preview=_preview,
    page=_page,
    question=_question,
    text=lambda display: display.text,
    values=lambda display: [display.args],
    shows=lambda display, argument: argument in (display.args, display.skill, display.name, f"scripts/{display.name}"),
    word_wrap=True,
)
