"""A report to read: questions, answers and an appendix with every result, its query and its sources, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from ba_tui.core.displays.charts import Chart
from ba_tui.core.ports.tables import Cell
from ba_tui.core.text.footnotes import noted
from ba_tui.core.text.wording import count, one_line
from ba_tui.features.data.analysis.reports.values import Report, ReportResult, ReportSection, ReportTable
from ba_tui.plotting.drawing import text_of

CELL_CHARS = 80
HASH_CHARS = 12


def markdown(report: Report) -> str:
    """Return the report as Markdown."""
    return "\n".join(_document(report)).rstrip() + "\n"


def appendix(report: Report) -> str:
    """Return the results and their sources alone, as Markdown; empty where there are none."""
    return "\n".join(_appendix(report)).rstrip()


def _document(report: Report) -> Iterator[str]:
    yield heading(report)
    for section in report.sections:
        yield ""
        yield from prompt_lines(section.prompt)
        for chart in section.charts:
            yield ""
            yield from chart_lines(chart)
        if section.answer.text:
            yield ""
            yield from noted(section.answer, report.handles)
        yield origin(section)
    yield ""
    yield from _appendix(report)


def heading(report: Report) -> str:
    """The title, and who made the report and when."""
    title = one_line(report.title, 200) or "Report"
    return f"# {title}\n\n*Made by ba {report.version} on {day(report.made)}.*"


def origin(section: ReportSection) -> str:
    """The line that names the results of a section; empty where it has none."""
    named = ", ".join(f"[{handle}](#{handle.lower()})" for handle in section.results)
    return f"\n*From {named}.*" if named else ""


def chart_lines(chart: Chart) -> Sequence[str]:
    """A chart as a block of text."""
    return fenced(text_of(chart), "")


def prompt_lines(prompt: str) -> list[str]:
    """A prompt as a quote."""
    return [f"> {line}".rstrip() for line in prompt.strip().splitlines()]


def _appendix(report: Report) -> Iterator[str]:
    if not report.results:
        return
    yield "## Results"
    for result in report.results:
        yield from _result(result)
    yield "\n## Sources\n"
    for table in report.tables:
        yield _source(table)


def _result(result: ReportResult) -> Iterator[str]:
    yield f"\n### {result.handle}\n"
    shown = len(result.head)
    first = f", the first {shown:,} here" if shown < result.rows else ""
    facts = [f"{count(result.rows, 'row')}{first}", f"{result.seconds:.2f} s", result.engine, day(result.started)]
    yield " · ".join(filter(None, facts)) + "\n"
    yield from fenced(result.sql, "sql")
    if result.kept:
        yield f"\nNot worked out again by an export: {result.kept}."
    if result.columns:
        yield ""
        yield _row([column.name for column in result.columns])
        yield _row(["---:" if column.numeric else "---" for column in result.columns])
        yield from (_row([_cell(value) for value in row]) for row in result.head)


def _source(table: ReportTable) -> str:
    part = f" ({one_line(table.part, 100)})" if table.part else ""
    files = ", ".join(f"{count(file.size, 'byte')}, SHA-256 {file.sha256[:HASH_CHARS]}…" for file in table.files[:3])
    more = f" and {len(table.files) - 3:,} more files" if len(table.files) > 3 else ""
    return f"- `{table.name}`: {one_line(table.source, 200)}{part}; {files}{more}"


def fenced(text: str, language: str) -> Sequence[str]:
    """A block of text as it is."""
    fence = "```"
    while fence in text:
        fence += "`"
    return [f"{fence}{language}", text, fence]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Cell) -> str:
    if value is None:
        return "NULL"
    return one_line(str(value), CELL_CHARS).replace("\\", "\\\\").replace("|", "\\|")


def day(at: float) -> str:
    """A time as people write it, in UTC; empty for none."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC") if at else ""
