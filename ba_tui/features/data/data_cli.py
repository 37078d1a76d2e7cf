"""The program ``ba data``: profiles, queries, charts, checks, comparisons and agreed definitions."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from ba_tui.cli.config import Cwd, folder_of, load, print_line, say
from ba_tui.cli.streams import write_output
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.settings import ALL, KINDS
from ba_tui.core.ports.tables import DatasetProfile, QueryResult, TrapFinding
from ba_tui.core.results import PICTURES, Aggregate, Chart, ChartKind, ChartOrder, ChartRequest
from ba_tui.core.text.wording import count, one_line, sentence, suggestion, with_hint
from ba_tui.features.data.analysis.card import card
from ba_tui.features.data.analysis.comparison import Comparison, comparison_lines
from ba_tui.features.data.analysis.errors import AnalysisError, QueryRefused
from ba_tui.features.data.analysis.metric_queries import as_table, differences, expanded, sql_trouble
from ba_tui.features.data.analysis.metrics import Metric, Metrics, metric_folders
from ba_tui.features.data.analysis.nearby import PROJECT_METRICS
from ba_tui.features.data.cli_engine import (
    OK,
    USAGE,
    FigureFormat,
    Locale,
    OpenedData,
    export,
    figure_format,
    head,
    markdown_lines,
    opened_data,
    plainly,
    print_error,
    table_lines,
)
from ba_tui.features.data.tools.sources import SourceQueries, session_sources
from ba_tui.permissions.trust.grants import Trust
from ba_tui.plotting.canvas import ASCII, DrawingArea, Line, Run
from ba_tui.plotting.drawing import USUAL_HEIGHT, drawn, signs_for
from ba_tui.resources import places, project_root

FOUND = 6
LONGEST = 600
ROWS = 100
BINARY = frozenset({"parquet", "xlsx"})
PRINTED = frozenset({"table", "markdown"})
Format = Literal["table", "markdown", "csv", "tsv", "json", "jsonl", "parquet", "xlsx"]
NONE = "No agreed definitions. Write one into .ba/metrics/NAME.yaml: sql: sum(amount) (ba guide metrics)."

app = typer.Typer(no_args_is_help=True)
Part = Annotated[str, typer.Option(metavar="NAME", help="Read only this sheet or table of each file.")]


def metrics(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Data files to check the columns against.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
    cwd: Cwd = None,
) -> int:
    """List the agreed definitions of figures and check them, with files also their columns.

    \b
    Exit codes:
      0 ok · 6 a definition is wrong · 2 a file can't be read
    """
    folder = folder_of(cwd)
    known, root = agreed_metrics(folder).look(), project_root(folder)
    if (root / PROJECT_METRICS).is_dir() and not Trust(places()).trusted(root):
        say(f"{PROJECT_METRICS} is ignored: this folder is not trusted. Review it, then run ba trust.")
    troubles = {metric: metric.trouble or sql_trouble(metric) for metric in known}
    if files:
        try:
            with opened_data(folder, files) as data:
                for file in data.files:
                    data.register(file)
                for metric in [metric for metric, trouble in troubles.items() if not trouble]:
                    troubles[metric] = _columns_trouble(data, metric)
        except AnalysisError as error:
            return print_error(error)
    if json_:
        print_line(
            json.dumps([asdict(metric) | {"trouble": trouble} for metric, trouble in troubles.items()], indent=2)
        )
    else:
        for metric, trouble in troubles.items():
            if not trouble:
                print_line("\n".join(_lines(metric)))
    for trouble in dict.fromkeys(filter(None, troubles.values())):
        say(sentence(trouble))
    if not known and not json_:
        say(NONE)
    return FOUND if any(troubles.values()) else OK


def agreed_metrics(folder: Path) -> Metrics:
    """Return the metric definitions that apply in ``folder``."""
    where, root = places(), project_root(folder)
    return Metrics(metric_folders(where.config, root, lambda: Trust(where).trusted(root)))


def _columns_trouble(data: OpenedData, metric: Metric) -> str:
    """Return the engine's error for a definition over the registered files; empty when its table is not among them."""
    tables = {each.name.lower() for each in data.run(data.engine.catalogue()).datasets}
    if metric.name.lower() in tables:
        return f"{metric.shown}: {metric.name} is the name of a table too. Rename one"
    if not metric.source:
        return ""
    try:
        data.run(data.engine.query(f"FROM {as_table(metric, ())} LIMIT 0"))
    except AnalysisError as error:
        return f"{metric.shown}: {metric.name}: {with_hint(str(error), error.hint)}"
    return ""


