"""Calls behind labels, as in the prompts of ReAct: ``Action:``, ``Action Input:``, and what else stands on such lines.

Where in a reply labels count is not known here.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.text_calls import python_calls
from ba_tui.providers.text_calls.json_dialects import Decoder
from ba_tui.providers.text_calls.known import Known, Written, object_like
from ba_tui.providers.text_calls.values import FINAL, said

Kind: TypeAlias = Literal["thought", "action", "given", "final", "seen"]
_GIVEN = r"(?:(?:action|tool|function)[ _]?)?(?:input|args|arguments|parameters|params)"
LABEL = regex(
    r"(?im)^[ \t]*+(?:[>*#-]++[ \t]*+)?+(?:`|__)?+(?=[a-z])"
    rf"(?:(?P<thought>thoughts?)|(?P<given>{_GIVEN})|(?P<action>action|tool(?:[ _]name)?|function)"
    r"|(?P<final>final[ _]answer)|(?P<seen>observations?|(?:tool|action)[ _](?:output|result|response)))"
    r"(?:[ \t]?\d{1,3})?(?:\*\*|__|`)?[ \t]*[:：](?:\*\*|__)?[ \t]*+"
)
INLINE = regex(r"(?i)\baction[ \t]*:[ \t]*(?P<name>[^\n:]{1,120}?)[ \t]*+(?=\baction[ _]input[ \t]*:)")
_INLINE_GIVEN = regex(rf"(?i)[ \t]+\b{_GIVEN}[ \t]*:[ \t]*")
_INLINE_SEEN = regex(r"(?i)\s(?:observation|final answer)[ \t]*:")
_NAME = regex(r"(?P<name>[A-Za-z_][\w./:-]*)(?:[ \t]*\n?[ \t]*(?=[{`])|\Z)")
_BRACKETED = regex(r"(?s)(?P<name>[A-Za-z_]\w*)\[(?P<text>.*)\]\Z")
_FENCE = regex(r"(?s)```[\w+-]*[ \t]*\n?")
_FINAL = regex(r"(?i)\bfinal[ _]answer\b")
_LONGEST_LINE = 200
SHOWN = 2_000
"""Characters that are kept of what can't be read."""


@frozen
class Group:
    """What labelled lines say: calls, or the ``final`` answer. ``end``: where the last of them ends."""

    calls: tuple[Written, ...]
    end: int
    final: str | None = None


def kind_of(label: re.Match[str]) -> Kind:
    return next(kind for kind in ("thought", "given", "action", "final", "seen") if label[kind] is not None)


