"""Reports as text: Markdown documents, Python scripts and Jupyter notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from ba_tui.core.ports.tables import Cell
from ba_tui.core.results import Chart
from ba_tui.core.text.figures import noted, notes_in_markdown, notes_in_text
from ba_tui.core.text.wording import count, one_line
from ba_tui.features.data.analysis.reports.values import Report, ReportResult, ReportSection, ReportTable
from ba_tui.plotting.drawing import text_of

CELL_CHARS = 80
HASH_CHARS = 12


def markdown(report: Report) -> str:
    """Return the report as Markdown."""
    return "\n".join(_document(report)).rstrip() + "\n"


def appendix(report: Report) -> str:
    """Return the results and their sources as Markdown; empty when there are none."""
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
    """Return the title, the version of ba and the date."""
    title = one_line(report.title, 200) or "Report"
    return f"# {title}\n\n*Made by ba {report.version} on {day(report.made)}.*"


def origin(section: ReportSection) -> str:
    """Return the line that names the results of a section; empty when it has none."""
    named = ", ".join(f"[{handle}](#{handle.lower()})" for handle in section.results)
    return f"\n*From {named}.*" if named else ""


def chart_lines(chart: Chart) -> Sequence[str]:
    """Return a chart as a block of text."""
    return fenced(text_of(chart), "")


def prompt_lines(prompt: str) -> list[str]:
    """Return a prompt as a quote."""
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
    """Return text as a fenced code block."""
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
    """Return a date and time in UTC; empty for none."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC") if at else ""


# Scripts and notebooks run the queries with ``rerun``, which is in the report's data folder.

_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127), " ")


def script(report: Report, folder: str, name: str) -> str:
    """Return the report as a Python script ``name``; its data are in ``folder`` next to it."""
    lines = [
        *_comment(report.title),
        "#",
        *_comment(_about(report)),
        "#",
        "#     pip install duckdb",
        f"#     python {one_line(name, 200)}                         the same numbers, or what differs, by name",
        f"#     python {one_line(name, 200)} --data TABLE=FILE       the same questions to another file",
        "",
        "import sys",
        "from pathlib import Path",
        "",
        f"FOLDER = Path(__file__).resolve().parent / {folder!r}",
        "sys.path.insert(0, str(FOLDER))",
        "",
        "from rerun import Rerun, options  # noqa: E402",
        "",
        "report = Rerun(FOLDER, options())",
        "",
        *_tables(report),
    ]
    for section in report.sections:
        lines += ["", "", *_comment(section.prompt), ""]
        for handle in section.results:
            result = report.result(handle)
            lines += [*_remark(result), f"print({_call(result)})", "print()"]
        for chart in section.charts:
            lines += [*_comment(text_of(chart)), "#"]
        lines += _comment("\n".join([section.answer.marked(r"[\1]"), *notes_in_text(section.answer)]))
    return "\n".join([*lines, "", "sys.exit(report.check())", ""])


def notebook(report: Report, folder: str) -> str:
    """Return the report as a notebook (nbformat 4.5); its data are in ``folder`` next to it."""
    cells = [
        _markdown(f"# {one_line(report.title, 200)}\n\n{_about(report)}"),
        _code(
            "import sys\nfrom pathlib import Path\n\n"
            f"FOLDER = Path({folder!r}).resolve()\nsys.path.insert(0, str(FOLDER))\n\n"
            "from rerun import Rerun\n\nreport = Rerun(FOLDER)\n" + "\n".join(_tables(report))
        ),
    ]
    for section in report.sections:
        cells += _section_cells(report, section)
    cells.append(_code("report.check()"))
    numbered = [{**cell, "id": f"cell-{number}"} for number, cell in enumerate(cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    value = {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _section_cells(report: Report, section: ReportSection) -> Iterator[dict[str, Any]]:
    yield _markdown("\n".join(prompt_lines(section.prompt)))
    for handle in section.results:
        result = report.result(handle)
        yield _code("\n".join([*_remark(result), _call(result)]))
    for chart in section.charts:
        yield _markdown("\n".join(chart_lines(chart)))
    if section.answer.text:
        # Jupyter has no footnotes.
        notes = notes_in_markdown(section.answer, (), "{}. ")
        yield _markdown("\n".join([section.answer.marked(r"<sup>\1</sup>"), *notes]))


def _about(report: Report) -> str:
    return (
        f"Made by ba {report.version} on {day(report.made)} with {report.engine or 'no data engine'}. It works the "
        "results out again, without a model."
    )


def _tables(report: Report) -> list[str]:
    return [f"report.table({table.name!r})" for table in report.tables]


def _remark(result: ReportResult) -> list[str]:
    return _comment(f"Not worked out again: {one_line(result.kept, 200)}.") if result.kept else []


def _call(result: ReportResult) -> str:
    """Return the expression that computes a result."""
    if result.kept:
        return f"report.stored({result.handle!r})"
    return f"report.query({result.handle!r}, {_literal(result.sql)})"


def _literal(sql: str) -> str:
    """Return SQL as a Python string, split into lines where that does not change it."""
    plain = all(character.isprintable() or character == "\n" for character in sql)
    lines = "\n" in sql and plain and '"""' not in sql and "\\" not in sql and not sql.endswith('"')
    return f'"""{sql}"""' if lines else repr(sql)


def _comment(text: str) -> list[str]:
    """Return text as comments. Every kind of line break ends a comment, so each line gets its own sign."""
    return [f"# {line.translate(_CONTROL)}".rstrip() for line in text.splitlines()]


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": lines}
