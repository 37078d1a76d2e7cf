"""A reply of a model, read: its prose, and the calls that it holds as text in whatever form.

Pure. Nothing is a call that was not plainly meant as one: prose, examples in code and what a model writes in a tool's
place are none. What was meant as a call and can't be read is kept with its problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import merge
from itertools import pairwise
from typing import Literal, TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.text_calls.blocks import Block, Blocks, explained
from ba_tui.providers.text_calls.fences import Fence, fences, in_span
from ba_tui.providers.text_calls.json_dialects import Decoder
from ba_tui.providers.text_calls.known import Known, Written
from ba_tui.providers.text_calls.labels import LABEL, Labelled, kind_of, on_one_line
from ba_tui.providers.text_calls.marked import CALLS, MARK, NO_CALL, SHOWN, Marked

Stance: TypeAlias = Literal["asked", "watching", "trusting"]
"""Whether the model was asked to write calls as text, whether it is not known yet how it calls, or whether it is known
to call by its API: then only what can be nothing else is a call."""
Form: TypeAlias = Literal["labels", "marks", "block"]
_NEAR = 2_000
PLACES = 200
"""Places of one reply that may begin a call; what comes behind them is prose."""
FOREIGN = regex(
    r"(?im)^[ \t]*+(?:[>*#-]++[ \t]*+)?+(?:__)?+(?:observations?|(?:tool|action)[ _](?:output|result|response))"
    r"(?:[ \t]?\d{1,3})?(?:\*\*|__)?[ \t]*[:：]|^(?:user|human):"
    r"|<(?:\w{1,15}:)?(?:tool_response|tool_result|tool_output|function_result|observation)s?>"
    r"|<\|(?:im_start|start_header_id|eot_id|observation)\|>"
)
"""Where a model begins to speak for others."""
_THOUGHT_ENDS = "</think>"
_QUOTED = regex(r"[ \t]*+[|>]|(?: {4}|\t)")
"""What a line begins with that belongs to a table, a quotation or a block of code."""
_MARKUP = regex(r"</?[^<>\n]{0,200}>|<[|｜][^<>\n]{0,60}[|｜]>|\[/?[A-Z_]{3,30}\]")
_ALIVE = regex(r"\w")
_TOKENS = (
    (regex(r"<\|open\|>([^<>|]{1,300})<\|sep\|>"), r"<\1>"),
    (regex(r"<\|close\|>([^<>|]{1,60})<\|sep\|>"), r"</\1>"),
    (regex(r"(?<=[</])[|｜]DSML[|｜]"), ""),
)
"""Tokens of some families that stand for tags."""
FAKED = "You wrote the observation yourself. Only a tool that was called gives one."
UNCLEAR = "It is not clear whether the JSON in your answer is meant as a call."
NO_ACTION = "There is an input, but no line “Action:” before it."


@frozen
class Reading:
    """``prose`` is for people, ``thought`` what stood behind ``Thought:``. ``final``: it was marked as the answer."""

    prose: str
    calls: tuple[Written, ...] = ()
    thought: str = ""
    form: Form | None = None
    final: bool = False


def read(text: str, known: Known, stance: Stance = "asked") -> Reading:
    """What ``text`` says, a whole reply. What is long and hostile takes up to a second: keep that off a loop."""
    found = _Reader(_unwrapped(_plain(text)), known, stance).reading()
    if found.calls or found.final:
        return found
    return Reading("".join(_unlabelled(text)) if stance == "asked" else text)


def _plain(text: str) -> str:
    """Without a model's thinking before its reply, and with tags instead of tokens that stand for tags."""
    thinking, _, rest = text.partition(_THOUGHT_ENDS)
    text = rest if rest and thinking.count("`") % 2 == 0 else text
    for token, tag in _TOKENS:
        text = token.sub(tag, text)
    return text


def _unwrapped(text: str) -> str:
    """Without the fence around a reply that is written in labels."""
    first = next(iter(fences(text)), None)
    if first is None or text[: first.start].strip() or not LABEL.match(text, first.inner, first.inner_end):
        return text
    return f"{text[first.inner : first.inner_end]}\n{text[first.end :].lstrip()}"


@frozen
class _Event:
    """Something that may begin a call."""

    start: int
    kind: Literal["mark", "label", "tag", "bare", "fence"]
    found: re.Match[str] | None = None
    fence: Fence | None = None


