"""The calls of one Chat Completions answer, from the pieces that its many servers send.

The rest of the answer is openai_wire.py's.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from ba_tui.core.events import ToolInputDelta
from ba_tui.core.messages import Opaque, ToolUse, clean_json, clean_text, new_id
from ba_tui.providers.bounds import Load
from ba_tui.providers.wire.shapes import LONGEST_NAME, arguments, fields, text_of

VENDOR = "openai"
EXTRA = "tool_call_extra"
NOTHING = "{}"
LONGEST_ID = 1_000
_KNOWN = {"index", "id", "type", "function", "name", "arguments"}


@dataclass(slots=True)
class _Call:
    id: str
    told: str
    """The id as the server gave it; ours where that can't be."""
    name: str = ""
    text: io.StringIO = field(default_factory=io.StringIO)
    begun: bool = False
    given: dict[str, Any] | None = None
    size: int = 0
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    def write(self, text: str) -> None:
        self.text.write(text)
        self.size += len(text)
        self.begun = self.begun or bool(text.strip())

    def read(self) -> tuple[dict[str, Any], str | None]:
        """The arguments, and the text that was none."""
        if self.given is not None:
            return arguments(self.given)
        text = self.text.getvalue()
        # Gateways that translate put an empty object before the pieces of the real one.
        rest = text[len(NOTHING) :].lstrip() if text.startswith(NOTHING) else ""
        return arguments(rest if rest.startswith("{") else text)

    @property
    def whole(self) -> bool:
        """Nothing can follow these arguments."""
        return self.begun and self.read()[1] is None


class Calls:
    """Pieces in, calls out, in the order in which they began."""

    def __init__(self, load: Load, taken: Collection[str] = ()) -> None:
        """``taken``: ids that earlier calls have."""
        self._load = load
        self._taken = taken
        self._all: list[_Call] = []
        self._at: dict[str, _Call] = {}
        """The call that an index stands for; the latest, where one index stands for all."""
        self._open: _Call | None = None

    def __bool__(self) -> bool:
        return bool(self._all)

    def feed(self, raw: dict[str, Any]) -> ToolInputDelta:
        """Take a piece. Which call's: by its index, else by its id, else that of the one that is open."""
        function = fields(raw.get("function")) or raw
        id, name = clean_text(text_of(raw.get("id"))[:LONGEST_ID]), clean_text(text_of(function.get("name")))
        given = function.get("arguments")
        call = self._find(raw.get("index"), id, name, more=bool(given) and given != "")
        # The name comes whole or in pieces, and some servers repeat with every piece what there is of it.
        call.name = (name if name.startswith(call.name) else call.name + name)[: LONGEST_NAME + 1]
        self._load.update(call.extra, {key: value for key, value in raw.items() if key not in _KNOWN})
        before = call.size
        text = given if isinstance(given, str) else json.dumps(given) if given else ""
        if isinstance(given, dict):
            call.given = call.given or {}
            call.given.update(fields(function["arguments"]))
            call.size, call.begun = call.size + len(text), bool(call.given)
        else:
            call.write(text)
        if call.size > before:
            self._load.arguments(call.size, text)
        return ToolInputDelta(call.id, call.name, call.size)

    def _find(self, index: object, id: str, name: str, *, more: bool) -> _Call:
        place = str(index) if isinstance(index, int | str) else ""
        if place:
            found = self._at.get(place)
            if found and id and name and found.name and found.told != id:
                # One index for several calls, told apart by their ids.
                found = self._by_id(id)
        else:
            found = self._by_id(id) if id else self._open
            if found is None and not name and more and self._open and not self._open.whole:
                # An id of its own for each piece.
                found = self._open
        going_on = bool(place) and found is not None and not found.begun and id in {"", found.told}
        if found and name and found.name and not going_on and self._another(found, id, name, more=more):
            found = None
        if found is None:
            self._load.call()
            fresh = self._fresh(id)
            found = _Call(fresh, fresh if self._by_id(id) else id or fresh)
            self._all.append(found)
        if place:
            self._at[place] = found
        self._open = found
        return found

    def _another(self, found: _Call, id: str, name: str, *, more: bool) -> bool:
        """Whether a piece with a name begins a call of its own, though nothing else tells it from ``found``."""
        if id and id == found.told and name == found.name and not (more and found.whole):
            return False
        return name != found.name or (more and found.whole)

    def _by_id(self, id: str) -> _Call | None:
        return next((call for call in self._all if call.told == id), None)

    def _fresh(self, id: str) -> str:
        # A server that gives no id, or one id twice, leaves it to us: answers are paired by it.
        return id if id and self._by_id(id) is None and id not in self._taken else f"call_{new_id()[:24]}"

    def blocks(self, *, cut: bool) -> Iterator[ToolUse | Opaque]:
        """The calls, each with what a server added to it. ``cut``: the answer ended before its end."""
        for call in self._all:
            given, malformed = call.read()
            if cut and call is self._all[-1] and not call.begun:
                # What reads as a call without arguments was never finished.
                malformed = ""
            yield ToolUse(call.id, call.name, clean_json(given), None if malformed is None else clean_text(malformed))
            if call.extra:
                yield Opaque(clean_json({"type": EXTRA, "id": call.id, "extra": call.extra}), VENDOR)

    @property
    def whole(self) -> bool:
        """None hangs in the air."""
        return all(call.read()[1] is None for call in self._all)
