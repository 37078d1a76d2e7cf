"""Parsers of calls after labels (``Action:``, ``Action Input:``), as in ReAct's prompts, and of calls in Python's
syntax."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.text_calls.json_dialects import LONGEST, JsonDecoder, UnfinishedValue
from ba_tui.providers.text_calls.known_tools import FINAL, RequestTools, WrittenCall, calls_in_json, object_like

# Calls in Python's syntax, ``read_file(path="a.txt")``, alone or in a list. They are parsed and never run.

_START = regex(r"\[?\s*+(?:[A-Za-z_][\w.-]*+)\(")
_CONSTANTS = {"true": True, "false": False, "null": None}
_NO_PYTHON = "the call can't be read as Python"


@frozen
class CallSpan:
    """Calls at one place, or the ``final`` answer that labelled lines mark. ``end``: where the text of them ends."""

    calls: tuple[WrittenCall, ...]
    end: int
    final: str | None = None


def starts_python_call(text: str, at: int) -> bool:
    """Whether a call, or a list of calls, begins at ``at``."""
    return _START.match(text, at) is not None


def python_calls(text: str, start: int, stop: int, known: RequestTools, decoder: JsonDecoder) -> CallSpan:
    """Parse the call or the list of calls at ``start``.

    Raises:
        UnfinishedValue: it is unfinished. ValueError: it is no call, or its arguments are not all literals.
    """
    opening = text.index("[" if text[start] == "[" else "(", start)
    reach = decoder.extent(text, opening, stop)
    if reach.missing:
        raise UnfinishedValue("it breaks off before its end")
    source = text[start : reach.end].strip()
    if len(source) > LONGEST:
        raise ValueError(f"{_NO_PYTHON}: it is too long")
    with warnings.catch_warnings():
        # Python would print a warning for an unknown escape.
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            raise ValueError(_NO_PYTHON) from error
    nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
    calls = [_call(node, known, source) for node in nodes]
    if not calls:
        raise ValueError("there is no call")
    return CallSpan(tuple(calls), reach.end)


def _call(node: ast.expr, known: RequestTools, source: str) -> WrittenCall:
    if not isinstance(node, ast.Call):
        raise ValueError("there is no call")
    if isinstance(node.func, ast.Name) and node.func.id == "print" and len(node.args) == 1 and not node.keywords:
        # Gemini often writes print(read_file(path="a.txt")).
        return _call(node.args[0], known, source)
    name = ast.unparse(node.func).removesuffix(".call")
    arguments = {keyword.arg: _literal(keyword.value) for keyword in node.keywords if keyword.arg}
    if len(arguments) != len(node.keywords):
        raise ValueError(f"{_NO_PYTHON}: it unpacks values")
    if not node.args:
        return known.read(name, arguments, source)
    given = [_literal(each) for each in node.args]
    sole = known.parameter(name)
    if len(given) == 1 and sole and sole not in arguments:
        return known.read(name, {sole: given[0], **arguments}, source)
    if len(given) == 1 and not arguments and isinstance(given[0], dict):
        return known.read(name, cast("dict[str, Any]", given[0]), source)
    if len(given) == 1 and not arguments and known.open:
        return known.read(name, given[0] if isinstance(given[0], str) else json.dumps(given[0]), source)
    return WrittenCall(name, {}, f"Name the arguments of {name}, as in {name}(name=value).", source)


class _JsonConstants(ast.NodeTransformer):
    """Replaces ``true``, ``false`` and ``null`` by Python's constants."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_CONSTANTS[node.id]) if node.id in _CONSTANTS else node