@frozen
class _Place:
    """Where calls are."""

    start: int
    end: int
    calls: tuple[Written, ...]
    form: Form


class _Reader:
    def __init__(self, text: str, known: Known, stance: Stance) -> None:
        self._text = text
        self._known = known
        self._stance = stance
        self._decoder = Decoder()
        self._blocks = Blocks(text, known, self._decoder, asked=stance == "asked")
        self._places: list[_Place] = []
        self._implied: list[_Place] = []
        """Calls that nothing but their content tells from an example."""
        self._unread: list[_Place] = []
        """Labelled calls of a model that was not asked for text, which can't be made as they are written."""
        self._stop = len(text)
        self._reading: tuple[int, Marked] | None = None
        foreign = FOREIGN.search(text)
        self._foreign = foreign.start() if foreign else None
        self._faked: int | None = None
        """Where the model wrote an observation before it had called anything."""
        self._final: tuple[int, str] | None = None
        """Where an answer is marked as the last one, and its text."""

    def reading(self) -> Reading:
        at = 0
        for number, event in enumerate(merge(*self._events(), key=lambda each: each.start)):
            if self._final or number >= PLACES or event.start >= self._stop or self._made() >= CALLS:
                break
            if event.start >= at:
                at = max(self._take(event), event.start + 1)
        if self._final and not self._places:
            start, answer = self._final
            return Reading(answer or self._text[:start].strip(), thought=_thoughts(self._text[:start])[1], final=True)
        if self._stance != "asked" and self._places and self._places[-1].form == "marks":
            # An example in the middle of an answer is no call.
            self._places = [] if self._goes_on(self._places[-1].end) else self._places
        places = self._places or self._meant()
        if not places:
            places = self._missed() if self._stance == "asked" else self._failed()
        if not places:
            return Reading("")
        before = [self._text[last.end : place.start] for last, place in pairwise(places)]
        said = [_thoughts(gap) for gap in (self._text[: places[0].start], *before)]
        prose, thought = ("\n\n".join(filter(None, (each[index] for each in said))) for index in (0, 1))
        calls = tuple(call for place in places for call in place.calls)[:CALLS]
        return Reading(prose, calls, thought, places[0].form)

    def _marked(self) -> Marked:
        """What reads marks up to where the reply counts."""
        if self._reading is None or self._reading[0] != self._stop:
            self._reading = (self._stop, Marked(self._text, self._stop, self._known, self._decoder))
        return self._reading[1]

    def _made(self) -> int:
        return sum(len(place.calls) for place in self._places)

    def _events(self) -> Iterator[Iterator[_Event]]:
        """All that may begin a call, each kind in order."""
        text = self._text
        yield (_Event(found.start(), "mark", found) for found in MARK.finditer(text))
        yield (_Event(found.start, "fence", fence=found) for found in fences(text))
        if self._stance != "trusting":
            yield (_Event(found.start(), "label", found) for found in LABEL.finditer(text))
            yield (_Event(found.start(), "tag", found) for found in self._known.tag.finditer(text))
            yield (_Event(found.start(), "bare", found) for found in self._blocks.bare())

    def _take(self, event: _Event) -> int:
        """Take what an event turns out to be; from where on to look further."""
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
        """Whether what stands at ``at`` belongs to an observation that the model made up before it called anything."""
        if self._places or self._foreign is None or at < self._foreign:
            return False
        labels = LABEL.finditer(self._text, self._foreign, at)
        return all(kind_of(label) == "seen" for label in labels)

    def _goes_on(self, end: int) -> bool:
        """Whether the reply has words behind ``end``, up to where the model begins to speak for others."""
        rest = self._text[end : min(self._stop, end + _NEAR)]
        return _ALIVE.search(_MARKUP.sub("", rest)) is not None

    def _quoted(self, start: int, end: int) -> bool:
        """Whether a call between marks is only spoken of: in a table or a quotation, or in the middle of a sentence."""
        line = self._text.rfind("\n", 0, start) + 1
        before = self._text[line:start]
        return _QUOTED.match(before) is not None or (_ALIVE.search(before) is not None and self._goes_on(end))

    def _take_mark(self, found: re.Match[str]) -> int:
        body = self._marked().body(found.start())
        if found["sure"] is None and (problem := body.calls[0].problem):
            line = self._text.rfind("\n", 0, found.start()) + 1
            if self._text[line : found.start()].strip() or (problem == NO_CALL and not self._closed(found.end())):
                # A tag that is only spoken of.
                return body.begun
        if self._quoted(found.start(), body.end):
            return max(body.end, body.begun)
        return max(self._add(_Place(found.start(), body.end, body.calls, "marks")), body.begun)

    def _closed(self, at: int) -> bool:
        """Whether a closing tag follows in the same or in the next lines, with something before it."""
        inner, tag, _ = self._text[at : at + _NEAR].partition("</")
        return bool(tag and inner.strip())

    def _take_label(self, label: re.Match[str]) -> int:
        kind, first = kind_of(label), not self._places
        if kind == "final" and first and self._stance == "asked":
            self._final = (label.start(), self._text[label.end() :].strip())
        elif kind == "action" and (self._stance == "asked" or not explained(self._text[: label.start()])):
            group = Labelled(self._text, self._stop, self._known, self._decoder).group(label, CALLS)
            if group.final is not None:
                self._final = (label.start(), group.final)
            elif self._add(_Place(label.start(), group.end, group.calls, "labels")) > label.start():
                # What follows was written before the results were there.
                self._stop = group.end
            return group.end
        elif kind == "given" and first and label[0].strip().lower().startswith(("action", "tool")):
            source = self._text[label.start() : min(self._stop, label.start() + SHOWN)]
            end = self._stop if self._stance == "watching" and "{" in source else label.end()
            self._add(_Place(label.start(), end, (Written("", {}, NO_ACTION, source),), "labels"))
        elif kind == "seen" and first and self._faked is None:
            self._faked = label.start()
        return label.end()

    def _take_fence(self, fence: Fence) -> int:
        block = self._blocks.fenced(fence) if self._stance != "trusting" else None
        return self._take_block(block, fence.start, fence.end) if block else fence.end

    def _take_block(self, block: Block, start: int, end: int) -> int:
        if block.final is not None:
            self._final = (start, block.final)
        elif block.declared:
            self._add(_Place(start, end, block.calls, "block"))
        else:
            self._implied.append(_Place(start, end, block.calls, "block"))
        return end

    def _add(self, place: _Place) -> int:
        """Keep a place if it counts; from where on to look further."""
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
        """Return the labelled call that a model meant to make at the end of its reply and wrote wrongly. If such a
        reply ended the turn, the model would never hear that nothing was called."""
        for place in self._unread[-1:]:
            call = place.calls[0]
            foreign = FOREIGN.search(self._text, place.end)
            rest = self._text[place.end : foreign.start() if foreign else None]
            labels = {kind_of(label) for label in LABEL.finditer(self._text, 0, place.end)}
            # One line that begins with "Action:" may be prose.
            meant = call.name in self._known.schemas or call.unknown
            meant = meant or (call.problem == NO_ACTION and "action" not in labels)
            if meant and labels & {"given", "thought"} and not _ALIVE.search(_MARKUP.sub("", rest)):
                return [place]
        return []

    def _meant(self) -> list[_Place]:
        """The places that only their content tells from an example, where nothing speaks for an example: they stand
        at the very end of the reply."""
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
        """What a model that was asked for calls got wrong so that there is none."""
        if one := on_one_line(self._text, self._known, self._decoder):
            return [_Place(0, len(self._text), one.calls, "labels")]
        start, problem = (self._implied[0].start, UNCLEAR) if self._implied else (self._faked, FAKED)
        if start is None:
            return []
        return [_Place(start, len(self._text), (Written("", {}, problem, self._text[start:]),), "block")]


def _unlabelled(text: str) -> Iterator[str]:
    """An answer without the label that says it is a thought."""
    at = 0
    for label in LABEL.finditer(text):
        if kind_of(label) == "thought":
            yield text[at : label.start()]
            at = label.end()
    yield text[at:]


def _thoughts(text: str) -> tuple[str, str]:
    """What of ``text`` is prose, and what stands behind a label as a thought; without the labels."""
    prose, thoughts, at, thinking = list[str](), list[str](), 0, False
    for label in LABEL.finditer(text):
        (thoughts if thinking else prose).append(text[at : label.start()])
        at, thinking = label.end(), kind_of(label) == "thought"
    (thoughts if thinking else prose).append(text[at:])
    return "\n".join(prose).strip().removesuffix("```").strip(), "\n".join(thoughts).strip()
