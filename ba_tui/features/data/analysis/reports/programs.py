"""A report as a Python script and as a Jupyter notebook: the queries, which run again without a model.

What runs them is ``rerun``, which lies in the folder of the report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ba_tui.core.text.footnotes import notes_in_markdown, notes_in_text
from ba_tui.core.text.wording import one_line
from ba_tui.features.data.analysis.reports.documents import chart_lines, day, prompt_lines
from ba_tui.features.data.analysis.reports.values import Report, ReportResult, ReportSection
from ba_tui.plotting.drawing import text_of

WIDTH = 100
_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127), " ")


def script(report: Report, folder: str, name: str) -> str:
    """Return the report as a Python script ``name``, whose data lie in ``folder`` beside it."""
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
    """Return the report as a notebook (nbformat 4.5), whose data lie in ``folder`` beside it."""
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
        # Jupyter knows no footnotes.
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
    """The expression that gives a result."""
    if result.kept:
        return f"report.stored({result.handle!r})"
    return f"report.query({result.handle!r}, {_literal(result.sql)})"


def _literal(sql: str) -> str:
    """SQL as a string of Python, in lines where that changes nothing."""
    plain = all(character.isprintable() or character == "\n" for character in sql)
    lines = "\n" in sql and plain and '"""' not in sql and "\\" not in sql and not sql.endswith('"')
    return f'"""{sql}"""' if lines else repr(sql)


def _comment(text: str) -> list[str]:
    """Any text as comments: line breaks of all kinds end a comment, so each line gets its own sign."""
    return [f"# {line.translate(_CONTROL)}".rstrip() for line in text.splitlines()]


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": lines}
