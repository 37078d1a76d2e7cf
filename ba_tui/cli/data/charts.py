"""``ba data chart``: a chart of a data file, drawn as text or saved as a picture."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from ba_tui.cli.config import Cwd, folder_of, print_line, say
from ba_tui.cli.data.commands import OK, Part, _data, _told
from ba_tui.core.charts import PICTURES, Aggregate, Chart, ChartKind, ChartOrder, ChartRequest
from ba_tui.core.errors import UsageError
from ba_tui.core.text.wording import suggestion

if TYPE_CHECKING:
    from ba_tui.cli.data.commands import _Data
    from ba_tui.plotting.canvas import Line

PIPED_WIDTH = 80
COLOURS = ("36", "33", "32", "31", "35", "34", "96", "93")
"""SGR codes of series."""
STYLES = {"title": "1", "dim": "2"}

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
    from ba_tui.analysis.errors import AnalysisError  # noqa: PLC0415 - --help must not wait for it

    wanted = ChartRequest(
        "", kind, x, tuple(y or ()), series, aggregate, order, limit, stacked, log, title=title, unit=unit
    )
    if out:
        check_picture(out)
    with _data(folder_of(cwd), [file]) as data:
        try:
            datasets = data.run(data.engine.register(data.files[0], part=part, on_progress=data.line.show))
            name = data.run(data.engine.query(sql, on_progress=data.line.show)).handle if sql else datasets[0].name
            if len(datasets) > 1 and not sql:
                say(f"Drawn is {name}; --part or --sql choose among {', '.join(each.name for each in datasets)}.")
            deliver_chart(data, replace(wanted, data=name), out, (width, ascii_))
        except AnalysisError as error:
            return _told(error)
    return OK


def check_picture(out: Path) -> None:
    """Raises UsageError where the ending is not that of a picture."""
    if out.suffix.lower().lstrip(".") not in PICTURES:
        raise UsageError(f"{out.name} is no picture.", "Its name must end in .svg or .png.")


def check_kind(kind: str) -> ChartKind:
    """The kind of this name. Raises UsageError."""
    found: ChartKind | None = next((each for each in get_args(ChartKind) if each == kind), None)
    if found is None:
        raise UsageError(f"There is no chart {kind!r}.", f"{suggestion(kind, get_args(ChartKind)).capitalize()}")
    return found


def deliver_chart(data: _Data, wanted: ChartRequest, out: Path | None, look: tuple[int, bool]) -> None:
    """Compute a chart, and print or save it."""
    drawing = data.run(data.engine.charts.compute(wanted, on_progress=data.line.show))
    if out is None:
        print_chart(drawing, *look)
        return
    picture = data.engine.charts.picture(drawing, "svg" if out.suffix.lower() == ".svg" else "png")
    with data.run(picture.__aenter__()).open("rb") as source, out.open("wb") as target:
        shutil.copyfileobj(source, target)


def print_chart(chart: Chart, width: int = 0, ascii_: bool = False) -> None:
    """Draw a chart on stdout: as wide as the terminal, coloured only there and unless NO_COLOR is set."""
    from ba_tui.plotting.canvas import ASCII, Room  # noqa: PLC0415 - --help must not wait for it
    from ba_tui.plotting.drawing import USUAL_HEIGHT, drawn, signs_for  # noqa: PLC0415

    terminal = sys.stdout.isatty()
    signs = ASCII if ascii_ else signs_for(os.environ if terminal else {}, sys.stdout.encoding or "utf-8")
    columns = width or (shutil.get_terminal_size().columns if terminal else PIPED_WIDTH)
    coloured = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    lines = drawn(chart, Room(columns, USUAL_HEIGHT, signs, grow=True))
    print_line("\n".join(painted_lines(lines, coloured=coloured)))


def painted_lines(lines: Sequence[Line], *, coloured: bool) -> list[str]:
    """Lines as text, with SGR sequences when ``coloured``."""
    found: list[str] = []
    for line in lines:
        if not coloured:
            found.append("".join(run.text for run in line).rstrip())
            continue
        parts = [
            f"\x1b[{code}m{run.text}\x1b[0m" if (code := _code(run.role)) and run.text.strip() else run.text
            for run in line
        ]
        found.append("".join(parts).rstrip())
    return found


def _code(role: str) -> str:
    return COLOURS[int(role) - 1] if role.isdigit() else STYLES.get(role, "")
