"""A session as one self-contained HTML page without scripts, fonts or external pictures; dark or light.

Pure: events in, pieces of text out. All text is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from html import escape
from typing import Any

from markdown_it import MarkdownIt

from ba_tui.core.events import Event
from ba_tui.core.messages import Block, Document, Image, Message, Text
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.text.figures import MARK, AnswerNotes, FigureReport, Footnotes
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.sessions.exports.document import (
    AgentPart,
    AnswerPart,
    DocumentOpening,
    DocumentPart,
    PlanPart,
    PromptPart,
    Survey,
    ToolCallPart,
    changed_lines,
    document_parts,
    plan_lines,
    plan_title,
    session_summary,
    time_of,
)
from ba_tui.sessions.foreign import one_line

_PICTURES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_BASE64 = regex(r"[A-Za-z0-9+/\s]+={0,2}\s*")
_SITE = regex(r"https?://", re.IGNORECASE)
_RESULT = regex(r"#r\d+")
"""A link to a result in a report."""
_TO_RESULT = '<a href="#{1}">{0}</a>'
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1c1f23; --soft: #5b636d; --paper: #ffffff; --card: #f3f4f6; --line: #d5d9de;
  --link: #0b5cad; --plus: #116329; --minus: #a40e26; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e6ea; --soft: #9aa3ad; --paper: #15181c; --card: #1f2329;
  --line: #363c44; --link: #7db7f5; --plus: #7ee2a0; --minus: #ff9d9d; } }
body { margin: 2rem auto; max-width: 52rem; padding: 0 1rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; } h2 { font-size: .9rem; font-weight: 500; color: var(--soft); margin: 2.5rem 0 .5rem;
  border-top: 1px solid var(--line); padding-top: 1rem; }
.facts, .remark, .agent { color: var(--soft); font-size: .9rem; } .remark { font-style: italic; }
.said { background: var(--card); border-left: 4px solid var(--link); padding: .6rem 1rem; margin: 1rem 0;
  white-space: pre-wrap; } .said img { display: block; }
a { color: var(--link); } img { max-width: 100%; }
pre { background: var(--card); padding: .7rem 1rem; overflow-x: auto; font-size: .85rem; line-height: 1.4; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
table { border-collapse: collapse; display: block; overflow-x: auto; } th, td { border: 1px solid var(--line);
  padding: .25rem .6rem; text-align: left; }
details { margin: .4rem 0; } summary { cursor: pointer; } .plus { color: var(--plus); } .minus { color: var(--minus); }
.sub { border-left: 3px solid var(--soft); padding-left: .8rem; }
.failed, .unsourced, .unsourced a, .misplaced, .misplaced a { color: var(--minus); }
.figures { color: var(--soft); font-size: .85rem; } .figures li { margin: .1rem 0; }
""".strip()


PAGE_END = "</body>\n</html>\n"