def _lines(metric: Metric) -> Iterator[str]:
    yield metric.line
    yield f"  {one_line(metric.sql, 200)}{f' from {one_line(metric.source, 100)}' if metric.source else ''}"
    also = f"also {', '.join(metric.synonyms)}" if metric.synonyms else ""
    owner = f"owner {metric.owner}" if metric.owner else ""
    yield f"  {' · '.join(filter(None, (metric.description, also, owner, metric.shown)))}"


@app.command()
def profile(
    files: Annotated[list[str], typer.Argument(metavar="FILE|-", help="Data files or globs; - reads CSV from stdin.")],
    part: Part = "",
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list with all statistics.")] = False,
    cwd: Cwd = None,
) -> int:
    """Profile data files: rows, columns, types, missing and most frequent values, and oddities.

    \b
    Exit codes:
      0 ok · 1 an option is wrong · 2 a file can't be read
      3 a limit was reached · 4 a file may not be read · 130 interrupted
    """
    codes: list[int] = []
    profiles: list[dict[str, Any]] = []
    with opened_data(folder_of(cwd), files) as data:
        for file in data.files:
            try:
                for dataset in data.register(file, part):
                    found = data.run(data.engine.profile(dataset.name, on_progress=data.line.show))
                    profiles.append(asdict(found))
                    if not json_:
                        names = [column.name for column in dataset.columns]
                        print_line(card(found, most=1_000_000, unmasked=names))
            except AnalysisError as error:
                codes.append(print_error(error))
    if json_:
        print_line(json.dumps(profiles, indent=2))
    return max(codes, default=OK)


@app.command()
def query(  # noqa: PLR0913 - typer reads one parameter a flag
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One read-only statement.")],
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE|-", help="Data files or globs; - reads CSV from stdin.")
    ] = None,
    part: Part = "",
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="Run it on this source of your settings, read-only.")
    ] = "",
    format: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="Output format; default by the ending of --output, else table."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")] = None,
    rows: Annotated[int, typer.Option(min=0, help="Rows to print as table or Markdown; 0 for all.")] = ROWS,
    chart: Annotated[
        str,
        typer.Option(metavar="KIND", help="Draw the result: bar, line, pie …; see ba data chart."),
    ] = "",
    locale: Locale = "",
    cwd: Cwd = None,
) -> int:
    """Query data files with SQL (DuckDB). A file is the table of its name: sales.csv is sales, stdin is stdin.

    \b
    Exit codes:
      0 ok · 1 the query or an option is wrong · 2 a file can't be read
      3 a limit was reached: time, rows or memory
      4 it does more than read, or a file may not be read · 130 interrupted
    """
    kind, definitions = check_kind(chart) if chart else None, agreed_metrics(folder_of(cwd))
    if kind and output:
        check_picture(output)
    wanted = "table" if kind else _format("json" if json_ else format, output)
    figures = figure_format(locale) if locale else plainly
    with opened_data(folder_of(cwd), files or ()) as data:
        try:
            for file in data.files:
                data.register(file, part)
            agreed = expanded(sql, definitions)
            if source:
                result = data.run(_on_source(data, source, agreed.sql, folder_of(cwd)))
            else:
                result = data.query(agreed.sql)
            data.line.clear()
            for found in differences(agreed.sql, definitions.usable()):
                say(f"{found.title}. {found.why}")
            _say_notes(result)
            if kind:
                deliver_chart(data, ChartRequest(result.handle, kind), output)
                return OK
            return _delivered(data, result, wanted, output, rows, figures)
        except AnalysisError as error:
            return print_error(error)


def _say_notes(result: QueryResult) -> None:
    """Print what a reader must know of a result on standard error."""
    for note in result.notes:
        say(note)
    for each in result.told:
        say(f"careful: {one_line(each.message, LONGEST)} ({each.trap})")


async def _on_source(data: OpenedData, source: str, sql: str, folder: Path) -> QueryResult:
    """Run a statement on a source, in a helper that ends with the command."""
    sources = session_sources(data.engine, data.place, load(folder).settings, folder)
    queries, args = SourceQueries(sources), {"sql": sql, "source": source}
    try:
        if await queries.writes(args):
            raise QueryRefused("Only statements that read run from the command line.", f"In ba: /sql @{source} …")
        return await queries.run(args, data.line.show)
    finally:
        await sources.close()


