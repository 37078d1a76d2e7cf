"""Writes what a session found as a report: to read (Markdown, HTML) or to run again (Python, Jupyter)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event
from ba_tui.core.ports.tables import Progress
from ba_tui.core.text.figures import FigureReport
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.analysis.reports.documents import markdown
from ba_tui.features.data.analysis.reports.gathering import gathered, stored
from ba_tui.features.data.analysis.reports.programs import notebook, script
from ba_tui.features.data.analysis.reports.values import Report, ReportFigure, ReportSection
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.sessions.exports.answers import answers
from ba_tui.sessions.foreign import redacted

DOCUMENTS = (".html", ".md")
PROGRAMS = (".ipynb", ".py")
"""They need a folder of data beside them."""


@frozen
class ReportedSession:
    """What was said, with secrets taken out, and the figures of answers that stand in results."""

    title: str
    sections: tuple[ReportSection, ...]
    figures: tuple[ReportFigure, ...] = ()


def reported_session(title: str, events: Iterable[Event]) -> ReportedSession:
    """Return the questions and answers of a session. ``events`` are gone through twice. Blocks."""

    def hide(text: str) -> str:
        return redact(redacted(text))

    found = answers(events, hide)
    sections = tuple(ReportSection(each.prompt, each.answer, each.at, charts=each.charts) for each in found)
    figures = dict.fromkeys(cell for each in found for cell in _cells(each.figures, hide))
    return ReportedSession(paintable(hide(title)), sections, tuple(figures))


def _cells(report: FigureReport, hide: Callable[[str], str]) -> Iterator[ReportFigure]:
    """The figures that stand in a cell of a result as they are, so that it can be looked up again."""
    for verdict in report.verdicts:
        cell = next((each for each in verdict.sources if each.column and each.line >= 0), None)
        if verdict.label == "sourced" and cell:
            yield ReportFigure(paintable(hide(verdict.text)), cell.name, cell.column, cell.line, cell.value)


def check_format(path: Path) -> None:
    """Raises UsageError where the ending names no format of reports."""
    if path.suffix.lower() not in {*DOCUMENTS, *PROGRAMS}:
        known = ", ".join((*DOCUMENTS, *PROGRAMS))
        raise UsageError(f"{path.name} does not end as a report does.", f"Name a file that ends in {known}.")


def data_folder(target: Path) -> Path:
    """The folder beside a script or notebook that has its data."""
    return target.with_name(f"{target.stem}-data")


class ReportWriter:
    """``analysis`` has the results."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    async def write(
        self,
        said: ReportedSession,
        target: Path,
        into: Path,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Sequence[tuple[Path, Path]]:
        """Write the files of the report ``target`` into the folder ``into``, which is empty. Returns each with the
        place where it belongs, the report itself last. Raises BaError, OSError."""
        report = await gathered(self._analysis, said.title, said.sections, said.figures, target.parent)
        found: list[tuple[Path, Path]] = []
        if target.suffix.lower() in PROGRAMS:
            if not report.results:
                raise UsageError("This session has no results that could run again.", "Write .md or .html instead.")
            data = into / "data"
            data.mkdir()
            await stored(self._analysis, report, data, on_progress)
            found += [(each, data_folder(target) / each.name) for each in sorted(data.iterdir())]
        made = into / f"report{target.suffix.lower()}"
        pictures = await self._pictures(report, on_progress) if target.suffix.lower() == ".html" else ()
        text = await asyncio.to_thread(_text, report, target, pictures)
        await asyncio.to_thread(made.write_text, text, "utf-8", "replace")
        return [*found, (made, target)]

    async def _pictures(self, report: Report, on_progress: Callable[[Progress], None] | None) -> Sequence[bytes]:
        """The charts in order as SVG, empty where one can't be drawn: its text stands for it then."""
        charts = [chart for section in report.sections for chart in section.charts]
        found: list[bytes] = []
        for number, chart in enumerate(charts):
            if on_progress:
                on_progress(Progress("drawing charts", number / len(charts)))
            try:
                async with self._analysis.charts.picture(chart, "svg") as file:
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
            from ba_tui.features.data.tools.report_pages import report_page  # noqa: PLC0415 - loads a Markdown parser

            return report_page(report, pictures)
        case _:
            return markdown(report)