def _literal(node: ast.expr) -> Any:
    """Return the value of a literal. Raises ValueError for anything else."""
    try:
        return json.loads(json.dumps(ast.literal_eval(_JsonConstants().visit(node))))
    except (TypeError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError(f"{_NO_PYTHON}: only literal values are allowed") from error


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
"""Characters that are kept of an unreadable call."""


def kind_of(label: re.Match[str]) -> Kind:
    return next(kind for kind in ("thought", "given", "action", "final", "seen") if label[kind] is not None)


class LabelReader:
    """Parses labelled lines of ``text`` up to ``stop``."""

    def __init__(self, text: str, stop: int, known: RequestTools, decoder: JsonDecoder) -> None:
        self._text = text
        self._stop = stop
        self._known = known
        self._decoder = decoder

    def group(self, label: re.Match[str], most: int) -> CallSpan:
        """Parse calls from ``label``, an action, on: all that follow without a thought in between."""
        calls: list[WrittenCall] = []
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
        return CallSpan(tuple(calls), end)

    def inline(self, found: re.Match[str]) -> CallSpan:
        """Parse the call whose name and input are within a line."""
        label = _INLINE_GIVEN.match(self._text, found.end() - 1) or found
        following = LABEL.search(self._text, label.end(), self._stop)
        upto = following.start() if following else self._stop
        return self._with_input(found["name"].strip(), label.end(), found.start(), upto)

    def _one(self, label: re.Match[str]) -> CallSpan:
        at = label.end()
        following = LABEL.search(self._text, at, self._stop)
        upto = following.start() if following else self._stop
        while at < upto and self._text[at].isspace():
            at += 1
        if fence := _FENCE.match(self._text, at, upto):
            at = fence.end()
        if self._text[at : at + 1] in {"{", "["} and not starts_python_call(self._text, at):
            return self._json(at, upto)
        if starts_python_call(self._text, at):
            return self._python(at, upto)
        return self._named(at, upto, following)

    def _json(self, at: int, upto: int) -> CallSpan:
        try:
            value, end = self._decoder.value(self._text, at, upto)
        except ValueError as error:
            return self._wrong("", f"The action can't be read: {error}.", at, upto)
        found = calls_in_json(value, self._known, self._text[at:end], inline=True)
        if found is None:
            return self._wrong("", "The action names no tool.", at, end)
        return CallSpan(found.calls, end, found.final)

    def _python(self, at: int, upto: int) -> CallSpan:
        try:
            found = python_calls(self._text, at, upto, self._known, self._decoder)
        except ValueError as error:
            return self._wrong("", f"The action can't be read: {error}.", at, upto)
        return CallSpan(found.calls, found.end)

    def _named(self, at: int, upto: int, following: re.Match[str] | None) -> CallSpan:
        """Parse a tool's name with its input: on the same line, on the next, after a label, or without any."""
        content = self._text[at:upto].strip().rstrip("`").rstrip()
        if inline := _INLINE_GIVEN.search(content[:_LONGEST_LINE]):
            return self._with_input(content[: inline.start()], at + inline.end(), at, upto)
        if following and kind_of(following) == "given":
            after = LABEL.search(self._text, following.end(), self._stop)
            return self._with_input(content, following.end(), at, after.start() if after else self._stop)
        if bracketed := _BRACKETED.match(content):
            if bracketed["name"].lower() in FINAL:
                return CallSpan((), upto, bracketed["text"])
            return CallSpan((self._known.read(bracketed["name"], bracketed["text"], content),), upto)
        name = _NAME.match(content)
        if name and name.end() < len(content):
            return self._with_input(name["name"], at + name.end(), at, upto)
        return CallSpan((self._known.read(content, None, content),), upto)

    def _with_input(self, name: str, at: int, start: int, upto: int) -> CallSpan:
        text, stop = self._text, self._stop
        while at < upto and text[at].isspace():
            at += 1
        if fence := _FENCE.match(text, at, upto):
            at = fence.end()
            closing = text.find("```", at, stop)
            upto = closing if closing >= 0 else upto
        if _FINAL.search(name):
            return self._wrong("", "An action and a final answer are in one line.", start, upto)
        if text[at : at + 1] == "{":
            try:
                value, end = self._decoder.value(text, at, upto)
            except ValueError as error:
                if not self._known.parameter(name) or object_like(text[at:upto]):
                    return self._wrong(name, f"The action input can't be read: {error}.", start, upto)
            else:
                if isinstance(value, dict):
                    return CallSpan((self._known.read(name, cast("dict[str, Any]", value), text[start:end]),), end)
        given = text[at:upto]
        if seen := _INLINE_SEEN.search(given):
            given = given[: seen.start()]
        return CallSpan((self._known.read(name, _bare(given), text[start:upto]),), upto)

    def _wrong(self, name: str, problem: str, start: int, end: int) -> CallSpan:
        return CallSpan(
            (WrittenCall(self._known.find(name) or name, {}, problem, self._text[start : min(end, start + SHOWN)]),),
            end,
        )


def on_one_line(text: str, known: RequestTools, decoder: JsonDecoder) -> CallSpan | None:
    """Parse the call of a reply that has its labels in the middle of a line."""
    found = INLINE.search(text)
    if found is None:
        return None
    group = LabelReader(text, len(text), known, decoder).inline(found)
    return group if all(not call.problem for call in group.calls) else None


def _bare(text: str) -> str:
    """Return a text without white space, closing fence and quotes around it."""
    text = text.strip().removesuffix("```").rstrip()
    inner = text[1:].removesuffix('"')
    return inner if text.startswith('"') and '"' not in inner else text
