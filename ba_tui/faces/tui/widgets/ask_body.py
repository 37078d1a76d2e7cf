"""What a question shows above its answers, as rows and words. Pure; everything of the call is there, nothing hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textual.content import Content

from ba_tui.core.questions import Question
from ba_tui.core.results import Command, Diff, Diffs, Display, Prose, Source, Table, Todos
from ba_tui.faces.tui.inspector.diff import diff_rows
from ba_tui.faces.tui.inspector.json_tree import argument_rows
from ba_tui.faces.tui.inspector.model import Inspected
from ba_tui.faces.tui.inspector.rows import Row, line, text_rows, visible
from ba_tui.faces.tui.inspector.source import command_rows, prose_rows, source_rows
from ba_tui.faces.tui.inspector.todos import todo_rows

MUTED = "$foreground 60%"
Build = Callable[[], Sequence[Row]]


def heading(question: Question) -> str:
    """The question in one line."""
    match question.kind:
        case "permission":
            first = question.text.strip().split("\n")[0]
            return visible(first or f"Allow {question.tool}?")
        case "continue":
            return "Go on?"
        case "choice":
            return "A question for you"


def facts(question: Question, agent: str, *, one_line: bool = False) -> Content:
    """Which tool, who asks, what may happen; and below it, or behind it, why we ask."""
    parts: list[tuple[str, str]] = []
    if question.tool and question.kind != "choice":
        parts.append((visible(question.tool), "bold"))
    if agent and agent != "main":
        parts.append((f"asked by {visible(agent)}", "$text-accent"))
    parts.extend((risk, "bold $text-error" if risk == "destructive" else "$text-warning") for risk in question.risks)
    first = Content(" · ").join([Content.styled(text, style) for text, style in parts])
    reason = visible(" ".join(question.reason.split()))
    if not reason:
        return first
    why = Content.assemble(("Why: ", MUTED), reason)
    return Content(" · " if one_line else "\n").join([first, why]) if parts else why


def remembering(label: str, rule: str) -> Content:
    """The rule in full, before it is stored."""
    return Content.assemble((f"{label}\n", MUTED), (visible(rule), "bold $text-accent"))


def body_builds(question: Question) -> list[Build]:
    """Functions that make the body, a quick version first; each may run in a thread."""
    if question.kind != "permission":
        words = text_rows(question.text.strip(), reveal=True)
        return [lambda: [*words, *argument_rows(question.args)]]
    rest = argument_rows(other_arguments(question))
    display = question.preview
    if display is None:
        return [lambda: rest or [line(("No arguments.", "muted"))]]
    return [lambda make=make: [*make(), *rest] for make in _previews(display)]


def _previews(display: Display) -> list[Build]:
    match display:
        case Diff():
            return [lambda: diff_rows(display, context=1)]
        case Diffs(items=items):
            return [lambda: [row for item in items for row in diff_rows(item, context=1)]]
        case Command(command=command, cwd=cwd):
            where = [line((f"in {visible(cwd)}", "muted"), gutter="  ")] if cwd else []
            return [
                lambda colours=colours: [*command_rows(command, colours=colours), *where] for colours in (False, True)
            ]
        case Source():
            return [lambda: source_rows(display, colours=False, reveal=True), lambda: source_rows(display, reveal=True)]
        case Prose():
            return [lambda: prose_rows(display, colours=False, reveal=True), lambda: prose_rows(display, reveal=True)]
        case Todos():
            return [lambda: todo_rows(display)]
        case Table(columns=columns, rows=rows):
            return [
                lambda: argument_rows({str(n): dict(zip(columns, row, strict=False)) for n, row in enumerate(rows, 1)})
            ]


def other_arguments(question: Question) -> dict[str, Any]:
    """The arguments that the preview does not show already."""
    return {key: value for key, value in question.args.items() if not _in_preview(value, question.preview)}


def _in_preview(value: object, display: Display | None) -> bool:
    if not isinstance(value, str):
        return False
    match display:
        case Command(command=command):
            return value == command
        case Diff(path=path, before=before, after=after):
            return bool(value) and (value == path or value in after or value in (before or ""))
        case Source(path=path, text=text):
            return value in (path, text)
        case Prose(text=text):
            return value == text
        case _:
            return False


def in_full(question: Question, agent: str) -> Inspected:
    """The same for the whole screen: every argument and the preview."""
    if question.kind != "permission":
        return Inspected(heading(question), text=question.text)
    title = f"{question.tool} · {heading(question)}"
    note = facts(question, agent).plain
    if question.preview is None:
        return Inspected(title, {}, Prose(f"{note}\n\n{argument_text(question)}"), state="waiting")
    return Inspected(title, other_arguments(question), question.preview, note, state="waiting")


def argument_text(question: Question) -> str:
    """All arguments as plain lines."""
    return "\n".join(row[0].gutter + row[0].text for row in argument_rows(question.args))