def _format(requested: Format | None, output: Path | None) -> Format:
    """Return the output format. Raises UsageError when it is ambiguous, or binary on a terminal."""
    if requested is None and output is not None:
        known: dict[str, Format] = {".md": "markdown", ".txt": "table", ".ndjson": "jsonl"}
        known |= {f".{name}": name for name in ("csv", "tsv", "json", "jsonl", "parquet", "xlsx")}
        if output.suffix.lower() not in known:
            raise UsageError(f"{output.name} does not say which format it is to have.", "Add --format.")
        return known[output.suffix.lower()]
    chosen = requested or "table"
    if chosen in BINARY and output is None and sys.stdout.isatty():
        raise UsageError(f"A terminal can't show {chosen}.", f"Add --output result.{chosen}, or send it to a file.")
    return chosen


def _delivered(
    data: OpenedData, result: QueryResult, format: Format, output: Path | None, rows: int, figures: FigureFormat
) -> int:
    if format not in PRINTED:
        return export(data, result.handle, format, output)
    lines, note = _rows(data, result, format, rows, figures)
    if output:
        write_output(output, [f"{lines}\n"])
    else:
        print_line(lines)
    if note:
        say(note)
    return OK


def _rows(
    data: OpenedData, result: QueryResult, format: str, rows: int, figures: FigureFormat, verb: str = ""
) -> tuple[str, str]:
    """Return the first ``rows`` (0 for all) of a result as text, and a note when there are more. ``verb``: what all the
    rows do."""
    shown = data.run(head(data.engine, result, rows or result.rows))
    lines = (table_lines if format == "table" else markdown_lines)(result.columns, shown, figures)
    note = f"{result.rows:,} rows{verb}; the first {len(shown):,} are shown. --rows 0 prints all of them."
    return "\n".join(lines), note if len(shown) < result.rows else ""


# Charts, drawn as text on stdout or saved as a picture.

PIPED_WIDTH = 80
COLOURS = ("36", "33", "32", "31", "35", "34", "96", "93")
"""SGR colour codes of the series."""
STYLES = {"title": "1", "dim": "2"}


def check_picture(out: Path) -> None:
    """Raise UsageError unless the file name ends in a picture format."""
    if out.suffix.lower().lstrip(".") not in PICTURES:
        raise UsageError(f"{out.name} is no picture.", "Its name must end in .svg or .png.")


def check_kind(kind: str) -> ChartKind:
    """Return the chart kind ``kind``. Raises UsageError."""
    found: ChartKind | None = next((each for each in get_args(ChartKind) if each == kind), None)
    if found is None:
        raise UsageError(f"There is no chart {kind!r}.", f"{suggestion(kind, get_args(ChartKind)).capitalize()}")
    return found


def deliver_chart(
    data: OpenedData, wanted: ChartRequest, out: Path | None = None, look: tuple[int, bool] = (0, False)
) -> None:
    """Compute a chart, then print or save it. ``look`` has width and ASCII of ``print_chart``."""
    drawing = data.run(data.engine.chart(wanted, on_progress=data.line.show))
    if out is None:
        print_chart(drawing, *look)
        return
    picture = data.engine.picture(drawing, "svg" if out.suffix.lower() == ".svg" else "png")
    with data.run(picture.__aenter__()).open("rb") as source:
        write_output(out, source)


def print_chart(chart: Chart, width: int = 0, ascii_: bool = False) -> None:
    """Print a chart. On a terminal it fits the width, and has colours unless NO_COLOR is set."""
    terminal = sys.stdout.isatty()
    signs = ASCII if ascii_ else signs_for(os.environ if terminal else {}, sys.stdout.encoding or "utf-8")
    columns = width or (shutil.get_terminal_size().columns if terminal else PIPED_WIDTH)
    coloured = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    lines = drawn(chart, DrawingArea(columns, USUAL_HEIGHT, signs, grow=True))
    print_line("\n".join(painted_lines(lines, coloured=coloured)))


def painted_lines(lines: Sequence[Line], *, coloured: bool) -> list[str]:
    """Return lines as text, with SGR sequences when ``coloured``."""
    return ["".join(_painted(run) if coloured else run.text for run in line).rstrip() for line in lines]


