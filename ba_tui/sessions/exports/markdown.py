"""A session as Markdown: prompts as quotes, answers as they are, tool calls with their output or their diff.

Pure: events in, pieces of text out. What its parts are stands in document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from ba_tui.core.events import Event
from ba_tui.core.messages import Message, Text
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.results import Diff
from ba_tui.core.text.figures import FigureReport
from ba_tui.core.text.footnotes import Footnotes, noted
from ba_tui.core.text.untrusted import paintable
from ba_tui.sessions.exports.document import (
    AgentPart,
    AnswerPart,
    DocumentOpening,
    DocumentPart,
    PlanPart,
    PromptPart,
    ToolCallPart,
    changed_lines,
    document_parts,
    session_summary,
)
from ba_tui.sessions.exports.outline import Survey, time_of
from ba_tui.sessions.exports.plans import plan_lines, plan_title
from ba_tui.sessions.foreign import one_line


class Markdown:
    """``hide`` takes secrets out of whatever was said."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        self._hide = hide
        self._footnotes = Footnotes(self._safe)

    def write(self, info: SessionInfo, events: Iterable[Event]) -> Iterator[str]:
        whole = Survey(events)
        id, folder, *rest = session_summary(info, whole)
        about = " · ".join([f"`{id}`", f"`{self._safe(folder)}`", *rest])
        yield f"# {one_line(self._hide(info.title)) or 'Untitled'}\n\n{about}\n"
        for part in document_parts(events, whole):
            yield "\n" + "\n".join(self._part(part)).rstrip() + "\n"

    def _part(self, part: DocumentPart) -> list[str]:
        match part:
            case DocumentOpening(at=at):
                return [f"## {time_of(at)}"]
            case PromptPart(message=message):
                return self._quote(message)
            case AnswerPart(message=message, figures=FigureReport() as figures):
                return [*noted(self._footnotes.of(message.text, figures))]
            case AnswerPart(message=message):
                return [self._safe(message.text).strip()]
            case ToolCallPart():
                return self._call(part)
            case PlanPart(plan=plan):
                return [f"**{plan_title(plan, self._hide)}**", "", *_fenced(plan_lines(plan, self._hide), "")]
            case AgentPart():
                return self._agent(part)
            case _:
                return [f"*{one_line(self._safe(part.text))}*"]

    def _agent(self, agent: AgentPart) -> list[str]:
        """A section that is folded where Markdown is shown with HTML."""
        lines = ["<details>", f"<summary>{escape(one_line(self._safe(agent.head)))}</summary>"]
        for part in agent.parts:
            lines += ["", *self._part(part)]
        return [*lines, "", "</details>"]

    def _quote(self, message: Message) -> list[str]:
        others = [f"[{block.type}]" for block in message.blocks if not isinstance(block, Text)]
        text = self._safe(message.said).strip()
        return [f"> {line}".rstrip() for line in [*text.split("\n"), *others]]

    def _call(self, call: ToolCallPart) -> list[str]:
        start = call.start
        name = one_line(start.call.name) if start else "tool"
        target = f" {_code(one_line(self._safe(start.target)))}" if start and start.target else ""
        agent = f" ({one_line(call.agent)})" if call.agent else ""
        line = f"- **{name}**{agent}{target}{': failed' if call.end.result.failed else ''}"
        if outcome := self._safe(call.outcome):
            line += f": {one_line(outcome)}"
        if output := call.output(self._hide).strip("\n"):
            return [line, "", *_fenced(output.split("\n"), "")]
        if not call.changes:
            return [line]
        return [line, "", *_fenced([row for change in call.changes for row in self._diff(change)], "diff")]

    def _diff(self, change: Diff) -> list[str]:
        return self._safe("\n".join(changed_lines(change))).split("\n")

    def _safe(self, text: str) -> str:
        return paintable(self._hide(text))


def _fenced(lines: Sequence[str], language: str) -> list[str]:
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return [fence + language, *lines, fence]


def _code(text: str) -> str:
    """Inline code that may hold backticks itself."""
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"
