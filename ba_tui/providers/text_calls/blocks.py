"""Calls that stand by themselves, in a fenced block or on lines of their own, as JSON, as Python or with marks.

Whether such a call was meant or is an example is judged by who reads the whole reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.text_calls import python_calls
from ba_tui.providers.text_calls.fences import Fence
from ba_tui.providers.text_calls.json_dialects import Decoder
from ba_tui.providers.text_calls.known import Known, Written
from ba_tui.providers.text_calls.labels import LABEL, Labelled, kind_of
from ba_tui.providers.text_calls.marked import CALLS, MARK, Marked
from ba_tui.providers.text_calls.values import KEYS, said

DECLARED = frozenset(("tool_call", "tool_calls", "tool_use", "tool_code", "function_call", "tool", "toolcall"))
DATA = frozenset(("", "json", "json5", "jsonc", "xml", "text", "txt", "plaintext", "python", "py", "react"))
_EXPLAINS = regex(
    r"(?i)\b(?:for (?:example|instance)|e\.g|examples?|template|sample|such as|looks? like|like th(?:is|ese)|like so"
    r"|format|syntax|schema|as follows|how (?:to|you|one|we|it|they)|would (?:be|use|call|write|say)"
    r"|you(?: (?:can|could|would|may|might|should|need|use|must|have to)|['’]d))\b"
)
_LOOK_BACK = 400
NO_CALL = "The block holds no call."


@frozen
class Block:
    """Calls, or the ``final`` answer, and where they end. ``declared``: a label says that it holds calls."""

    calls: tuple[Written, ...]
    end: int
    declared: bool = False
    final: str | None = None


def explained(before: str) -> bool:
    """Whether the words just before a block announce an example or tell somebody how to do it."""
    return _EXPLAINS.search(before.rstrip()[-_LOOK_BACK:].rpartition("\n\n")[2]) is not None


class Blocks:
    """The blocks of ``text``. ``asked``: the model was told how to write calls, so that less of a form will do."""

    def __init__(self, text: str, known: Known, decoder: Decoder, *, asked: bool) -> None:
        self._text = text
        self._asked = asked
        self._known = known
        self._decoder = decoder

    def bare(self) -> Iterator[re.Match[str]]:
        """Lines that begin with a call in JSON or Python."""
        names = tuple(map(re.escape, self._known.schemas))
        keys = "|".join((*KEYS, *names))
        json = rf"""[{{\[][\s{{\[]{{0,9}}["'“]?(?:{keys})["'”]?\s*:"""
        functions = "|".join(names) or r"[A-Za-z_]\w{0,60}"
        return re.finditer(rf"(?m)^[ \t]*+(?={json}|\[?\s{{0,9}}(?:{functions})\()", self._text)

    def at(self, at: int, stop: int) -> Block | None:
        """The calls at ``at``, when nothing else stands on their last line."""
        try:
            if python_calls.starts(self._text, at):
                found = python_calls.python_calls(self._text, at, stop, self._known, self._decoder)
                calls, end = found.calls, found.end
            else:
                value, end = self._decoder.value(self._text, at, stop)
                whole = said(value, self._known, self._text[at:end], inline=self._asked)
                if whole and whole.final is not None and self._asked:
                    return Block((), end, final=whole.final)
                calls = whole.calls if whole else ()
        except ValueError:
            return None
        line = self._text[end:stop].partition("\n")[0]
        # A bracket too many is what small models write.
        usable = calls and not line.strip(";}] \t\r") and all(not call.problem for call in calls)
        return Block(calls, end) if usable else None

    def fenced(self, fence: Fence) -> Block | None:
        """The calls that are all there is in a fenced block. A block that is labelled as a call and holds none is a
        call with a problem."""
        declared = fence.label in DECLARED
        if not declared and fence.label not in DATA:
            return None
        at, calls = self._past_space(fence.inner, fence.inner_end), list[Written]()
        while at < fence.inner_end and len(calls) < CALLS:
            found = self._inside(at, fence.inner_end, declared=declared)
            if found is None:
                calls = [Written("", {}, NO_CALL, self._text[fence.inner : fence.inner_end])] if declared else []
                break
            if found.final is not None:
                return found
            calls += found.calls
            at = self._past_space(found.end, fence.inner_end, "}]")
        return Block(tuple(calls), fence.end, declared) if calls else None

    def _past_space(self, at: int, stop: int, more: str = "") -> int:
        while at < stop and (self._text[at].isspace() or self._text[at] in f",;{more}"):
            at += 1
        return at

    def _inside(self, at: int, stop: int, *, declared: bool) -> Block | None:
        if MARK.match(self._text, at, stop) or self._known.tag.match(self._text, at, stop):
            body = Marked(self._text, stop, self._known, self._decoder).body(at)
            return Block(body.calls, body.end)
        label = LABEL.match(self._text, at, stop)
        while label and kind_of(label) == "thought":
            label = LABEL.search(self._text, label.end(), stop)
        if label and kind_of(label) == "action":
            group = Labelled(self._text, stop, self._known, self._decoder).group(label, CALLS)
            return Block(group.calls, stop) if group.calls else None
        if not declared:
            return self.at(at, stop)
        body = Marked(self._text, stop, self._known, self._decoder).body(at)
        return Block(body.calls, body.end)