def _painted(run: Run) -> str:
    code = COLOURS[int(run.role) - 1] if run.role.isdigit() else STYLES.get(run.role, "")
    return f"\x1b[{code}m{run.text}\x1b[0m" if code and run.text.strip() else run.text


DIFFERENT = 6
CompareFormat = Literal["table", "markdown", "csv", "json"]


def compare(  # noqa: PLR0913 - typer reads one parameter a flag
    left: Annotated[str, typer.Argument(metavar="A", help="A data file; book.xlsx#Sheet1 names a sheet or table.")],
    right: Annotated[str, typer.Argument(metavar="B", help="The data file to compare it with.")],
    key: Annotated[
        list[str] | None,
        typer.Option("--key", "-k", metavar="COLUMN", help="Column that identifies a row; repeatable."),
    ] = None,
    tolerance: Annotated[float, typer.Option(min=0, help="Largest difference of numbers that are equal.")] = 0.0,
    format: Annotated[
        CompareFormat, typer.Option("--format", "-f", help="Output format of the differing rows.")
    ] = "table",
    json_: Annotated[bool, typer.Option("--json", help="Same as --format json: the whole comparison.")] = False,
    rows: Annotated[int, typer.Option(min=0, help="Rows to print as table or Markdown; 0 for all.")] = ROWS,
    locale: Locale = "",
    cwd: Cwd = None,
) -> int:
    """Compare two data files: columns, rows that only one has, and values that differ, matched by key.

    \b
    Exit codes:
      0 no difference · 6 they differ · 1 the key or an option is wrong
      2 a file can't be read · 3 a limit was reached
      4 a file may not be read · 130 interrupted
    """
    figures = figure_format(locale) if locale else plainly
    with opened_data(folder_of(cwd), [left.partition("#")[0], right.partition("#")[0]]) as data:
        try:
            names = [_table(data, file, name) for file, name in zip(data.files, (left, right), strict=True)]
            work = data.engine.compare(names[0], names[1], key or (), tolerance=tolerance, on_progress=data.line.show)
            found = data.run(work)
            if json_ or format == "json":
                print_line(json.dumps(_as_json(found), indent=2))
            elif format == "csv":
                for line in comparison_lines(found):
                    say(line)
                if found.result:
                    export(data, found.result.handle, "csv", None)
            else:
                print_line("\n".join([*_file_names(names, (left, right)), *comparison_lines(found)]))
                if found.result:
                    lines, note = _rows(data, found.result, format, rows, figures, " differ")
                    print_line(f"\n{lines}")
                    if note:
                        say(note)
        except AnalysisError as error:
            return print_error(error)
    return OK if found.equal else DIFFERENT


def _table(data: OpenedData, file: str, named: str) -> str:
    part = named.partition("#")[2]
    found = list(data.register(file, part))
    if len(found) > 1:
        parts = [each.part for each in found]
        hint = f"Name one: {named}#{parts[0]}. It has {', '.join(parts[:12])}."
        raise UsageError(f"{named} holds several tables.", hint)
    return found[0].name


def _file_names(names: Sequence[str], named: Sequence[str]) -> Iterator[str]:
    """Yield a line that maps tables to files when two files have the same name."""
    if len({Path(each.partition("#")[0]).name for each in named}) < len(named):
        yield "; ".join(f"{name} is {each}" for name, each in zip(names, named, strict=True)) + "."


def _as_json(found: Comparison) -> dict[str, Any]:
    result = asdict(found) | {"equal": found.equal}
    if found.result:
        columns = [column.name for column in found.result.columns]
        result["result"] = {
            "rows": found.result.rows,
            "columns": columns,
            "first": [list(row) for row in found.result.head],
        }
    return result


