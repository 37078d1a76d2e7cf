"""``ba data`` with all its commands; each one that stands in a file of its own is added here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ba_tui.cli.config import Cwd, folder_of, say
from ba_tui.core.displays.charts import Aggregate, ChartKind, ChartOrder, ChartRequest
from ba_tui.features.data.cli.check import check
from ba_tui.features.data.cli.commands import OK, Part, app
from ba_tui.features.data.cli.compare import compare
from ba_tui.features.data.cli.drawing import check_picture, deliver_chart
from ba_tui.features.data.cli.metrics import metrics
from ba_tui.features.data.cli.opened import opened_data, told

Kind = Annotated[ChartKind | None, typer.Option("--kind", help="Chosen by the columns when it is left out.")]
X = Annotated[str, typer.Option("--x", metavar="COLUMN", help="Categories, times or numbers.")]
Y = Annotated[list[str] | None, typer.Option("--y", metavar="COLUMN", help="Values; several draw several series.")]


def chart(  # noqa: PLR0913 - typer reads one parameter a flag
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="A data file; - reads CSV from stdin.")],
    kind: Kind = None,
    x: X = "",
    y: Y = None,
    series: Annotated[str, typer.Option(metavar="COLUMN", help="A column whose values become series.")] = "",
    aggregate: Annotated[Aggregate | None, typer.Option(help="For several rows of one x.")] = None,
    order: Annotated[ChartOrder | None, typer.Option(help="The order of categories.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Most categories; the others are joined.")] = 0,
    stacked: Annotated[bool, typer.Option("--stacked", help="Bars of several series on each other.")] = False,
    log: Annotated[bool, typer.Option("--log", help="A logarithmic axis of values.")] = False,
    title: str = "",
    unit: Annotated[str, typer.Option(help="The unit of the values.")] = "",
    sql: Annotated[str, typer.Option(metavar="SQL", help="Draw the result of a query instead of the file.")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Save it as .svg or .png.")] = None,
    part: Part = "",
    ascii_: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters.")] = False,
    width: Annotated[int, typer.Option(min=0, help="Columns; 0 takes those of the terminal.")] = 0,
    cwd: Cwd = None,
) -> int:
    """Draw a chart of a data file in the terminal, or save it as a picture.

    \b
    Exit codes:
      0 ok · 1 the query, a column or an option is wrong · 2 a file can't be read
      3 a limit was reached · 4 a file may not be read · 130 interrupted
    """
    from ba_tui.features.data.analysis.errors import AnalysisError  # noqa: PLC0415 - --help must not wait for it

    wanted = ChartRequest(
        "", kind, x, tuple(y or ()), series, aggregate, order, limit, stacked, log, title=title, unit=unit
    )
    if out:
        check_picture(out)
    with opened_data(folder_of(cwd), [file]) as data:
        try:
            datasets = data.run(data.engine.register(data.files[0], part=part, on_progress=data.line.show))
            name = data.run(data.engine.query(sql, on_progress=data.line.show)).handle if sql else datasets[0].name
            if len(datasets) > 1 and not sql:
                say(f"Drawn is {name}; --part or --sql choose among {', '.join(each.name for each in datasets)}.")
            deliver_chart(data, replace(wanted, data=name), data.line.show, out, (width, ascii_))
        except AnalysisError as error:
            return told(error)
    return OK


app.command()(chart)
app.command()(check)
app.command()(compare)
app.command()(metrics)
