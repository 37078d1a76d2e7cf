"""A session as questions and final answers alone. Pure: events in, values out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ba_tui.core.displays.charts import Chart
from ba_tui.core.events import Event
from ba_tui.core.text.figures import FigureReport
from ba_tui.core.text.footnotes import AnswerNotes, Footnotes
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.sessions.exports.document import AnswerPart, DocumentOpening, PromptPart, ToolCallPart, document_parts
from ba_tui.sessions.exports.outline import Survey

_NONE = AnswerNotes("")
_UNCHECKED = FigureReport()


@frozen
class Answered:
    """A prompt, what was added to it while it was worked on, the charts that were drawn, and the last answer with the
    verdicts on its figures. ``at``: seconds since the epoch."""

    at: float
    prompt: str = ""
    answer: AnswerNotes = _NONE
    figures: FigureReport = _UNCHECKED
    charts: tuple[Chart, ...] = ()


def answers(events: Iterable[Event], hide: Callable[[str], str]) -> list[Answered]:
    """Return the turns that stand. ``hide`` takes secrets out; ``events`` are gone through twice."""

    def safe(text: str) -> str:
        return paintable(hide(text))

    found: list[Answered] = []
    for part in document_parts(events, Survey(events)):
        match part:
            case DocumentOpening(at=at):
                found.append(Answered(at))
            case PromptPart(message=message) if found:
                prompt = "\n\n".join(filter(None, (found[-1].prompt, safe(message.said).strip())))
                found[-1] = replace(found[-1], prompt=prompt, answer=_NONE, figures=_UNCHECKED)
            case AnswerPart(message=message, figures=figures) if found:
                found[-1] = replace(found[-1], answer=AnswerNotes(message.text), figures=figures or _UNCHECKED)
            case ToolCallPart(end=end, agent="") if found and not end.result.is_error:
                if isinstance(chart := end.result.display, Chart):
                    title = replace(chart.request, title=safe(chart.request.title))
                    found[-1] = replace(found[-1], charts=(*found[-1].charts, replace(chart, request=title)))
            case _:
                pass
    footnotes = Footnotes(safe)
    return [replace(each, answer=footnotes.of(each.answer.text, each.figures)) for each in found]
