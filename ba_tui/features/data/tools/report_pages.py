"""A report as one HTML page that needs nothing else: answers with their footnotes, charts, and results to jump to."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape

from markdown_it import MarkdownIt

from ba_tui.core.displays.charts import Chart
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.features.data.analysis.reports.documents import appendix, chart_lines, heading, origin, prompt_lines
from ba_tui.features.data.analysis.reports.values import Report
from ba_tui.plotting.canvas import safe
from ba_tui.sessions.exports.html import PAGE_END, answer_html, page_head, prose

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
    """As a picture, an SVG runs no script and loads nothing, and the names within it stay its own."""
    return f'<p><img alt="{escape(safe(chart.title))}" src="data:image/svg+xml;base64,{b64encode(svg).decode()}"></p>\n'
