"""Which display type is shown by which renderer. A new type is one file beside this one, and one line here."""

from __future__ import annotations

from typing import Any

from ba_tui.core.displays.charts import Chart
from ba_tui.core.displays.plans import PlanGraph
from ba_tui.core.results import CommandText, Diff, Diffs, Display, Prose, ScriptCall, Source, Table, Todos
from ba_tui.faces.tui.displays.chart import CHART
from ba_tui.faces.tui.displays.command import COMMAND
from ba_tui.faces.tui.displays.diff import DIFF, DIFFS
from ba_tui.faces.tui.displays.plan import PLAN
from ba_tui.faces.tui.displays.renderer import Renderer
from ba_tui.faces.tui.displays.script_call import SCRIPT_CALL
from ba_tui.faces.tui.displays.source import SOURCE
from ba_tui.faces.tui.displays.table import TABLE
from ba_tui.faces.tui.displays.todos import TODOS
from ba_tui.faces.tui.inspector.source import prose_rows
from ba_tui.faces.tui.transcript.excerpt import PreviewSpace, Rows, first_lines
from ba_tui.faces.tui.transcript.markdown import MEASURE, plain_lines


def _preview(display: Prose, space: PreviewSpace) -> Rows:
    space = space._replace(width=min(space.width, MEASURE))
    return first_lines(display.text, space, plain_lines(space, space.palette.text))


PROSE: Renderer[Prose] = Renderer(
    preview=_preview,
    page=lambda display, _split: [lambda: prose_rows(display, colours=False), lambda: prose_rows(display)],
    question=lambda display: [
        lambda: prose_rows(display, colours=False, reveal=True),
        lambda: prose_rows(display, reveal=True),
    ],
    text=lambda display: display.text,
    values=lambda display: [display.text],
    shows=lambda display, argument: argument == display.text,
    word_wrap=True,
    quiet=True,
)


RENDERERS: dict[type, Renderer[Any]] = {
    Diff: DIFF,
    Diffs: DIFFS,
    CommandText: COMMAND,
    Source: SOURCE,
    ScriptCall: SCRIPT_CALL,
    Table: TABLE,
    Chart: CHART,
    Prose: PROSE,
    PlanGraph: PLAN,
    Todos: TODOS,
}


def renderer_of(display: Display) -> Renderer[Any]:
    """The renderer of the display's type."""
    return RENDERERS[type(display)]