class Labelled:
    """Reads labelled lines of ``text``, at most up to ``stop``."""

    def __init__(self, text: str, stop: int, known: Known, decoder: Decoder) -> None:
        self._text = text
        self._stop = stop
        self._known = known
        self._decoder = decoder

    def group(self, label: re.Match[str], most: int) -> Group:
        """The calls from ``label``, an action, on: those that follow each other without a thought in between."""
        calls: list[Written] = []
        end, next_label = label.end(), label
        while next_label and kind_of(next_label) == "action" and len(calls) < most:
            found = self._one(next_label)
            if found.final is not None and not calls:
                return found
            calls += found.calls
            end = found.end
            next_label = LABEL.search(self._text, end, self._stop)
            if next_label and self._text[end : next_label.start()].strip("` \t\r\n"):
                break
        return Group(tuple(calls), end)

    def inline(self, found: re.Match[str]) -> Group:
        """The call whose name and input stand in one line with other words."""
        label = _INLINE_GIVEN.match(self._text, found.end() - 1) or found
        following = LABEL.search(self._text, label.end(), self._stop)
        upto = following.start() if following else self._stop
        return self._with_input(found["name"].strip(), label.end(), found.start(), upto)

    def _one(self, label: re.Match[str]) -> Group:
        at = label.end()
        following = LABEL.search(self._text, at, self._stop)
        upto = following.start() if following else self._stop
        while at < upto and self._text[at].isspace():
            at += 1
        if fence := _FENCE.match(self._text, at, upto):
            at = fence.end()
        if self._text[at : at + 1] in {"{", "["} and not python_calls.starts(self._text, at):
            return self._json(at, upto)
        if python_calls.starts(self._text, at):
            return self._python(at, upto)
        return self._named(at, upto, following)

    def _json(self, at: int, upto: int) -> Group:
        try:
            value, end = self._decoder.value(self._text, at, upto)
        except ValueError as error:
            return self._wrong("", f"The action can't be read: {error}.", at, upto)
        found = said(value, self._known, self._text[at:end], inline=True)
        if found is None:
            return self._wrong("", "The action names no tool.", at, end)
        return Group(found.calls, end, found.final)

    def _python(self, at: int, upto: int) -> Group:
        try:
            found = python_calls.python_calls(self._text, at, upto, self._known, self._decoder)
        except ValueError as error:
            return self._wrong("", f"The action can't be read: {error}.", at, upto)
        return Group(found.calls, found.end)

    def _named(self, at: int, upto: int, following: re.Match[str] | None) -> Group:
        """The name of a tool, with its input on the same line, on the next, behind a label, or none."""
        content = self._text[at:upto].strip().rstrip("`").rstrip()
        if inline := _INLINE_GIVEN.search(content[:_LONGEST_LINE]):
            return self._with_input(content[: inline.start()], at + inline.end(), at, upto)
        if following and kind_of(following) == "given":
            after = LABEL.search(self._text, following.end(), self._stop)
            return self._with_input(content, following.end(), at, after.start() if after else self._stop)
        if bracketed := _BRACKETED.match(content):
            if bracketed["name"].lower() in FINAL:
                return Group((), upto, bracketed["text"])
            return Group((self._known.read(bracketed["name"], bracketed["text"], content),), upto)
        name = _NAME.match(content)
        if name and name.end() < len(content):
            return self._with_input(name["name"], at + name.end(), at, upto)
        return Group((self._known.read(content, None, content),), upto)

    def _with_input(self, name: str, at: int, start: int, upto: int) -> Group:
        text, stop = self._text, self._stop
        while at < upto and text[at].isspace():
            at += 1
        if fence := _FENCE.match(text, at, upto):
            at = fence.end()
            closing = text.find("```", at, stop)
            upto = closing if closing >= 0 else upto
        if _FINAL.search(name):
            return self._wrong("", "An action and a final answer stand in one line.", start, upto)
        if text[at : at + 1] == "{":
            try:
                value, end = self._decoder.value(text, at, upto)
            except ValueError as error:
                if not self._known.parameter(name) or object_like(text[at:upto]):
                    return self._wrong(name, f"The action input can't be read: {error}.", start, upto)
            else:
                if isinstance(value, dict):
                    return Group((self._known.read(name, cast("dict[str, Any]", value), text[start:end]),), end)
        given = text[at:upto]
        if seen := _INLINE_SEEN.search(given):
            given = given[: seen.start()]
        return Group((self._known.read(name, _bare(given), text[start:upto]),), upto)

    def _wrong(self, name: str, problem: str, start: int, end: int) -> Group:
        return Group(
            (Written(self._known.find(name) or name, {}, problem, self._text[start : min(end, start + SHOWN)]),), end
        )


def on_one_line(text: str, known: Known, decoder: Decoder) -> Group | None:
    """The call of a reply that has its labels in the middle of a line."""
    found = INLINE.search(text)
    if found is None:
        return None
    group = Labelled(text, len(text), known, decoder).inline(found)
    return group if all(not call.problem for call in group.calls) else None


def _bare(text: str) -> str:
    """A text without white space, closing fence and quotes around it."""
    text = text.strip().removesuffix("```").rstrip()
    inner = text[1:].removesuffix('"')
    return inner if text.startswith('"') and '"' not in inner else text
