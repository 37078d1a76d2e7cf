"""The parser of replies: prose, and calls as text in any form. Pure.

A call must be meant as one: prose, examples in code and what a model writes in a tool's place are no calls. An
unreadable call is kept with its problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import merge
from itertools import pairwise
from typing import Literal, TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.text_calls.json_dialects import JsonDecoder
from ba_tui.providers.text_calls.known_tools import KEYS, RequestTools, WrittenCall, calls_in_json
from ba_tui.providers.text_calls.markup import (
    CALLS,
    LABEL,
    MARK,
    NO_CALL,
    SHOWN,
    CallSpan,
    LabelReader,
    MarkReader,
    kind_of,
    on_one_line,
    python_calls,
    starts_python_call,
)

# Code in a reply: fenced blocks and spans between backticks. It may be an example.

_FENCE = regex(r"(?m)^[ \t>]*+(?P<mark>`{3,}|~{3,})[ \t]*+(?P<label>[\w.+-]*)(?P<rest>[^\n]*)$")
_TICKS = regex(r"`++")
_FENCE_LOOK_BACK = 2_000
MOST = 1_000
"""Blocks of a reply that are recognised."""


@frozen
class Fence:
    """A fenced block and its content, ``inner`` to ``inner_end``; ``label`` in small letters."""

    start: int
    inner: int
    inner_end: int
    end: int
    label: str = ""


def fences(text: str) -> list[Fence]:
    """Return the fenced blocks of ``text``. One without an end reaches to the end of the text."""
    found: list[Fence] = []
    opened = None
    for line in _FENCE.finditer(text):
        if len(found) >= MOST:
            break
        mark, label, rest = line["mark"], line["label"], line["rest"].strip()
        if opened is None:
            if rest.endswith(mark) and len(rest) > len(mark):
                inner = line.start("rest")
                found.append(Fence(line.start(), inner, line.end() - len(mark), line.end(), label.lower()))
            elif "`" not in rest:
                opened = line
        elif mark.startswith(opened["mark"]) and not label and not rest:
            found.append(_block(opened.start(), opened.end(), line.start(), line.end(), opened["label"]))
            opened = None
    if opened is not None:
        found.append(_block(opened.start(), opened.end(), len(text), len(text), opened["label"]))
    return found


def _block(start: int, opened: int, closed: int, end: int, label: str) -> Fence:
    inner = min(opened + 1, closed)
    return Fence(start, inner, max(inner, closed), end, label.lower())


def in_span(text: str, at: int) -> bool:
    """Whether ``at`` is between backticks of its line: a span ends with as many as it begins with."""
    line = text.rfind("\n", max(0, at - _FENCE_LOOK_BACK), at) + 1 or max(0, at - _LOOK_BACK)
    opened = ""
    for run in _TICKS.finditer(text, line, at):
        opened = run[0] if not opened else "" if run[0] == opened else opened
    return bool(opened)


# Calls in a fenced block or on lines of their own, as JSON, as Python or with marks. ``_ReplyReader`` decides whether
# such a call was meant or is an example.

DECLARED = frozenset(("tool_call", "tool_calls", "tool_use", "tool_code", "function_call", "tool", "toolcall"))
DATA = frozenset(("", "json", "json5", "jsonc", "xml", "text", "txt", "plaintext", "python", "py", "react"))
_EXPLAINS = regex(
    r"(?i)\b(?:for (?:example|instance)|e\.g|examples?|template|sample|such as|looks? like|like th(?:is|ese)|like so"
    r"|format|syntax|schema|as follows|how (?:to|you|one|we|it|they)|would (?:be|use|call|write|say)"
    r"|you(?: (?:can|could|would|may|might|should|need|use|must|have to)|['’]d))\b"
)
_LOOK_BACK = 400
NO_CALL_IN_BLOCK = "The block holds no call."


def explained(before: str) -> bool:
    """Whether the words directly before a block announce an example or an instruction."""
    return _EXPLAINS.search(before.rstrip()[-_LOOK_BACK:].rpartition("\n\n")[2]) is not None


class Blocks:
    """Parses the blocks of ``text``. ``asked``: the model was asked for calls, so incomplete forms are accepted."""

    def __init__(self, text: str, known: RequestTools, decoder: JsonDecoder, *, asked: bool) -> None:
        self._text = text
        self._asked = asked
        self._known = known
        self._decoder = decoder

    def bare(self) -> Iterator[re.Match[str]]:
        """Return lines that begin with a call in JSON or Python."""
        names = tuple(map(re.escape, self._known.schemas))
        keys = "|".join((*KEYS, *names))
        json = rf"""[{{\[][\s{{\[]{{0,9}}["'“]?(?:{keys})["'”]?\s*:"""
        functions = "|".join(names) or r"[A-Za-z_]\w{0,60}"
        return re.finditer(rf"(?m)^[ \t]*+(?={json}|\[?\s{{0,9}}(?:{functions})\()", self._text)

    def at(self, at: int, stop: int) -> CallSpan | None:
        """Parse the calls at ``at``, if nothing else is on their last line."""
        try:
            if starts_python_call(self._text, at):
                found = python_calls(self._text, at, stop, self._known, self._decoder)
                calls, end = found.calls, found.end
            else:
                value, end = self._decoder.value(self._text, at, stop)
                whole = calls_in_json(value, self._known, self._text[at:end], inline=self._asked)
                if whole and whole.final is not None and self._asked:
                    return CallSpan((), end, whole.final)
                calls = whole.calls if whole else ()
        except ValueError:
            return None
        line = self._text[end:stop].partition("\n")[0]
        # Small models often write a bracket too many.
        usable = calls and not line.strip(";}] \t\r") and all(not call.problem for call in calls)
        return CallSpan(calls, end) if usable else None

    def fenced(self, fence: Fence) -> CallSpan | None:
        """Parse the calls that are all of a fenced block. One that is labelled as a call and has none is a problem."""
        declared = fence.label in DECLARED
        if not declared and fence.label not in DATA:
            return None
        at, calls = self._past_space(fence.inner, fence.inner_end), list[WrittenCall]()
        while at < fence.inner_end and len(calls) < CALLS:
            found = self._inside(at, fence.inner_end, declared=declared)
            if found is None:
                calls = (
                    [WrittenCall("", {}, NO_CALL_IN_BLOCK, self._text[fence.inner : fence.inner_end])]
                    if declared
                    else []
                )
                break
            if found.final is not None:
                return found
            calls += found.calls
            at = self._past_space(found.end, fence.inner_end, "}]")
        return CallSpan(tuple(calls), fence.end, declared=declared) if calls else None

    def _past_space(self, at: int, stop: int, more: str = "") -> int:
        while at < stop and (self._text[at].isspace() or self._text[at] in f",;{more}"):
            at += 1
        return at

    def _inside(self, at: int, stop: int, *, declared: bool) -> CallSpan | None:
        if MARK.match(self._text, at, stop) or self._known.tag.match(self._text, at, stop):
            return MarkReader(self._text, stop, self._known, self._decoder).body(at)
        label = LABEL.match(self._text, at, stop)
        while label and kind_of(label) == "thought":
            label = LABEL.search(self._text, label.end(), stop)
        if label and kind_of(label) == "action":
            group = LabelReader(self._text, stop, self._known, self._decoder).group(label, CALLS)
            return CallSpan(group.calls, stop) if group.calls else None
        if not declared:
            return self.at(at, stop)
        return MarkReader(self._text, stop, self._known, self._decoder).body(at)


Stance: TypeAlias = Literal["asked", "watching", "trusting"]
"""``asked``: the model was asked to write calls as text; ``watching``: it is not known yet how it calls; ``trusting``:
it calls by its API, so only unmistakable calls are accepted."""
Form: TypeAlias = Literal["labels", "marks", "block"]
_NEAR = 2_000
PLACES = 200
"""Places of one reply that may begin a call; after them all text is prose."""
FOREIGN = regex(
    r"(?im)^[ \t]*+(?:[>*#-]++[ \t]*+)?+(?:__)?+(?:observations?|(?:tool|action)[ _](?:output|result|response))"
    r"(?:[ \t]?\d{1,3})?(?:\*\*|__)?[ \t]*[:：]|^(?:user|human):"
    r"|<(?:\w{1,15}:)?(?:tool_response|tool_result|tool_output|function_result|observation)s?>"
    r"|<\|(?:im_start|start_header_id|eot_id|observation)\|>"
)
"""Where a model begins to write in the name of others."""
_THOUGHT_ENDS = "</think>"
_QUOTED = regex(r"[ \t]*+[|>]|(?: {4}|\t)")
"""The beginning of a line in a table, a quotation or a block of code."""
_MARKUP = regex(r"</?[^<>\n]{0,200}>|<[|｜][^<>\n]{0,60}[|｜]>|\[/?[A-Z_]{3,30}\]")
_ALIVE = regex(r"\w")
_TOKENS = (
    (regex(r"<\|open\|>([^<>|]{1,300})<\|sep\|>"), r"<\1>"),
    (regex(r"<\|close\|>([^<>|]{1,60})<\|sep\|>"), r"</\1>"),
    (regex(r"(?<=[</])[|｜]DSML[|｜]"), ""),
)
"""Tokens of some families that replace tags."""
FAKED = "You wrote the observation yourself. Only a tool that was called gives one."
UNCLEAR = "It is not clear whether the JSON in your answer is meant as a call."
NO_ACTION = "There is an input, but no line “Action:” before it."


@frozen
class ParsedReply:
    """``prose`` is for users, ``thought`` the text after ``Thought:``; ``final``: it was marked as the answer."""

    prose: str
    calls: tuple[WrittenCall, ...] = ()
    thought: str = ""
    final: bool = False


def read(text: str, known: RequestTools, stance: Stance = "asked") -> ParsedReply:
    """Parse a whole reply. A long hostile text takes up to a second: call it off the event loop."""
    found = _ReplyReader(_unwrapped(_plain(text)), known, stance).reading()
    if found.calls or found.final:
        return found
    return ParsedReply("".join(_unlabelled(text)) if stance == "asked" else text)


def _plain(text: str) -> str:
    """Return ``text`` without the model's reasoning before its reply, and with tags in place of their tokens."""
    thinking, _, rest = text.partition(_THOUGHT_ENDS)
    text = rest if rest and thinking.count("`") % 2 == 0 else text
    for token, tag in _TOKENS:
        text = token.sub(tag, text)
    return text


def _unwrapped(text: str) -> str:
    """Return ``text`` without the fence around a reply in labels."""
    first = next(iter(fences(text)), None)
    if first is None or text[: first.start].strip() or not LABEL.match(text, first.inner, first.inner_end):
        return text
    return f"{text[first.inner : first.inner_end]}\n{text[first.end :].lstrip()}"


@frozen
class _Event:
    """A place that may begin a call."""

    start: int
    kind: Literal["mark", "label", "tag", "bare", "fence"]
    found: re.Match[str] | None = None
    fence: Fence | None = None


@frozen
class _Place:
    """A place with calls."""

    start: int
    end: int
    calls: tuple[WrittenCall, ...]
    form: Form


class _ReplyReader:
    def __init__(self, text: str, known: RequestTools, stance: Stance) -> None:
        self._text = text
        self._known = known
        self._stance = stance
        self._decoder = JsonDecoder()
        self._blocks = Blocks(text, known, self._decoder, asked=stance == "asked")
        self._places: list[_Place] = []
        self._implied: list[_Place] = []
        """Calls that differ from examples only by their content."""
        self._unread: list[_Place] = []
        """Labelled calls of a model that was not asked for text, which can't be made as they are written."""
        self._stop = len(text)
        self._reading: tuple[int, MarkReader] | None = None
        foreign = FOREIGN.search(text)
        self._foreign = foreign.start() if foreign else None
        self._faked: int | None = None
        """Where the model wrote an observation before any call."""
        self._final: tuple[int, str] | None = None
        """The start of the answer that is marked as the last one, and its text."""

    def reading(self) -> ParsedReply:
        at = 0
        for number, event in enumerate(merge(*self._events(), key=lambda each: each.start)):
            made = sum(len(place.calls) for place in self._places)
            if self._final or number >= PLACES or event.start >= self._stop or made >= CALLS:
                break
            if event.start >= at:
                at = max(self._take(event), event.start + 1)
        if self._final and not self._places:
            start, answer = self._final
            return ParsedReply(
                answer or self._text[:start].strip(), thought=_thoughts(self._text[:start])[1], final=True
            )
        if self._stance != "asked" and self._places and self._places[-1].form == "marks":
            # An example in the middle of an answer is no call.
            self._places = [] if self._goes_on(self._places[-1].end) else self._places
        places = self._places or self._meant()
        if not places:
            places = self._missed() if self._stance == "asked" else self._failed()
        if not places:
            return ParsedReply("")
        before = [self._text[last.end : place.start] for last, place in pairwise(places)]
        parts = [_thoughts(gap) for gap in (self._text[: places[0].start], *before)]
        prose, thought = ("\n\n".join(filter(None, (each[index] for each in parts))) for index in (0, 1))
        calls = tuple(call for place in places for call in place.calls)[:CALLS]
        return ParsedReply(prose, calls, thought)

    def _marked(self) -> MarkReader:
        """Return the parser of marks, up to the end of the reply's valid part."""
        if self._reading is None or self._reading[0] != self._stop:
            self._reading = (self._stop, MarkReader(self._text, self._stop, self._known, self._decoder))
        return self._reading[1]

    def _events(self) -> Iterator[Iterator[_Event]]:
        """Return all places that may begin a call, each kind in order."""
        text = self._text
        yield (_Event(found.start(), "mark", found) for found in MARK.finditer(text))
        yield (_Event(found.start, "fence", fence=found) for found in fences(text))
        if self._stance != "trusting":
            yield (_Event(found.start(), "label", found) for found in LABEL.finditer(text))
            yield (_Event(found.start(), "tag", found) for found in self._known.tag.finditer(text))
            yield (_Event(found.start(), "bare", found) for found in self._blocks.bare())

    def _take(self, event: _Event) -> int:
        """Parse the text of an event; return the place from which to continue."""
        if event.kind != "label" and self._observed(event.start):
            return event.start
        if event.fence:
            return self._take_fence(event.fence)
        found = event.found
        if found is None or in_span(self._text, event.start):
            return event.start
        match event.kind:
            case "mark":
                return self._take_mark(found)
            case "label":
                return self._take_label(found)
            case "tag":
                body = self._marked().own_tag(event.start)
                if body and self._quoted(event.start, body.end):
                    return body.end
                return self._add(_Place(event.start, body.end, body.calls, "marks")) if body else event.start
            case _:
                block = self._blocks.at(found.end(), self._stop)
                return self._take_block(block, event.start, block.end) if block else event.start

    def _observed(self, at: int) -> bool:
        """Whether ``at`` belongs to an observation that the model made up before any call."""
        if self._places or self._foreign is None or at < self._foreign:
            return False
        labels = LABEL.finditer(self._text, self._foreign, at)
        return all(kind_of(label) == "seen" for label in labels)

    def _goes_on(self, end: int) -> bool:
        """Whether the reply has words after ``end``, before the model begins to write in the name of others."""
        rest = self._text[end : min(self._stop, end + _NEAR)]
        return _ALIVE.search(_MARKUP.sub("", rest)) is not None

    def _quoted(self, start: int, end: int) -> bool:
        """Whether a call between marks is only mentioned: in a table, a quotation or the middle of a sentence."""
        line = self._text.rfind("\n", 0, start) + 1
        before = self._text[line:start]
        return _QUOTED.match(before) is not None or (_ALIVE.search(before) is not None and self._goes_on(end))

    def _take_mark(self, found: re.Match[str]) -> int:
        body = self._marked().body(found.start())
        if found["sure"] is None and (problem := body.calls[0].problem):
            line = self._text.rfind("\n", 0, found.start()) + 1
            if self._text[line : found.start()].strip() or (problem == NO_CALL and not self._closed(found.end())):
                # A tag that is only mentioned.
                return body.begun
        if self._quoted(found.start(), body.end):
            return max(body.end, body.begun)
        return max(self._add(_Place(found.start(), body.end, body.calls, "marks")), body.begun)

    def _closed(self, at: int) -> bool:
        """Whether a closing tag follows in the same or in the next lines, with text before it."""
        inner, tag, _ = self._text[at : at + _NEAR].partition("</")
        return bool(tag and inner.strip())

    def _take_label(self, label: re.Match[str]) -> int:
        kind, first = kind_of(label), not self._places
        if kind == "final" and first and self._stance == "asked":
            self._final = (label.start(), self._text[label.end() :].strip())
        elif kind == "action" and (self._stance == "asked" or not explained(self._text[: label.start()])):
            group = LabelReader(self._text, self._stop, self._known, self._decoder).group(label, CALLS)
            if group.final is not None:
                self._final = (label.start(), group.final)
            elif self._add(_Place(label.start(), group.end, group.calls, "labels")) > label.start():
                # The rest was written before the results were there.
                self._stop = group.end
            return group.end
        elif kind == "given" and first and label[0].strip().lower().startswith(("action", "tool")):
            source = self._text[label.start() : min(self._stop, label.start() + SHOWN)]
            end = self._stop if self._stance == "watching" and "{" in source else label.end()
            self._add(_Place(label.start(), end, (WrittenCall("", {}, NO_ACTION, source),), "labels"))
        elif kind == "seen" and first and self._faked is None:
            self._faked = label.start()
        return label.end()

    def _take_fence(self, fence: Fence) -> int:
        block = self._blocks.fenced(fence) if self._stance != "trusting" else None
        return self._take_block(block, fence.start, fence.end) if block else fence.end

    def _take_block(self, block: CallSpan, start: int, end: int) -> int:
        if block.final is not None:
            self._final = (start, block.final)
        elif block.declared:
            self._add(_Place(start, end, block.calls, "block"))
        else:
            self._implied.append(_Place(start, end, block.calls, "block"))
        return end

    def _add(self, place: _Place) -> int:
        """Keep a place if its calls are valid; return the place from which to continue."""
        calls = place.calls
        named = any(call.name in self._known.schemas for call in calls)
        plain = all(self._known.fits(call) for call in calls)
        if self._stance == "asked" or (named and (plain or (self._stance == "watching" and place.form == "marks"))):
            foreign = None if self._places else FOREIGN.search(self._text, place.end, self._stop)
            self._places.append(place)
            self._stop = foreign.start() if foreign else self._stop
            return place.end
        if place.form == "labels" and self._stance == "watching":
            self._unread.append(place)
        return place.start

    def _failed(self) -> list[_Place]:
        """Return the wrongly labelled call at the end: else the model would not learn that nothing was called."""
        for place in self._unread[-1:]:
            call = place.calls[0]
            foreign = FOREIGN.search(self._text, place.end)
            rest = self._text[place.end : foreign.start() if foreign else None]
            labels = {kind_of(label) for label in LABEL.finditer(self._text, 0, place.end)}
            # A single line that begins with "Action:" may be prose.
            meant = call.name in self._known.schemas or call.unknown
            meant = meant or (call.problem == NO_ACTION and "action" not in labels)
            if meant and labels & {"given", "thought"} and not _ALIVE.search(_MARKUP.sub("", rest)):
                return [place]
        return []

    def _meant(self) -> list[_Place]:
        """Return those of the implied calls that are at the very end of the reply, where examples are unlikely."""
        if not self._implied:
            return []
        gaps = [self._text[last.end : place.start] for last, place in pairwise(self._implied)]
        end = self._implied[-1].end
        foreign = FOREIGN.search(self._text, end)
        last = not "".join((*gaps, self._text[end : foreign.start() if foreign else None])).strip()
        fitting = all(self._known.fits(call) for place in self._implied for call in place.calls)
        clear = not explained(self._text[: self._implied[0].start])
        return self._implied if clear and fitting and last else []

    def _missed(self) -> list[_Place]:
        """Return the mistake of a model that was asked for calls and made none."""
        if one := on_one_line(self._text, self._known, self._decoder):
            return [_Place(0, len(self._text), one.calls, "labels")]
        start, problem = (self._implied[0].start, UNCLEAR) if self._implied else (self._faked, FAKED)
        if start is None:
            return []
        return [_Place(start, len(self._text), (WrittenCall("", {}, problem, self._text[start:]),), "block")]


def _unlabelled(text: str) -> Iterator[str]:
    """Return an answer without the label of a thought."""
    at = 0
    for label in LABEL.finditer(text):
        if kind_of(label) == "thought":
            yield text[at : label.start()]
            at = label.end()
    yield text[at:]


def _thoughts(text: str) -> tuple[str, str]:
    """Return the prose of ``text``, and the thought after its label; without the labels."""
    prose, thoughts, at, thinking = list[str](), list[str](), 0, False
    for label in LABEL.finditer(text):
        (thoughts if thinking else prose).append(text[at : label.start()])
        at, thinking = label.end(), kind_of(label) == "thought"
    (thoughts if thinking else prose).append(text[at:])
    return "\n".join(prose).strip().removesuffix("```").strip(), "\n".join(thoughts).strip()


# Replies with one command in place of a call: in a fenced block, or between ``<command>`` tags. Only for models that
# were asked for that: in other replies a block of code belongs to the answer.

PARAMETER = "command"
COMMAND = "<command>"
SHELL = frozenset(("", "bash", "sh", "shell", "console", "zsh"))
_TAG = regex(rf"(?s){COMMAND}\n?(.*?)\n?</command>")
SEVERAL = "There is more than one command in your answer."


def command_tool(known: RequestTools) -> str:
    """Return the tool that runs a command: the one whose only required parameter has that name; empty without one."""
    return next((name for name in known.schemas if known.parameter(name) == PARAMETER), "")


def read_command(text: str, known: RequestTools) -> ParsedReply:
    """Parse the only command of a reply and the words before it; a reply without one is an answer."""
    found = [(fence.start, text[fence.inner : fence.inner_end]) for fence in fences(text) if fence.label in SHELL]
    found += [(tag.start(), tag[1]) for tag in _TAG.finditer(text)]
    if not found:
        return ParsedReply(text)
    start, command = found[0]
    problem = SEVERAL if len(found) > 1 else ""
    name = PARAMETER if known.open else command_tool(known)
    call = WrittenCall(name, {PARAMETER: command.removesuffix("\n")}, problem, text[start:][:2_000])
    return ParsedReply(text[:start].strip(), (call,))
