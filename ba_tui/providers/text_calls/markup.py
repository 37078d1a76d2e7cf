"""Parsers of calls after labels as in ReAct (``Action:``, ``Action Input:``), in Python's syntax, and after marks: tags
and the special tokens of model families.

A mark (``<tool_call>``, ``[TOOL_CALLS]``, ``<|python_tag|>`` …) announces calls; any syntax of calls may follow any
mark.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.text_calls.json_dialects import LONGEST, JsonDecoder, UnfinishedValue
from ba_tui.providers.text_calls.known_tools import FINAL, Given, RequestTools, WrittenCall, calls_in_json, object_like

# Calls in Python's syntax, ``read_file(path="a.txt")``, alone or in a list. They are parsed and never run.

_START = regex(r"\[?\s*+(?:[A-Za-z_][\w.-]*+)\(")
_CONSTANTS = {"true": True, "false": False, "null": None}
_NO_PYTHON = "the call can't be read as Python"


@frozen
class CallSpan:
    """Calls at one place, or the ``final`` answer that is marked there; ``end`` of their text; ``begun``: end of
    marks before them; ``declared``: the label of a block announces calls."""

    calls: tuple[WrittenCall, ...]
    end: int
    final: str | None = None
    begun: int = 0
    declared: bool = False


SHOWN = 2_000
"""Characters that are kept of an unreadable call."""


class CallReader:
    """Parses calls in ``text`` up to ``stop``."""

    def __init__(self, text: str, stop: int, known: RequestTools, decoder: JsonDecoder) -> None:
        self._text = text
        self._stop = stop
        self._known = known
        self._decoder = decoder

    def _past_space(self, at: int, stop: int) -> int:
        while at < stop and self._text[at].isspace():
            at += 1
        return at

    def _wrong(self, name: str, problem: str, start: int, end: int) -> CallSpan:
        source = self._text[start : min(end, start + SHOWN)]
        return CallSpan((WrittenCall(self._known.find(name) or name, {}, problem, source),), end)


def starts_python_call(text: str, at: int) -> bool:
    """Whether a call, or a list of calls, begins at ``at``."""
    return _START.match(text, at) is not None


def python_calls(text: str, start: int, stop: int, known: RequestTools, decoder: JsonDecoder) -> CallSpan:
    """Parse the call or calls at ``start``. Raises UnfinishedValue, or ValueError unless all values are literals."""
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


def kind_of(label: re.Match[str]) -> Kind:
    return next(kind for kind in ("thought", "given", "action", "final", "seen") if label[kind] is not None)


class LabelReader(CallReader):
    """Parses labelled lines."""

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
        following = LABEL.search(self._text, label.end(), self._stop)
        upto = following.start() if following else self._stop
        at = self._past_space(label.end(), upto)
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
            return python_calls(self._text, at, upto, self._known, self._decoder)
        except ValueError as error:
            return self._wrong("", f"The action can't be read: {error}.", at, upto)

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
        at = self._past_space(at, upto)
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


# Arguments between tags, one by one: ``<parameter name="path">a.txt</parameter>`` and variants. Every value is text.

MOST = 100
"""Arguments of one call."""
PREFIX = r"(?:[\w.-]{1,20}:|[a-z]{1,15}_)?"
"""Prefixes of tag names in some model families."""
_PARAMETER = regex(
    rf"(?i)\s*+<(?P<tag>{PREFIX}(?:parameter|param|argument|arg))"
    r"(?:\s*=\s*[\"']?(?P<plain>[^\s\"'<>]{1,120})[\"']?"
    r"|\s[^<>]{0,200}?\b(?:name|key)\s*=\s*[\"'](?P<name>[^\"'<>]{1,120})[\"'])[^<>]{0,200}>"
)
_PAIRED = regex(
    r"\s*+<(?P<family>(?:[a-z]{1,15}_)?)arg_key>(?P<name>[^<>]{1,120})</(?P=family)arg_key>"
    r"\s*+<(?P<tag>(?P=family)arg_value)>"
)
_CHILD = regex(r"\s*+<(?P<tag>(?P<name>[A-Za-z_][\w-]{0,80}))>")
_OF_ALL = regex(r"(?i)\s*+<(?P<tag>arguments|parameters|args|params|input|tool_input|tool_args)>")
_FOLLOWING = regex(
    rf"(?i)<(?:{PREFIX}(?:parameter|param|argument|arg)[\s=]|/{PREFIX}(?:function|invoke|call|tool_call|parameters)>)"
)
_END = regex(r"(?i)\s*+</[\w.:-]{1,60}>")


TaggedArguments: TypeAlias = tuple[dict[str, str] | str | None, int]
"""Text by name, or one text for all arguments, or None without any; and where they end."""


def tagged_arguments(text: str, at: int, stop: int, names: Collection[str] | None) -> TaggedArguments:
    """Parse all arguments from ``at`` on. ``names``: tags that may be arguments; None: any. Raises UnfinishedValue."""
    for shape in (_PARAMETER, _PAIRED):
        if shape.match(text, at, stop):
            return _each(text, at, stop, shape)
    if whole := _OF_ALL.match(text, at, stop):
        given, end = _each(text, whole.end(), stop, _CHILD, names)
        if given is None:
            return _value(text, whole.end(), stop, whole["tag"])
        closing = _END.match(text, end, stop)
        return given, closing.end() if closing else end
    return _each(text, at, stop, _CHILD, names)


def _each(
    text: str, at: int, stop: int, shape: re.Pattern[str], names: Collection[str] | None = None
) -> tuple[dict[str, str] | None, int]:
    given: dict[str, str] = {}
    for _ in range(MOST):
        found = shape.match(text, at, stop)
        name = (found.groupdict().get("plain") or found["name"]) if found else ""
        if found is None or (names is not None and name not in names):
            return given or None, at
        given[name], at = _value(text, found.end(), stop, found["tag"])
    raise UnfinishedValue("there are too many arguments")


def _value(text: str, at: int, stop: int, tag: str) -> tuple[str, int]:
    """Return the text up to the end of ``tag``, which some families leave out before the next argument."""
    end = text.find(f"</{tag}>", at, stop)
    if end >= 0:
        return _trimmed(text[at:end]), end + len(tag) + 3
    following = _FOLLOWING.search(text, at, stop)
    if following is None:
        raise UnfinishedValue("it breaks off before its end")
    return _trimmed(text[at : following.start()]), following.start()


def _trimmed(value: str) -> str:
    """Return ``value`` without the line breaks next to its tags."""
    return value.removeprefix("\n").removesuffix("\n")


CALLS = 32
"""Calls of one reply that are made; further ones are ignored."""
_WORDS = r"(?:tool_?calls?|tool_?uses?|function_?calls?|tools)"
_NAMED = r"(?:invoke|function|tool|call|tool_call|tool_use|function_call)"
_SPECIAL = r"<[|｜][^|｜<>\n\"]{1,60}[|｜]>"
_ENDS = r"(?:end|sep|argument|suffix|im_|eo[tm]|output|result|response)"
SURE = (
    r"\[TOOL_(?:CALLS?|REQUEST)\]|functools(?=\[)|<start_function_call>|<\|tool_call>"
    rf"|<[|｜](?![^|｜<>\n]{{0,60}}{_ENDS})[^|｜<>\n]{{0,30}}(?:tool|python|action|function|plugin)[^|｜<>\n]{{0,30}}[|｜]>"
    r"|<\|(?:start|channel)\|>[^<\n]{0,60}?\bto=[^<\n]{1,120}"
    r"|(?m:^)(?:>>>(?=[\w.-]{1,64}[ \t]*\n\s*\{)|(?=functions\.[\w-]{1,64}:\d{1,4}\s*\{)|(?=to=functions\.\w))"
)
"""Tokens that never occur in text by chance."""
LIKELY = rf"(?i:<{PREFIX}(?:{_WORDS}|{_NAMED})(?=[\s=>])[^<>]{{0,300}}>)"
"""Tags that may also be mentioned, or belong to a document."""
MARK = regex(rf"(?P<sure>{SURE})|(?P<likely>{LIKELY})")
_WRAP = regex(
    rf"\s*+(?:{_SPECIAL}|</?(?i:{PREFIX}{_WORDS})\s*>|\[/?(?:TOOL_CALLS?|(?:END_)?TOOL_REQUEST)\]|functools(?=\[)"
    r"|</?(?:start|end)_function_call>|<\|tool_call>|<tool_call\|>|<(?i:/invoke|/function|/call|/tool)\s*>"
    r"|>>>(?=[\w.-]{1,64}[ \t]*\n)|[,;](?=\s*+[<\[{]))"
)
_STOP = regex(
    rf"{_SPECIAL}|</(?i:{PREFIX}(?:{_WORDS}|{_NAMED}))\s*>|<end_function_call>|<tool_call\|>|\[END_TOOL_REQUEST\]"
)
_CHANNEL = regex(
    r"(?:<\|(?:start|channel)\|>[^<\n]*?\b)?to=(?:functions\.)?(?P<name>[\w.-]+)[^<{]*(?:<\|[^|<>]{1,30}\|>[^<{]{0,20}){0,3}"
)
_INVOKE = regex(
    rf"(?i)<(?P<tag>{PREFIX}{_NAMED})(?:\s*=\s*[\"']?(?P<plain>[^\s\"'<>]{{1,120}})[\"']?"
    r"|\s[^<>]{0,200}?\b(?:name|tool|function)\s*=\s*[\"'](?P<name>[^\"'<>]{1,120})[\"'])[^<>]{0,200}>\s*+"
)
_CHILD_NAME = regex(
    r"(?i)<(?P<tag>name|tool_name|function_name|tool|function)>\s*+(?P<name>[^<>\n]{1,120})</(?P=tag)>\s*+"
)
_NAME_FIRST = regex(
    r"(?:call:)?(?P<name>[A-Za-z_][\w./-]{0,120}(?::\d+)?)\s*+"
    rf"(?:(?:\[CALL_ID\][^\[\s]{{0,60}}+)?\[ARGS\]\s*+|(?:{_SPECIAL}\s*+)(?:(?P<second>[A-Za-z_][\w./-]{{0,120}})\s*+)?)?+"
    r"(?:```(?:json)?\s*+)?(?:(?P<json>(?=[{]))|(?P<pair>(?=<(?:[a-z]+_)?arg_key>))|(?P<ended>(?=</|<[|｜]|\Z)))"
)
_CLOSED = regex(r"\s*+</")
_GEMMA_QUOTE = regex(r'(?s)(<escape>|<\|"\|>)(.*?)\1')
_FENCE_END = regex(r"\s*+```")
NO_CALL = "There is no call after the mark that begins one."


class MarkReader(CallReader):
    """Parses the text after a mark."""

    def __init__(self, text: str, stop: int, known: RequestTools, decoder: JsonDecoder) -> None:
        super().__init__(text, stop, known, decoder)
        self._next_stop = (0, 0)
        """A place, and the first later place at which a call ends."""

    def body(self, start: int) -> CallSpan:
        """Parse all calls from the mark at ``start`` on; without one, return a call with that problem."""
        calls: list[WrittenCall] = []
        begun = at = self._past(start)
        while len(calls) < CALLS and (found := self._at(at)):
            calls += found.calls
            at = self._past(found.end)
            if calls[-1].problem:
                break
        if not calls:
            at = self._local_stop(at)
            calls = [WrittenCall("", {}, NO_CALL, self._text[start : min(at, start + SHOWN)])]
        return CallSpan(tuple(calls[:CALLS]), self._past(at), begun=begun)

    def _past(self, at: int) -> int:
        """Return the place after the marks and the white space at ``at``."""
        while not _CHANNEL.match(self._text, at, self._stop) and (found := _WRAP.match(self._text, at, self._stop)):
            at = found.end()
        return self._past_space(at, self._stop)

    def _local_stop(self, at: int) -> int:
        since, stop = self._next_stop
        if not since <= at <= stop or not stop:
            found = _STOP.search(self._text, at, self._stop)
            stop = found.start() if found else self._stop
            self._next_stop = (at, stop)
        return stop

    def _at(self, at: int) -> CallSpan | None:
        """Parse the calls at ``at``; None when none begins there."""
        text, stop = self._text, self._stop
        if at >= stop:
            return None
        if starts_python_call(text, at):
            return self._python(at)
        if text[at] in "{[":
            return self._json(at)
        if found := _CHANNEL.match(text, at, stop):
            return self._with_json(found["name"], found.end(), at)
        if found := _INVOKE.match(text, at, stop):
            return self._invoked(found["plain"] or found["name"], at, found.end())
        if found := _CHILD_NAME.match(text, at, stop):
            return self._tagged(found["name"].strip(), at, found.end())
        if found := _NAME_FIRST.match(text, at, stop):
            return self._name_first(found)
        return self.own_tag(at)

    def own_tag(self, at: int) -> CallSpan | None:
        """Parse a call whose tag is the tool's name: ``<read_file><path>a.txt</path></read_file>``."""
        found = self._known.tag.match(self._text, at, self._stop)
        if found is None:
            return None
        body = self._tagged(found["name"], at, found.end())
        closing = f"</{found['name']}>"
        gap = self._text[body.end : self._stop].lstrip()[: len(closing)] if not body.calls[0].problem else ""
        if gap != closing:
            return None
        return CallSpan(body.calls, self._text.index(closing, body.end) + len(closing))

    def _json(self, at: int) -> CallSpan:
        stop = self._local_stop(at)
        try:
            value, end = self._decoder.value(self._text, at, stop)
        except ValueError as error:
            return self._wrong("", f"The call can't be read: {error}.", at, stop)
        found = calls_in_json(value, self._known, self._text[at:end], inline=True)
        if found is None or not found.calls:
            return self._wrong("", "The JSON object names no tool.", at, end)
        return CallSpan(found.calls, end)

    def _python(self, at: int) -> CallSpan:
        try:
            return python_calls(self._text, at, self._stop, self._known, self._decoder)
        except ValueError as error:
            return self._wrong("", f"The call can't be read: {error}.", at, self._local_stop(at))

    def _name_first(self, found: re.Match[str]) -> CallSpan | None:
        name, start = found["second"] or found["name"], found.start()
        if found["json"] is not None:
            return self._with_json(name, found.end(), start)
        if found["pair"] is not None:
            return self._tagged(name, start, found.end())
        if self._known.find(name) and (not self._known.open or found.end() < self._stop):
            return self._read(name, None, start, found.end())
        return None

    def _invoked(self, name: str, start: int, at: int) -> CallSpan:
        if self._text[at : at + 1] == "{":
            return self._with_json(name, at, start)
        found = self._tagged(name, start, at)
        if found.calls[0].problem or _CLOSED.match(self._text, found.end, self._stop):
            return found
        return self._wrong(name, f"The arguments of {name} can't be read: they break off.", start, self._stop)

    def _with_json(self, name: str, at: int, start: int) -> CallSpan:
        """Return the call of ``name`` with the JSON object at ``at`` as its arguments."""
        stop = self._local_stop(at)
        written = self._text[at:stop]
        plain = _GEMMA_QUOTE.sub(lambda found: json.dumps(found[2]), written)
        try:
            value, end = self._decoder.value(plain) if plain != written else self._decoder.value(self._text, at, stop)
        except ValueError as error:
            return self._wrong(name, f"The arguments of {name} can't be read: {error}.", start, stop)
        end = stop if plain != written else end
        if not isinstance(value, dict):
            return self._wrong(name, f"The arguments of {name} are not a JSON object.", start, end)
        if fence := _FENCE_END.match(self._text, end, self._stop):
            end = fence.end()
        return self._read(name, cast("dict[str, Any]", value), start, end)

    def _tagged(self, name: str, start: int, at: int) -> CallSpan:
        """Return the call of ``name`` with the tagged arguments at ``at``."""
        names = None if self._known.open else self._known.properties(name)
        try:
            self._decoder.spend(0)
            given, end = tagged_arguments(self._text, at, self._stop, names)
            self._decoder.spend(end - at)
        except ValueError as error:
            with suppress(ValueError):
                self._decoder.spend(self._stop - at)
            return self._wrong(name, f"The arguments of {name} can't be read: {error}.", start, self._stop)
        return self._read(name, given, start, end, textual=True)

    def _read(self, name: str, given: Given, start: int, end: int, *, textual: bool = False) -> CallSpan:
        return CallSpan((self._known.read(name, given, self._text[start:end], textual=textual),), end)
