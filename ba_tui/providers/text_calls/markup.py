"""Parsers of calls after marks: XML-like tags and the special tokens of model families.

A mark (``<tool_call>``, ``[TOOL_CALLS]``, ``<|python_tag|>`` …) announces calls; any syntax of calls may follow any
mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.text_calls.json_dialects import JsonDecoder, UnfinishedValue
from ba_tui.providers.text_calls.known_tools import Given, RequestTools, WrittenCall, calls_in_json
from ba_tui.providers.text_calls.labels import python_calls, starts_python_call

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


@frozen
class Arguments:
    """``given``: text by name, or one text for all of them, or None without arguments. ``end``: where they end."""

    given: dict[str, str] | str | None
    end: int


def tagged_arguments(text: str, at: int, stop: int, names: Collection[str] | None) -> Arguments:
    """Parse all arguments from ``at`` on. ``names``: tags that may be arguments themselves; None: any. Raises
    UnfinishedValue when a value has no end."""
    for shape in (_PARAMETER, _PAIRED):
        if shape.match(text, at, stop):
            return _each(text, at, stop, shape)
    if whole := _OF_ALL.match(text, at, stop):
        inner = _children(text, whole.end(), stop, names)
        if isinstance(inner.given, dict):
            closing = _END.match(text, inner.end, stop)
            return Arguments(inner.given, closing.end() if closing else inner.end)
        value, end = _value(text, whole.end(), stop, whole["tag"])
        return Arguments(value, end)
    return _children(text, at, stop, names)


def _children(text: str, at: int, stop: int, names: Collection[str] | None) -> Arguments:
    return _each(text, at, stop, _CHILD, names)


def _each(text: str, at: int, stop: int, shape: re.Pattern[str], names: Collection[str] | None = None) -> Arguments:
    given: dict[str, str] = {}
    for _ in range(MOST):
        found = shape.match(text, at, stop)
        name = (found.groupdict().get("plain") or found["name"]) if found else ""
        if found is None or (names is not None and name not in names):
            return Arguments(given or None, at)
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
SHOWN = 2_000
"""Characters that are kept of an unreadable call."""
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


@frozen
class MarkedCalls:
    """The calls after a mark, and their end."""

    calls: tuple[WrittenCall, ...]
    end: int
    begun: int = 0
    """The end of the mark and of marks that follow it directly."""


class MarkReader:
    """Parses the text after a mark in ``text``, up to ``stop``."""

    def __init__(self, text: str, stop: int, known: RequestTools, decoder: JsonDecoder) -> None:
        self._text = text
        self._stop = stop
        self._known = known
        self._decoder = decoder
        self._next_stop = (0, 0)
        """A place, and the first later place at which a call ends."""

    def body(self, start: int) -> MarkedCalls:
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
        return MarkedCalls(tuple(calls[:CALLS]), self._past(at), begun)

    def _past(self, at: int) -> int:
        """Return the place after the marks and the white space at ``at``."""
        while not _CHANNEL.match(self._text, at, self._stop) and (found := _WRAP.match(self._text, at, self._stop)):
            at = found.end()
        while at < self._stop and self._text[at].isspace():
            at += 1
        return at

    def _local_stop(self, at: int) -> int:
        since, stop = self._next_stop
        if not since <= at <= stop or not stop:
            found = _STOP.search(self._text, at, self._stop)
            stop = found.start() if found else self._stop
            self._next_stop = (at, stop)
        return stop

    def _at(self, at: int) -> MarkedCalls | None:
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

    def own_tag(self, at: int) -> MarkedCalls | None:
        """Parse a call whose tag is the tool's name: ``<read_file><path>a.txt</path></read_file>``."""
        found = self._known.tag.match(self._text, at, self._stop)
        if found is None:
            return None
        body = self._tagged(found["name"], at, found.end())
        closing = f"</{found['name']}>"
        gap = self._text[body.end : self._stop].lstrip()[: len(closing)] if not body.calls[0].problem else ""
        if gap != closing:
            return None
        return MarkedCalls(body.calls, self._text.index(closing, body.end) + len(closing))

    def _json(self, at: int) -> MarkedCalls:
        stop = self._local_stop(at)
        try:
            value, end = self._decoder.value(self._text, at, stop)
        except ValueError as error:
            return self._wrong("", f"The call can't be read: {error}.", at, stop)
        found = calls_in_json(value, self._known, self._text[at:end], inline=True)
        if found is None or not found.calls:
            return self._wrong("", "The JSON object names no tool.", at, end)
        return MarkedCalls(found.calls, end)

    def _python(self, at: int) -> MarkedCalls:
        try:
            found = python_calls(self._text, at, self._stop, self._known, self._decoder)
        except ValueError as error:
            return self._wrong("", f"The call can't be read: {error}.", at, self._local_stop(at))
        return MarkedCalls(found.calls, found.end)

    def _name_first(self, found: re.Match[str]) -> MarkedCalls | None:
        name, start = found["second"] or found["name"], found.start()
        if found["json"] is not None:
            return self._with_json(name, found.end(), start)
        if found["pair"] is not None:
            return self._tagged(name, start, found.end())
        if self._known.find(name) and (not self._known.open or found.end() < self._stop):
            return self._read(name, None, start, found.end())
        return None

    def _invoked(self, name: str, start: int, at: int) -> MarkedCalls:
        if self._text[at : at + 1] == "{":
            return self._with_json(name, at, start)
        found = self._tagged(name, start, at)
        if found.calls[0].problem or _CLOSED.match(self._text, found.end, self._stop):
            return found
        return self._wrong(name, f"The arguments of {name} can't be read: they break off.", start, self._stop)

    def _with_json(self, name: str, at: int, start: int) -> MarkedCalls:
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

    def _tagged(self, name: str, start: int, at: int) -> MarkedCalls:
        """Return the call of ``name`` with the tagged arguments at ``at``."""
        names = None if self._known.open else self._known.properties(name)
        try:
            self._decoder.spend(0)
            found = tagged_arguments(self._text, at, self._stop, names)
            self._decoder.spend(found.end - at)
        except ValueError as error:
            with suppress(ValueError):
                self._decoder.spend(self._stop - at)
            return self._wrong(name, f"The arguments of {name} can't be read: {error}.", start, self._stop)
        return self._read(name, found.given, start, found.end, textual=True)

    def _read(self, name: str, given: Given, start: int, end: int, *, textual: bool = False) -> MarkedCalls:
        return MarkedCalls((self._known.read(name, given, self._text[start:end], textual=textual),), end)

    def _wrong(self, name: str, problem: str, start: int, end: int) -> MarkedCalls:
        source = self._text[start : min(end, start + SHOWN)]
        return MarkedCalls((WrittenCall(self._known.find(name) or name, {}, problem, source),), end)