def page_head(title: str) -> str:
    """Return the beginning of a page, up to its body. ``title`` must be escaped."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n"
    )


class HtmlPage:
    """Renders a session as HTML. ``hide`` removes secrets from text."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        self._hide = hide
        self._footnotes = Footnotes(self._plain)
        self._prose = prose()

    def write(self, info: SessionInfo, events: Iterable[Event]) -> Iterator[str]:
        whole = Survey(events)
        title = self._safe(one_line(info.title) or "Untitled")
        about = " · ".join(map(self._safe, session_summary(info, whole)))
        yield page_head(title)
        yield f'<h1>{title}</h1>\n<p class="facts">{about}</p>\n'
        for part in document_parts(events, whole):
            yield self._part(part) + "\n"
        yield PAGE_END

    def _part(self, part: DocumentPart) -> str:
        match part:
            case DocumentOpening(at=at):
                return f"<h2>{self._safe(time_of(at)) or 'A turn'}</h2>"
            case PromptPart(message=message):
                return self._said(message)
            case AnswerPart(message=message, figures=FigureReport() as figures):
                return answer_html(self._prose, self._footnotes.of(message.text, figures))
            case AnswerPart(message=message):
                return answer_html(self._prose, AnswerNotes(self._plain(message.text)))
            case ToolCallPart():
                return self._call(part)
            case PlanPart(plan=plan):
                rows = "\n".join(map(escape, plan_lines(plan, self._hide)))
                title = escape(plan_title(plan, self._hide))
                return f"<details open><summary><b>{title}</b></summary>\n<pre>{rows}</pre></details>"
            case AgentPart():
                inside = "\n".join(map(self._part, part.parts))
                head = f"<b>Agent</b> {self._safe(part.head)}"
                return f'<details class="sub"><summary>{head}</summary>\n{inside}\n</details>'
            case _:
                return f'<p class="remark">{self._safe(one_line(part.text, 2_000))}</p>'

    def _said(self, message: Message) -> str:
        words = self._safe(message.said.strip())
        others = "".join(self._block(block) for block in message.blocks if not isinstance(block, Text))
        return f'<div class="said">{words}{others}</div>'

    def _block(self, block: Block) -> str:
        match block:
            case Image(media_type=kind, data=data) if kind in _PICTURES and _BASE64.fullmatch(data):
                return f'<img alt="a picture" src="data:{kind};base64,{"".join(data.split())}">'
            case Image(url=str(url)) if _SITE.match(url):
                return f'<a href="{self._safe(url)}" rel="noreferrer noopener">a picture elsewhere</a>'
            case Document(title=title):
                return f'<p class="remark">[document {self._safe(one_line(title))}]</p>'
            case _:
                return f'<p class="remark">[{self._safe(block.type)}]</p>'

    def _call(self, call: ToolCallPart) -> str:
        start, result = call.start, call.end.result
        name = self._safe(one_line(start.call.name)) if start else "tool"
        target = f" <code>{self._safe(one_line(start.target))}</code>" if start and start.target else ""
        agent = f' <span class="agent">{self._safe(one_line(call.agent))}</span>' if call.agent else ""
        outcome = self._safe(one_line(call.outcome))
        state = ' <span class="failed">failed</span>' if result.failed else ""
        head = f"<b>{name}</b>{agent}{target}{state}{': ' + outcome if outcome else ''}"
        pictures = "".join(map(self._block, result.attachments))
        return f"<details><summary>{head}</summary>\n{self._body(call)}{pictures}</details>"

    def _body(self, call: ToolCallPart) -> str:
        if call.changes:
            return "".join(
                self._lines(self._plain("\n".join(changed_lines(change))).split("\n")) for change in call.changes
            )
        output = call.output(self._hide)
        return f"<pre>{escape(output)}</pre>" if output else ""

    def _lines(self, rows: Sequence[str]) -> str:
        kinds = {"+": "plus", "-": "minus"}
        marked = (
            f'<span class="{kinds[row[0]]}">{escape(row)}</span>' if row[:1] in kinds else escape(row) for row in rows
        )
        return "<pre>" + "\n".join(marked) + "</pre>\n"

    def _plain(self, text: str) -> str:
        return paintable(self._hide(text))

    def _safe(self, text: str) -> str:
        return escape(self._plain(text))


def answer_html(prose: MarkdownIt, found: AnswerNotes, known: Collection[str] = ()) -> str:
    """Return an answer with a footnote for each figure; ``known``: results, such as R1, that are on the page."""
    if not found.notes:
        return f'<div class="answer">\n{prose.render(found.text)}</div>'
    kinds = {str(note.number): note.label for note in found.notes}

    def mark(match: re.Match[str]) -> str:
        number = match[1]
        return f'<sup class="{kinds.get(number, "")}"><a id="m{number}" href="#f{number}">{number}</a></sup>'

    notes = "".join(
        f'<li id="f{note.number}" value="{note.number}" class="{note.label}"><a href="#m{note.number}">'
        f"{escape(note.figure)}</a> {note.label}: "
        f"{note.linked(escape(note.text), _TO_RESULT, known)}</li>\n"
        for note in found.notes
    )
    answer = MARK.sub(mark, prose.render(found.text))
    about = f'<p class="remark">Figures: {escape(found.summary)}</p>'
    return f'<div class="answer">\n{answer}<div class="figures">{about}<ol>\n{notes}</ol></div></div>'


def prose() -> MarkdownIt:
    """Return a Markdown renderer without raw HTML. Pictures become links, since the page loads nothing."""
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])

    def picture(renderer: Any, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
        address = str(tokens[index].attrGet("src") or "")
        words = escape(tokens[index].content or "picture")
        if not _SITE.match(address):
            return words
        return f'<a href="{escape(address)}" rel="noreferrer noopener">{words}</a>'

    def link(renderer: Any, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
        address = str(tokens[index].attrGet("href") or "")
        if _RESULT.fullmatch(address):
            return f'<a href="{address}">'
        if not _SITE.match(address):
            return "<a>"
        return f'<a href="{escape(address)}" rel="noreferrer noopener">'

    made.add_render_rule("image", picture)
    made.add_render_rule("link_open", link)
    return made
