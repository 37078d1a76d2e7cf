"""Reports of a session: Markdown and HTML to read, Python and Jupyter to run again."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event
from ba_tui.core.ports.tables import Progress
from ba_tui.core.results import Chart
from ba_tui.core.text.figures import FigureReport
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.analysis.report import (
    Report,
    ReportFigure,
    ReportSection,
    appendix,
    chart_lines,
    gather_report,
    heading,
    markdown,
    notebook,
    origin,
    prompt_lines,
    script,
    store_data,
)
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.plotting.canvas import safe
from ba_tui.sessions.exports.document import answers
from ba_tui.sessions.exports.html import PAGE_END, answer_html, page_head, prose
from ba_tui.sessions.foreign import redacted

DOCUMENTS = (".html", ".md")
PROGRAMS = (".ipynb", ".py")
"""They need a folder of data next to them."""


def said_in(title: str, events: Iterable[Event]) -> tuple[str, tuple[ReportSection, ...], tuple[ReportFigure, ...]]:
    """Return the title, the questions and answers of a session without secrets, and the figures of answers that occur
    in results. Iterates ``events`` twice. Blocks."""

    def hide(text: str) -> str:
        return redact(redacted(text))

    found = answers(events, hide)
    sections = tuple(ReportSection(each.prompt, each.answer, each.at, charts=each.charts) for each in found)
    figures = dict.fromkeys(cell for each in found for cell in _cells(each.figures, hide))
    return paintable(hide(title)), sections, tuple(figures)


def _cells(report: FigureReport, hide: Callable[[str], str]) -> Iterator[ReportFigure]:
    """Yield the figures that equal a cell of a result, so that a later run can look them up."""
    for verdict in report.verdicts:
        cell = next((each for each in verdict.sources if each.column and each.line >= 0), None)
        if verdict.label == "sourced" and cell:
            yield ReportFigure(paintable(hide(verdict.text)), cell.name, cell.column, cell.line, cell.value)


def check_format(path: Path) -> None:
    """Raise UsageError for a file name that is no report format."""
    if path.suffix.lower() not in {*DOCUMENTS, *PROGRAMS}:
        known = ", ".join((*DOCUMENTS, *PROGRAMS))
        raise UsageError(f"{path.name} does not end as a report does.", f"Name a file that ends in {known}.")


def data_folder(target: Path) -> Path:
    """Return the folder with the data of a script or notebook."""
    return target.with_name(f"{target.stem}-data")


async def write_report(
    analysis: Analysis,
    said: tuple[str, tuple[ReportSection, ...], tuple[ReportFigure, ...]],
    target: Path,
    into: Path,
    on_progress: Callable[[Progress], None] | None = None,
) -> Sequence[tuple[Path, Path]]:
    """Write the files of the report ``target`` on what ``said_in`` returned into the empty folder ``into``. Return each
    with its final path, the report last. Raises BaError, OSError."""
    report = await gather_report(analysis, *said, target.parent)
    found: list[tuple[Path, Path]] = []
    kind = target.suffix.lower()
    if kind in PROGRAMS:
        if not report.results:
            raise UsageError("This session has no results that could run again.", "Write .md or .html instead.")
        data = into / "data"
        data.mkdir()
        await store_data(analysis, report, data, on_progress)
        found += [(each, data_folder(target) / each.name) for each in sorted(data.iterdir())]
    made = into / f"report{kind}"
    pictures = await _pictures(analysis, report, on_progress) if kind == ".html" else ()
    text = await asyncio.to_thread(_text, report, target, pictures)
    await asyncio.to_thread(made.write_text, text, "utf-8", "replace")
    return [*found, (made, target)]


async def _pictures(
    analysis: Analysis, report: Report, on_progress: Callable[[Progress], None] | None
) -> Sequence[bytes]:
    """Return the charts in order as SVG; empty for one that can't be drawn, which is shown as text instead."""
    charts = [chart for section in report.sections for chart in section.charts]
    found: list[bytes] = []
    for number, chart in enumerate(charts):
        if on_progress:
            on_progress(Progress("drawing charts", number / len(charts)))
        try:
            async with analysis.picture(chart, "svg") as file:
                found.append(await asyncio.to_thread(file.read_bytes))
        except AnalysisError:
            found.append(b"")
    return found


def _text(report: Report, target: Path, pictures: Sequence[bytes]) -> str:
    match target.suffix.lower():
        case ".py":
            return script(report, data_folder(target).name, target.name)
        case ".ipynb":
            return notebook(report, data_folder(target).name)
        case ".html":
            return report_page(report, pictures)
        case _:
            return markdown(report)


# A report as one self-contained HTML page: answers with footnotes, charts, and results as link targets.

_RESULT = regex(r"<h3>(R\d+)</h3>")


def report_page(report: Report, pictures: Sequence[bytes]) -> str:
    """Return the page. ``pictures`` are the charts in order as SVG; an empty one is drawn as text."""
    drawn = iter(pictures)
    title = escape(one_line(report.title, 200) or "Report")
    return "".join([page_head(title), *_body(report, drawn, prose()), PAGE_END])


def _body(report: Report, pictures: Iterator[bytes], words: MarkdownIt) -> Iterator[str]:
    yield words.render(heading(report))
    for section in report.sections:
        yield words.render("\n".join(prompt_lines(section.prompt)))
        for chart in section.charts:
            picture = next(pictures)
            yield _picture(chart, picture) if picture else words.render("\n".join(chart_lines(chart)))
        if section.answer.text:
            yield answer_html(words, section.answer, report.handles)
        yield words.render(origin(section))
    results = words.render(appendix(report))
    yield _RESULT.sub(lambda found: f'<h3 id="{found[1].lower()}">{found[1]}</h3>', results)


def _picture(chart: Chart, svg: bytes) -> str:
    """Return the chart as an image element: an SVG loaded as an image runs no script and loads nothing."""
    return f'<p><img alt="{escape(safe(chart.title))}" src="data:image/svg+xml;base64,{b64encode(svg).decode()}"></p>\n'
