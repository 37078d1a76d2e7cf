"""What a question shows above its answers, as rows and words. Pure; everything of the call is there, nothing hidden."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast

from textual.content import Content

from ba_tui.core.questions import Question
from ba_tui.core.results import Display, Prose
from ba_tui.core.text.rule_words import split_rules
from ba_tui.faces.tui.displays.renderer import Build
from ba_tui.faces.tui.displays.renderers import renderer_of
from ba_tui.faces.tui.inspector.json_tree import argument_rows
from ba_tui.faces.tui.inspector.model import Inspected
from ba_tui.faces.tui.inspector.rows import GridRow, line, text_rows, visible
from ba_tui.faces.tui.widgets.ask_answers import AskAnswer

MUTED = "$text-muted"
GRAVE = frozenset({"destructive", "outside the workspace", "outside the sandbox", "shares a secret"})
LIGHT = 6_000
"""Characters up to which a body is made on the spot, in a few milliseconds."""


PLAN_ABOVE = "The plan is the answer above."


def heading(question: Question) -> str:
    """The question in one line."""
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
    """``denied in 4 min``, ``denied in 0:42``: minutes as long as seconds say nothing."""
    whole = math.ceil(seconds)
    clock = f"{math.ceil(whole / 60)} min" if whole > 120 else f"{whole // 60}:{whole % 60:02}"
    return f"{OUTCOMES[outcome]} {clock}"


def asker(agent: str) -> str:
    """The name of a sub-agent as people know it; empty for the main one."""
    return "" if agent == "main" else visible(agent.removeprefix("main/"))


def facts(question: Question, agent: str, *, one_line: bool = False) -> Content:
    """Which tool, who asks, what may happen; then what can't be seen by looking, who changed it, and why we ask.

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
    """The rules in full, before they are stored: in words, then as they are written."""
    written = " · ".join(map(visible, split_rules(rule)))
    said = f"{answer.label} {visible(answer.rule)}"
    return Content.assemble((f"{said}\n", MUTED), (written, "bold $text-accent"))


def body_builds(question: Question) -> list[Build]:
    """Functions that make the body, a quick version first; each may run in a thread."""
    if question.kind != "permission":
        # What a question with options shows is part of it, such as files that it is about.
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
    """The preview and what it leaves out; all arguments when it turns out to show nothing."""
    rows = make()
    if any(cell.text.strip() for row in rows for cell in row):
        return [*rows, *argument_rows(other_arguments(question))]
    return argument_rows(question.args) or [line(("No arguments.", "muted"))]


def is_light(question: Question) -> bool:
    """Whether the body is made in no time. Nothing longer is looked at."""
    return _weight([question.text, question.args, *_values(question.preview)], LIGHT) < LIGHT


def _values(display: Display | None) -> Iterable[object]:
    return renderer_of(display).values(display) if display else ()


def _weight(values: Iterable[object], most: int) -> int:
    """Characters and entries in ``values``; stops counting at ``most``."""
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
    """The arguments that the preview does not show already."""
    return {key: value for key, value in question.args.items() if not _in_preview(value, question.preview)}


def _in_preview(value: object, display: Display | None) -> bool:
    return display is not None and renderer_of(display).shows(display, value)


def in_full(question: Question, agent: str) -> Inspected:
    """The same for the whole screen: every argument and the preview."""
    if question.kind != "permission":
        return Inspected(heading(question), {}, question.preview, question.text)
    title = f"{question.tool} · {heading(question)}"
    note = facts(question, agent).plain
    if question.preview is None:
        return Inspected(title, {}, Prose(f"{note}\n\n{argument_text(question)}"), state="waiting")
    return Inspected(title, other_arguments(question), question.preview, note, state="waiting")


def argument_text(question: Question) -> str:
    """All arguments as plain lines."""
    return "\n".join(row[0].gutter + row[0].text for row in argument_rows(question.args))
