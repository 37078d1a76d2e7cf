"""Writes what a session found as a report: to read (Markdown, HTML) or to run again (Python, Jupyter)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path

from ba_tui.analysis.engine import Analysis
from ba_tui.analysis.reports.documents import markdown
from ba_tui.analysis.reports.gathering import gathered, stored
from ba_tui.analysis.reports.programs import notebook, script
from ba_tui.analysis.reports.values import Report, ReportFigure, ReportSection
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event
from ba_tui.core.ports.tables import Progress
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.sessions.exports.answers import answers
from ba_tui.sessions.foreign import redacted

DOCUMENTS = (".html", ".md")
PROGRAMS = (".ipynb", ".py")
"""They need a folder of data beside them."""
_RESULT = regex(r"<h3>(R\d+)</h3>")


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

    found = (ReportSection(each.prompt, each.answer, each.at) for each in answers(events, hide))
    return ReportedSession(paintable(hide(title)), tuple(found))


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
        await asyncio.to_thread(made.write_text, await asyncio.to_thread(_text, report, target), "utf-8", "replace")
        return [*found, (made, target)]


def _text(report: Report, target: Path) -> str:
    match target.suffix.lower():
        case ".py":
            return script(report, data_folder(target).name, target.name)
        case ".ipynb":
            return notebook(report, data_folder(target).name)
        case ".html":
            return _page(report)
        case _:
            return markdown(report)


def _page(report: Report) -> str:
    """One page that needs nothing else."""
    from ba_tui.sessions.exports.html import PAGE_END, page_head, prose  # noqa: PLC0415 - loads a Markdown parser

    body = _RESULT.sub(lambda found: f'<h3 id="{found[1].lower()}">{found[1]}</h3>', prose().render(markdown(report)))
    return f"{page_head(escape(one_line(report.title, 200) or 'Report'))}{body}{PAGE_END}"
