"""Exported answers say where their figures come from, in notes below them."""

from __future__ import annotations

from pathlib import Path

from ba_tui.core.events import Event, FiguresChecked, MessageDone, TurnStarted
from ba_tui.core.messages import Message, Text, user
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.text.figures import FigureReport, FigureSource, FigureVerdict
from ba_tui.sessions.exports.transcripts import exporter

INFO = SessionInfo("20261121-120000-ab12", "Count", Path("/srv/project"), 0.0, 60.0, 1, 1.0, "test/model")


def exported(format: str, text: str, *verdicts: FigureVerdict) -> str:
    message = Message("assistant", (Text(text),), origin="assistant")
    events: list[Event] = [TurnStarted(user("?")), MessageDone(message)]
    events += [FiguresChecked(message.id, FigureReport(verdicts)), MessageDone(message)]
    return "".join(exporter(format)(INFO, events))


SOURCED = FigureVerdict("1,300", 7, 12, "sourced", sources=(FigureSource("R1", 1300.0, "c", column="<b>*units*"),))
UNSOURCED = FigureVerdict("7.5", 17, 20, "unsourced")
TEXT = "We had 1,300 and 7.5 %."


def test_markdown_has_a_footnote_for_each_figure() -> None:
    page = exported("md", TEXT, SOURCED, UNSOURCED)
    assert "We had 1,300[^1] and 7.5[^2] %." in page
    assert "[^1]: `1,300` sourced: R1 · \\<b\\>\\*units\\*" in page
    assert "[^2]: `7.5` **unsourced**: nothing in this session supports it" in page
    assert page.count("We had 1,300 and") == 1


def test_html_links_figures_and_notes_and_escapes_what_a_source_says() -> None:
    page = exported("html", f"| a |\n|---|\n| {TEXT} |", *(_moved(each, 14) for each in (SOURCED, UNSOURCED)))
    assert '7.5<sup class="unsourced"><a id="m2" href="#f2">2</a></sup> %' in page
    assert '<li id="f1" value="1" class="sourced">' in page
    assert "&lt;b&gt;*units*" in page
    assert "\ue000" not in page


def test_a_text_that_lost_a_secret_keeps_its_notes_and_has_no_marks() -> None:
    secret = "sk-ant-api03-" + "aB3dE5gH7j" * 9
    page = exported("md", f"{TEXT} The key is {secret}.", SOURCED, UNSOURCED)
    assert secret not in page
    assert "We had 1,300 and 7.5 %." in page
    assert "[^1]: `1,300` sourced" in page


def _moved(verdict: FigureVerdict, by: int) -> FigureVerdict:
    return FigureVerdict(verdict.text, verdict.start + by, verdict.end + by, verdict.label, sources=verdict.sources)
