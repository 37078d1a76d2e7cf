"""Editing the arguments of a call before it is allowed: what is offered for editing and what comes back. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.questions import Question
from ba_tui.core.results import Diff
from ba_tui.core.values import frozen
from ba_tui.faces.tui.displays.renderers import renderer_of
from ba_tui.faces.tui.inspector.hunks import Hunks, merged, said
from ba_tui.faces.tui.inspector.rows import visible


@frozen
class ArgumentDraft:
    """``key`` names the one argument that ``text`` is; None when ``text`` is all of them as JSON."""

    key: str | None
    text: str


@frozen
class Chosen:
    """The changes that are accepted, from 0, of ``total``. ``question`` is about the call that makes only them; None
    when there is no such call."""

    accepted: frozenset[int]
    total: int
    question: Question | None
    words: str = ""
    """What a yes would do now, where that is said already."""

    @property
    def whole(self) -> bool:
        return len(self.accepted) == self.total

    @property
    def told(self) -> str:
        """What a yes would do now."""
        if self.words:
            return self.words
        if self.question is None and self.accepted:
            return "These can't be made as one call: d to choose again"
        if self.question is None:
            return "No change is accepted: d to choose, or No"
        return f"{len(self.accepted)} of {self.total} accepted: yes makes only these"


def choose(question: Question, of: Hunks, accepted: frozenset[int]) -> Chosen:
    """The call with only the accepted changes. Slow for long files."""
    if len(accepted) == of.count or not isinstance(question.preview, Diff):
        return Chosen(accepted, of.count, question)
    diff = question.preview
    wanted = merged(of, accepted)
    args = said(question.args, diff, wanted) if accepted else None
    if args is None:
        return Chosen(accepted, of.count, None)
    return Chosen(accepted, of.count, replace(question, args=args, preview=replace(diff, after=wanted)))


def draft(question: Question) -> ArgumentDraft:
    """The command or the new text alone when one argument is what matters, otherwise everything as JSON."""
    key = _that_matters(question)
    if key is not None and paintable_as_is(question.args[key]):
        return ArgumentDraft(key, question.args[key])
    return ArgumentDraft(None, _json(question.args))


def accepted(of: ArgumentDraft, text: str, args: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments to run with, None when nothing was changed.

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
    """Whether ``text`` can stand in an editor: nothing in it hides, reorders or steers the terminal."""
    return all(visible(line) == line for line in text.replace("\t", " ").split("\n"))


def _that_matters(question: Question) -> str | None:
    args, texts = question.args, {key: value for key, value in question.args.items() if isinstance(value, str)}
    edited = renderer_of(question.preview).edited if question.preview else None
    alone = list(texts) if len(args) == 1 else []
    found = edited(question.preview, texts) if edited else alone
    return found[0] if len(found) == 1 else None


def _json(args: Mapping[str, Any]) -> str:
    """Readable JSON; characters that could hide or steer stand as ``\\u`` escapes."""
    text = json.dumps(dict(args), ensure_ascii=False, indent=2, default=str)
    if paintable_as_is(text):
        return text
    return "".join(letter if letter == "\n" or paintable_as_is(letter) else json.dumps(letter)[1:-1] for letter in text)