LONGEST_FINDING = 2_000


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE|-", help="Data files or globs; - reads CSV from stdin.")],
    part: Part = "",
    mute: Annotated[
        list[str] | None, typer.Option("--mute", metavar="KIND", help="Skip this kind of finding; repeatable.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list with the proof of each finding.")] = False,
    cwd: Cwd = None,
) -> int:
    """Check data files for traps and defects: totals among rows, placeholders, gaps, repeated keys, broken references.

    Each finding comes with the SQL that proves it. `ba guide traps` explains the kinds.

    \b
    Exit codes:
      0 nothing was found · 1 an option is wrong · 2 a file can't be read
      3 a limit was reached · 4 a file may not be read
      6 something was found · 130 interrupted
    """
    left_out = frozenset(mute or ())
    if unknown := left_out - {*KINDS, ALL}:
        say(f"There is no kind {min(unknown)}. Kinds are {', '.join(KINDS)}.")
        return USAGE
    codes: list[int] = []
    profiles: list[DatasetProfile] = []
    with opened_data(folder_of(cwd), files) as data:
        names: list[str] = []
        for file in data.files:
            try:
                names += [each.name for each in data.register(file, part)]
            except AnalysisError as error:
                codes.append(print_error(error))
        for name in dict.fromkeys(names):
            try:
                profiles.append(data.run(data.engine.profile(name, thorough=True, on_progress=data.line.show)))
            except AnalysisError as error:
                codes.append(print_error(error))
    found = [each for profile in profiles for each in profile.told if each.trap not in left_out and ALL not in left_out]
    if json_:
        shown = ("dataset", "trap", "column", "message", "proof")
        print_line(json.dumps([{key: getattr(each, key) for key in shown} for each in found], indent=2))
    else:
        _print(profiles, found)
    return max(codes, default=FOUND if found else OK)


def _print(profiles: Sequence[DatasetProfile], found: Sequence[TrapFinding]) -> None:
    for profile in profiles:
        own = [each for each in found if each.dataset == profile.dataset.name]
        size = count(profile.dataset.rows, "row")
        print_line(f"{profile.dataset.name}: {size}, {count(len(own), 'finding') if own else 'nothing was found'}")
        for each in own:
            message, proof = one_line(each.message, LONGEST_FINDING), one_line(each.proof, LONGEST_FINDING)
            print_line(f"  {each.trap}: {message}\n    {proof}")
        hidden = sum(each.muted for each in profile.findings)
        if hidden:
            say(f"{profile.dataset.name}: {count(hidden, 'muted finding')} not shown.")
        for note in profile.notes:
            say(note)


Kind = Annotated[ChartKind | None, typer.Option("--kind", help="Kind of chart; by default chosen by the columns.")]
X = Annotated[str, typer.Option("--x", metavar="COLUMN", help="Column of categories, times or numbers.")]
Y = Annotated[
    list[str] | None, typer.Option("--y", metavar="COLUMN", help="Column of values; repeat it for several series.")
]


def chart(  # noqa: PLR0913 - typer reads one parameter a flag
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="A data file; - reads CSV from stdin.")],
    kind: Kind = None,
    x: X = "",
    y: Y = None,
    series: Annotated[str, typer.Option(metavar="COLUMN", help="A column whose values become series.")] = "",
    aggregate: Annotated[Aggregate | None, typer.Option(help="Aggregate for several rows with one x.")] = None,
    order: Annotated[ChartOrder | None, typer.Option(help="The order of categories.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Most categories; the others are combined.")] = 0,
    stacked: Annotated[bool, typer.Option("--stacked", help="Stack the bars of several series.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Use a logarithmic axis for the values.")] = False,
    title: str = "",
    unit: Annotated[str, typer.Option(help="The unit of the values.")] = "",
    sql: Annotated[str, typer.Option(metavar="SQL", help="Draw the result of a query instead of the file.")] = "",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Save the chart as .svg or .png.")
    ] = None,
    part: Part = "",
    ascii_: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters.")] = False,
    width: Annotated[int, typer.Option(min=0, help="Width in columns; 0 for the terminal's width.")] = 0,
    cwd: Cwd = None,
) -> int:
    """Draw a chart of a data file in the terminal, or save it as a picture.

    \b
    Exit codes:
      0 ok · 1 the query, a column or an option is wrong · 2 a file can't be read
      3 a limit was reached · 4 a file may not be read · 130 interrupted
    """
    wanted = ChartRequest(
        "", kind, x, tuple(y or ()), series, aggregate, order, limit, stacked, log, title=title, unit=unit
    )
    if out:
        check_picture(out)
    with opened_data(folder_of(cwd), [file]) as data:
        try:
            datasets = data.register(data.files[0], part)
            name = data.query(sql).handle if sql else datasets[0].name
            if len(datasets) > 1 and not sql:
                say(f"Drawn is {name}; --part or --sql choose among {', '.join(each.name for each in datasets)}.")
            deliver_chart(data, replace(wanted, data=name), out, (width, ascii_))
        except AnalysisError as error:
            return print_error(error)
    return OK


for command in (chart, check, compare, metrics):
    app.command()(command)
