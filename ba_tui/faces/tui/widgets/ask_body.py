"""The body of a question above its answers, as rows and text. Shows everything in the call."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast

from textual.content import Content

from ba_tui.core.ports.permissions import split_rules
from ba_tui.core.questions import Question
from ba_tui.core.results import Display, Prose
from ba_tui.faces.tui.displays.renderer import Build, renderer_of
from ba_tui.faces.tui.inspector.json_values import argument_rows
from ba_tui.faces.tui.inspector.model import InspectorValue
from ba_tui.faces.tui.inspector.row_view import RowView
from ba_tui.faces.tui.inspector.rows import GridRow, line, text_rows, visible
from ba_tui.faces.tui.widgets.ask_answers import AskAnswer

MUTED = "$text-muted"
GRAVE = frozenset({"destructive", "outside the workspace", "outside the sandbox", "shares a secret"})
LIGHT = 6_000
"""Characters up to which a body is made on the spot, in a few milliseconds."""


PLAN_ABOVE = "The plan is the answer above."


def heading(question: Question) -> str:
    """Return the question in one line."""
    match question.kind:
        case "permission":
            first = question.text.strip().split("\n")[0]
            return visible(first or f"Allow {question.tool}?")
        case "continue":
            return "Continue?"
        case "plan":
            return "Carry out this plan?"
        case "choice":
            return "A question for you"


OUTCOMES = {"deny": "denied in", "allow": "allowed in", "escalate": "reminded in"}


def time_left(seconds: float, outcome: Literal["deny", "allow", "escalate"]) -> str:
    """Return ``denied in 4 min``, ``denied in 0:42``: minutes as long as seconds say nothing."""
    whole = math.ceil(seconds)
    clock = f"{math.ceil(whole / 60)} min" if whole > 120 else f"{whole // 60}:{whole % 60:02}"
    return f"{OUTCOMES[outcome]} {clock}"


def asker(agent: str) -> str:
    """Return the name of a sub-agent as people know it; empty for the main one."""
    return "" if agent == "main" else visible(agent.removeprefix("main/"))


def facts(question: Question, agent: str, *, one_line: bool = False) -> Content:
    """Return which tool, who asks, what may happen; then what can't be seen by looking, who changed it, and why we ask.

    On one line what is dangerous comes first, because the end of the line may be cut off.
    """
    parts: list[tuple[str, str]] = []
    if question.tool and question.kind not in {"choice", "plan"}:
        parts.append((visible(question.tool), "bold"))
    if name := asker(agent):
        parts.append((f"asked by {name}", "$text-accent"))
    parts.extend((risk, "bold $text-error" if risk in GRAVE else "$text-warning") for risk in question.risks)
    first = Content(" · ").join([Content.styled(text, style) for text, style in parts])
    alarms = [Content.styled(f"! {visible(words)}", "bold $text-error") for words in question.warnings]
    if one_line and alarms:
        count = f"{len(alarms)} warning{'s' if len(alarms) > 1 else ''}"
        alarms = [Content.styled(f"! {count}, d shows {'them' if len(alarms) > 1 else 'it'}", "bold $text-error")]
    lines = [*alarms, first] if one_line else [first, *alarms]
    if question.rewritten:
        changed = f"The arguments were changed by {visible(' '.join(question.rewritten.split()))}."
        lines.append(Content.styled(changed, "$text-warning"))
    if reason := visible(" ".join(question.reason.split())):
        lines.append(Content.assemble(("Why: ", MUTED), reason))
    return Content(" · " if one_line else "\n").join([line for line in lines if line])


def remembering(answer: AskAnswer, rule: str) -> Content:
    """Return the rules in full, before they are stored: in words, then as they are written."""
    written = " · ".join(map(visible, split_rules(rule)))
    said = f"{answer.label} {visible(answer.rule)}"
    return Content.assemble((f"{said}\n", MUTED), (written, "bold $text-accent"))


def body_builds(question: Question) -> list[Build]:
    """Return functions that make the body, a quick version first; each may run in a thread."""
    if question.kind != "permission":
        # The preview of a question with options is part of the question, such as the files that it concerns.
        if question.kind == "plan":
            above = list[Build]([lambda: [line((PLAN_ABOVE, "muted"))]])
            return list(renderer_of(question.preview).question(question.preview)) if question.preview else above
        shown = renderer_of(question.preview).question(question.preview)[0] if question.preview else list[GridRow]
        return [lambda: [*text_rows(question.text.strip(), reveal=True), *argument_rows(question.args), *shown()]]
    if question.preview is None:
        return [lambda: argument_rows(question.args) or [line(("No arguments.", "muted"))]]
    return [
        lambda make=make: _body(question, make) for make in renderer_of(question.preview).question(question.preview)
    ]


def _body(question: Question, make: Build) -> Sequence[GridRow]:
    """Return the preview and the arguments that it does not show; all arguments if it is empty."""
    rows = make()
    if any(cell.text.strip() for row in rows for cell in row):
        return [*rows, *argument_rows(other_arguments(question))]
    return argument_rows(question.args) or [line(("No arguments.", "muted"))]


def is_light(question: Question) -> bool:
    """Return whether the body is short enough to be made on the UI loop."""
    return _weight([question.text, question.args, *_values(question.preview)], LIGHT) < LIGHT


def _values(display: Display | None) -> Iterable[object]:
    return renderer_of(display).values(display) if display else ()


def _weight(values: Iterable[object], most: int) -> int:
    """Return the number of characters and entries in ``values``, counted up to ``most``."""
    found = 0
    left = deque(values)
    while left and found < most:
        value = left.popleft()
        found += len(value) if isinstance(value, str) else 8
        if isinstance(value, dict | list):
            inside = cast("dict[str, object] | list[object]", value)
            if len(inside) > most:
                return most
            left.extend(inside.values() if isinstance(inside, dict) else inside)
    return found


def other_arguments(question: Question) -> dict[str, Any]:
    """Return the arguments that the preview does not show already."""
    return {key: value for key, value in question.args.items() if not _in_preview(value, question.preview)}


def _in_preview(value: object, display: Display | None) -> bool:
    return display is not None and renderer_of(display).shows(display, value)


def in_full(question: Question, agent: str) -> InspectorValue:
    """Return the same for the whole screen: every argument and the preview."""
    if question.kind != "permission":
        return InspectorValue(heading(question), {}, question.preview, question.text)
    title = f"{question.tool} · {heading(question)}"
    note = facts(question, agent).plain
    if question.preview is None:
        return InspectorValue(title, {}, Prose(f"{note}\n\n{argument_text(question)}"), state="waiting")
    return InspectorValue(title, other_arguments(question), question.preview, note, state="waiting")


def argument_text(question: Question) -> str:
    """Return all arguments as plain lines."""
    return "\n".join(row[0].gutter + row[0].text for row in argument_rows(question.args))


# A short body is mounted immediately; a long one is announced and filled later.


class QuestionPreview(RowView, can_focus=False):
    """Never blank: threads may be late, and a user must not judge an empty box."""

    def ask(self, question: Question) -> None:
        """Show the body of ``question``."""
        first, *better = body_builds(question)
        if is_light(question):
            self.put(first())
            if better:
                self.show(first, *better)
        else:
            self.put([line(("Preparing the preview …", "muted"))])
            self.show(first, *better)
