"""A session as questions and final answers alone. Pure: events in, values out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ba_tui.core.events import Event
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.sessions.exports.document import AnswerPart, DocumentOpening, PromptPart, document_parts
from ba_tui.sessions.exports.outline import Survey


@frozen
class Answered:
    """A prompt, what was added to it while it was worked on, and the last answer. ``at``: seconds since the epoch."""

    at: float
    prompt: str = ""
    answer: str = ""


def answers(events: Iterable[Event], hide: Callable[[str], str]) -> list[Answered]:
    """Return the turns that stand. ``hide`` takes secrets out; ``events`` are gone through twice."""

    def safe(text: str) -> str:
        return paintable(hide(text)).strip()

    found: list[Answered] = []
    for part in document_parts(events, Survey(events)):
        match part:
            case DocumentOpening(at=at):
                found.append(Answered(at))
            case PromptPart(message=message) if found:
                prompt = "\n\n".join(filter(None, (found[-1].prompt, safe(message.said))))
                found[-1] = Answered(found[-1].at, prompt)
            case AnswerPart(message=message) if found:
                found[-1] = Answered(found[-1].at, found[-1].prompt, safe(message.text))
            case _:
                pass
    return found
