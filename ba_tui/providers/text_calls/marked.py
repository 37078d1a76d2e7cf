"""Calls behind marks: XML-like tags and the special tokens of model families, with what may stand between them.

A mark (``<tool_call>``, ``[TOOL_CALLS]``, ``<|python_tag|>`` …) says that calls follow; how they are written does not
depend on which mark it was. Where in a reply marks count is not known here.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.text_calls import parameters, python_calls
from ba_tui.providers.text_calls.json_dialects import Decoder
from ba_tui.providers.text_calls.known import Given, Known, Written
from ba_tui.providers.text_calls.parameters import PREFIX
from ba_tui.providers.text_calls.values import said

CALLS = 32
"""Calls of one reply; what more there is, is not made."""
SHOWN = 2_000
"""Characters that are kept of what can't be read."""
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
"""Tokens that stand in no text by chance."""
LIKELY = rf"(?i:<{PREFIX}(?:{_WORDS}|{_NAMED})(?=[\s=>])[^<>]{{0,300}}>)"
"""Tags that may also be spoken of, or belong to a document."""
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
class Body:
    """Calls at a place, and where they end."""

    calls: tuple[Written, ...]
    end: int
    begun: int = 0
    """Where the mark ends, and those that follow it directly."""


class Marked:
    """Reads what follows a mark in ``text``, at most up to ``stop``."""

    def __init__(self, text: str, stop: int, known: Known, decoder: Decoder) -> None:
        self._text = text
        self._stop = stop
        self._known = known
        self._decoder = decoder
        self._next_stop = (0, 0)
        """A place, and where the first thing behind it is that ends a call."""

    def body(self, start: int) -> Body:
        """All calls from the mark at ``start`` on; without any, a call whose problem says so."""
        calls: list[Written] = []
        begun = at = self._past(start)
        while len(calls) < CALLS and (found := self._at(at)):
            calls += found.calls
            at = self._past(found.end)
            if calls[-1].problem:
                break
        if not calls:
            at = self._local_stop(at)
            calls = [Written("", {}, NO_CALL, self._text[start : min(at, start + SHOWN)])]
        return Body(tuple(calls[:CALLS]), self._past(at), begun)

    def _past(self, at: int) -> int:
        """Behind the marks and the white space at ``at``."""
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

    def _at(self, at: int) -> Body | None:
        """The calls that are written at ``at``; None when none begins there."""
        text, stop = self._text, self._stop
        if at >= stop:
            return None
        if python_calls.starts(text, at):
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

    def own_tag(self, at: int) -> Body | None:
        """A call whose tag is the name of the tool: ``<read_file><path>a.txt</path></read_file>``."""
        found = self._known.tag.match(self._text, at, self._stop)
        if found is None:
            return None
        body = self._tagged(found["name"], at, found.end())
        closing = f"</{found['name']}>"
        gap = self._text[body.end : self._stop].lstrip()[: len(closing)] if not body.calls[0].problem else ""
        if gap != closing:
            return None
        return Body(body.calls, self._text.index(closing, body.end) + len(closing))

    def _json(self, at: int) -> Body:
        stop = self._local_stop(at)
        try:
            value, end = self._decoder.value(self._text, at, stop)
        except ValueError as error:
            return self._wrong("", f"The call can't be read: {error}.", at, stop)
        found = said(value, self._known, self._text[at:end], inline=True)
        if found is None or not found.calls:
            return self._wrong("", "The JSON object names no tool.", at, end)
        return Body(found.calls, end)

    def _python(self, at: int) -> Body:
        try:
            found = python_calls.python_calls(self._text, at, self._stop, self._known, self._decoder)
        except ValueError as error:
            return self._wrong("", f"The call can't be read: {error}.", at, self._local_stop(at))
        return Body(found.calls, found.end)

    def _name_first(self, found: re.Match[str]) -> Body | None:
        name, start = found["second"] or found["name"], found.start()
        if found["json"] is not None:
            return self._with_json(name, found.end(), start)
        if found["pair"] is not None:
            return self._tagged(name, start, found.end())
        if self._known.find(name) and (not self._known.open or found.end() < self._stop):
            return self._read(name, None, start, found.end())
        return None

    def _invoked(self, name: str, start: int, at: int) -> Body:
        if self._text[at : at + 1] == "{":
            return self._with_json(name, at, start)
        found = self._tagged(name, start, at)
        if found.calls[0].problem or _CLOSED.match(self._text, found.end, self._stop):
            return found
        return self._wrong(name, f"The arguments of {name} can't be read: they break off.", start, self._stop)

    def _with_json(self, name: str, at: int, start: int) -> Body:
        """``name`` with the JSON object at ``at`` as its arguments."""
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

    def _tagged(self, name: str, start: int, at: int) -> Body:
        """``name`` with the arguments between tags at ``at``."""
        names = None if self._known.open else self._known.properties(name)
        try:
            self._decoder.spend(0)
            found = parameters.arguments(self._text, at, self._stop, names)
            self._decoder.spend(found.end - at)
        except ValueError as error:
            with suppress(ValueError):
                self._decoder.spend(self._stop - at)
            return self._wrong(name, f"The arguments of {name} can't be read: {error}.", start, self._stop)
        return self._read(name, found.given, start, found.end, textual=True)

    def _read(self, name: str, given: Given, start: int, end: int, *, textual: bool = False) -> Body:
        return Body((self._known.read(name, given, self._text[start:end], textual=textual),), end)

    def _wrong(self, name: str, problem: str, start: int, end: int) -> Body:
        source = self._text[start : min(end, start + SHOWN)]
        return Body((Written(self._known.find(name) or name, {}, problem, source),), end)
