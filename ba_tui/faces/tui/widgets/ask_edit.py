"""Editing the arguments of a call, or a plan, before it is allowed. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, TypeAlias, cast

from textual.screen import ModalScreen

from ba_tui.core.errors import UsageError
from ba_tui.core.questions import Question
from ba_tui.core.results import Diff, PlanGraph
from ba_tui.core.teamwork import Plan
from ba_tui.core.values import frozen
from ba_tui.faces.tui.displays.renderer import renderer_of
from ba_tui.faces.tui.inspector.diff import Hunks, merged, said
from ba_tui.faces.tui.inspector.rows import visible


@frozen
class ArgumentDraft:
    """``key`` names the one argument that ``text`` is; None when ``text`` is all of them as JSON."""

    key: str | None
    text: str


@frozen
class Chosen:
    """The numbers of the accepted changes, from 0, of ``total``. ``question`` asks about a call that makes only these
    changes; None when no call can make them."""

    accepted: frozenset[int]
    total: int
    question: Question | None
    words: str = ""
    """The effect of a yes now, where it is known already."""

    @property
    def whole(self) -> bool:
        return len(self.accepted) == self.total

    @property
    def told(self) -> str:
        """Return the effect of a yes now, in words."""
        if self.words:
            return self.words
        if self.question is None and self.accepted:
            return "These can't be made as one call: d to choose again"
        if self.question is None:
            return "No change is accepted: d to choose, or No"
        return f"{len(self.accepted)} of {self.total} accepted: yes makes only these"


def choose(question: Question, of: Hunks, accepted: frozenset[int]) -> Chosen:
    """Return the call with only the accepted changes. Slow for long files."""
    if len(accepted) == of.count or not isinstance(question.preview, Diff):
        return Chosen(accepted, of.count, question)
    diff = question.preview
    wanted = merged(of, accepted)
    args = said(question.args, diff, wanted) if accepted else None
    if args is None:
        return Chosen(accepted, of.count, None)
    return Chosen(accepted, of.count, replace(question, args=args, preview=replace(diff, after=wanted)))


def draft(question: Question) -> ArgumentDraft:
    """Return the command or the new text alone when one argument is what matters, otherwise everything as JSON."""
    key = _that_matters(question)
    if key is not None and paintable_as_is(question.args[key]):
        return ArgumentDraft(key, question.args[key])
    return ArgumentDraft(None, _json(question.args))


def accepted(of: ArgumentDraft, text: str, args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments to run with, None when nothing was changed.

    Raises:
        UsageError: the text is no JSON object; says where.
    """
    if text == of.text:
        return None
    if of.key is not None:
        return {**args, of.key: text}
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"Line {error.lineno}, column {error.colno}: {error.msg}.", "Correct it, or Esc.") from error
    except RecursionError as error:
        raise UsageError("The arguments are nested too deep.", "Remove some levels, or Esc.") from error
    if not isinstance(value, dict):
        raise UsageError("Line 1, column 1: the arguments must be an object, { … }.", "Correct it, or Esc.")
    return cast("dict[str, Any]", value) if value != dict(args) else None


def paintable_as_is(text: str) -> bool:
    """Return whether an editor can show ``text``: it has no hidden, reordering or control characters."""
    return all(visible(line) == line for line in text.replace("\t", " ").split("\n"))


def _that_matters(question: Question) -> str | None:
    args, texts = question.args, {key: value for key, value in question.args.items() if isinstance(value, str)}
    found = renderer_of(question.preview).edited(question.preview, texts) if question.preview else None
    if found is None:
        found = list(texts) if len(args) == 1 else []
    return found[0] if len(found) == 1 else None


def _json(args: Mapping[str, Any]) -> str:
    """Return readable JSON; hidden and control characters are written as ``\\u`` escapes."""
    text = json.dumps(dict(args), ensure_ascii=False, indent=2, default=str)
    if paintable_as_is(text):
        return text
    return "".join(letter if letter == "\n" or paintable_as_is(letter) else json.dumps(letter)[1:-1] for letter in text)


@frozen
class PlanEdit:
    """The edited plan, and texts that are not valid yet: of the plan as a whole under the empty name, of a step under
    its id."""

    plan: Plan
    texts: dict[str, str] = field(default_factory=dict[str, str])


PlanEditorClass: TypeAlias = "Callable[[Plan, PlanEdit], ModalScreen[PlanEdit]]"
"""Makes the editor of a plan from the plan as it was proposed and the edit so far."""


def plan_in(question: Question) -> Plan | None:
    """Return the plan that is asked about; None for a plan in prose, and for every other question."""
    shown = question.preview
    return shown.plan if question.kind == "plan" and isinstance(shown, PlanGraph) else None


def choose_plan(question: Question, plan: Plan) -> Chosen:
    """Return the question about ``plan``, whose JSON a yes sends; the original question when nothing differs."""
    from ba_tui.plotting.plan_edits import differences  # noqa: PLC0415 - only once a plan was edited
    from ba_tui.plotting.plan_exports import as_json  # noqa: PLC0415 - see above

    first = plan_in(question)
    said = differences(first, plan) if first else ""
    if not said or not isinstance(question.preview, PlanGraph):
        return Chosen(frozenset((0,)), 1, question)
    about = replace(question, args=as_json(plan), preview=replace(question.preview, plan=plan))
    return Chosen(frozenset(), 1, about, f"You changed the plan ({said}): yes carries out yours")
