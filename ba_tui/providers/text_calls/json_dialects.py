"""Parsers for JSON as models write it: strict, with raw line breaks, unfinished, in Python's syntax, or damaged.

No input takes longer than about a second: see LONGEST, READS and WORK.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any, NoReturn, SupportsIndex, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.shapes import DEEPEST

LONGEST = 60_000
"""Characters that are repaired at most: the time may grow with their square."""
READS = 400_000
"""Characters that all repairs of one JsonDecoder read together."""
WORK = 4_000_000
"""Characters that one JsonDecoder reads before it gives up."""
ATTEMPT = 200
"""The least cost of an attempt, in characters."""
CLOSERS = {"{": "}", "[": "]", "(": ")"}
_TOKEN = regex(
    r"""(?s)"(?:[^"\\]++|\\.)*+(?P<close>"?+)"""
    r"""|(?<=[\[{(:,=])\s*+'(?:[^'\\]++|\\.)*+'(?=\s*+[,:\]})])"""
    r"""|(?P<open>[\[{(])|(?P<shut>[\]})])"""
)
_COMMENT = regex(
    r"""(?s)(?P<string>"(?:[^"\\]++|\\.)*+"?+)"""
    r"""|(?:(?<=[\s,\[{])|^)(?://[^\n]*+|\#[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)"""
)
_LAX = regex(
    r"""(?s)(?P<string>"(?:[^"\\]++|\\.)*+"?+)|(?P<constant>\b(?:True|False|None)\b)|(?P<comma>,\s*+(?=[}\]]))"""
    r"""|(?<=[{,])(?P<space>\s*+)(?P<key>[A-Za-z_][\w-]*+)(?=\s*+:)"""
)
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}
_ESCAPE = regex(r"(?s)\\(u[0-9a-fA-F]{4}|.)")
_FENCED = regex(r"(?s)\A\s*+```\w*+[ \t]*+\n(.*)\n[ \t]*+```\s*+\Z")
_FIRST_QUOTE = regex("[\"'“]")
_EDGE = regex(r"""(?<!\\)"(?:'|\\")|(?:'|\\")"(?!\w)""")


_BROKEN_OFF = "it breaks off before its end"


class UnfinishedValue(ValueError):
    """The text ends within a value, so that the value can't be known."""


@frozen
class Extent:
    """The end of a value. ``missing``: the brackets that close it, when the text ends before them."""

    end: int
    missing: str = ""
    in_string: bool = False


def extent(text: str, start: int, stop: int) -> Extent:
    """Return the extent of the bracket at ``start``, at most to ``stop``. Raises ValueError for too deep nesting."""
    expected: list[str] = []
    for token in _TOKEN.finditer(text, start, stop):
        if opened := token["open"]:
            expected.append(CLOSERS[opened])
            if len(expected) > DEEPEST:
                raise ValueError("it is nested too deep")
        elif token["shut"]:
            expected.pop()
            if not expected:
                return Extent(token.end())
        elif token["close"] == "":
            return Extent(stop, "".join(reversed(expected)), in_string=True)
    return Extent(stop, "".join(reversed(expected)))


def _check_depth(text: str) -> None:
    """Raise ValueError for nesting that is too deep for the recursive library."""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth = depth + 1 if token["open"] else max(0, depth - 1) if token["shut"] else depth
        if depth > DEEPEST:
            raise ValueError("it is nested too deep")


class JsonDecoder:
    """Parses values of one text, and limits the work for it."""

    def __init__(self) -> None:
        self._reads = READS
        self._work = WORK

    def spend(self, looked_at: int) -> None:
        """Add to the characters that were read. Raises ValueError beyond the limit."""
        self._work -= looked_at + ATTEMPT
        if self._work < 0:
            raise ValueError("there is too much to read")

    def extent(self, text: str, start: int, stop: int) -> Extent:
        """See the function of that name."""
        self.spend(DEEPEST * ATTEMPT)
        reach = extent(text, start, stop)
        self.spend(2 * (reach.end - start))
        return reach

    def value(self, text: str, start: int = 0, stop: int | None = None) -> tuple[Any, int]:
        """Return the object or list that begins at ``start``, and its end; an irregular one may reach up to ``stop``.

        A repair changes punctuation only: it loses or adds no letter and no digit. It adds brackets that are missing at
        the end, but never the end of a string or a number.

        Raises:
            UnfinishedValue: the text ends within the value. ValueError: it can't be parsed.
        """
        stop = len(text) if stop is None else stop
        self.spend(0)
        if text[start : start + 1] not in CLOSERS:
            raise ValueError("there is no JSON")
        try:
            return _raw(text, start)
        except json.JSONDecodeError as error:
            self.spend(error.pos - start)
        except ValueError:
            pass
        reach = self.extent(text, start, stop)
        written = text[start : reach.end].rstrip()
        if not reach.missing:
            return self._repaired(written), reach.end
        if reach.in_string or not written.endswith(("}", "]", '"', "'", "”")):
            raise UnfinishedValue(_BROKEN_OFF)
        try:
            return self._repaired(written + reach.missing), reach.end
        except ValueError as error:
            raise UnfinishedValue(_BROKEN_OFF) from error

    def whole(self, text: str) -> Any:
        """Return the value that ``text`` is or has in prose or a fence; several as a list. Raises ValueError."""
        fenced = _FENCED.match(text)
        for written in (text.strip(), fenced[1].strip() if fenced else ""):
            try:
                found, end = _raw(written, 0)
            except ValueError:
                continue
            if end == len(written):
                return found
        found = self._library(text)
        if found == "":
            raise ValueError("there is no JSON in it")
        return found

    def _repaired(self, written: str) -> Any:
        self.spend(4 * len(written))
        plain = _ESCAPE.sub(_valid_escape, _COMMENT.sub(lambda found: found["string"] or " ", written))
        for read, text in ((_strictly, plain), (_laxly, plain), (_python, written), (self._punctuated, plain)):
            try:
                found = read(text)
            except ValueError:
                continue
            if isinstance(found, list if written[0] == "[" else dict):
                return cast("Any", found)
        raise ValueError("it is not JSON")

    def _punctuated(self, text: str) -> Any:
        found = self._library(text)
        dumped = json.dumps(found)
        # A string with a quote at its edge may have been ended in the wrong place.
        if _letters(dumped) != _letters(text) or _shape(dumped) != _shape(text) or _EDGE.search(dumped):
            raise ValueError("it is not JSON")
        return found

    def _library(self, text: str) -> Any:
        from json_repair import repair_json  # noqa: PLC0415 - 50 ms, and most JSON is in order

        if len(text) > LONGEST:
            raise ValueError("it is not JSON, and too long to be repaired")
        _check_depth(text)
        metered = _MeteredText(text)
        metered.left = self._reads
        try:
            return repair_json(metered, return_objects=True, skip_json_loads=True)
        except (_Spent, RecursionError) as error:
            raise ValueError("it is not JSON, and takes too long to be repaired") from error
        finally:
            self._reads = metered.left


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_loose = json.JSONDecoder(strict=False, parse_constant=_refuse).raw_decode


def _raw(text: str, start: int) -> tuple[Any, int]:
    """Parse JSON with raw line breaks in strings, as models often write code."""
    try:
        return _loose(text, start)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _strictly(text: str) -> Any:
    found, end = _raw(text, 0)
    if end < len(text):
        raise ValueError("it goes on behind its end")
    return found


def _laxly(text: str) -> Any:
    """Parse JSON with unquoted keys, with commas before closing brackets, or with Python's constants."""
    return _strictly(_LAX.sub(_strict, text))


def _strict(found: re.Match[str]) -> str:
    if found["key"]:
        return f'{found["space"]}"{found["key"]}"'
    return "" if found["comma"] else _CONSTANTS.get(found[0], found[0])


def _python(text: str) -> Any:
    """Parse a Python literal, which differs from JSON by its first quote."""
    quote = _FIRST_QUOTE.search(text)
    if quote is None or quote[0] != "'" or len(text) > LONGEST:
        raise ValueError("it does not look like Python")
    with warnings.catch_warnings():
        # Python would print a warning for an unknown escape.
        warnings.simplefilter("ignore")
        try:
            return json.loads(json.dumps(ast.literal_eval(text)))
        except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise ValueError("it is not Python") from error


def _valid_escape(found: re.Match[str]) -> str:
    """Return an escape that JSON does not know as two characters, as in regular expressions that models write."""
    what = found[1]
    if what in '"\\/bfnrt' or len(what) > 1:
        return found[0]
    return "'" if what == "'" else f"\\\\{what}"


def _letters(text: str) -> str:
    """Return ``text`` without punctuation and escapes."""
    kept = "".join(filter(str.isalnum, _ESCAPE.sub("", text).encode("ascii", "ignore").decode()))
    return kept.lower().replace("none", "null")


def _shape(text: str) -> str:
    """Return the brackets of the objects and lists in ``text``, in order."""
    opened = (token["open"] for token in _TOKEN.finditer(text))
    return "".join("{" if bracket == "{" else "[" for bracket in opened if bracket)


class _Spent(Exception):
    pass


class _MeteredText(str):
    """A text that limits how often it is read."""

    left = 0

    def __getitem__(self, key: SupportsIndex | slice, /) -> str:
        self.left -= 1
        if self.left < 0:
            raise _Spent
        return super().__getitem__(key)

    def find(self, sub: str, start: SupportsIndex | None = None, end: SupportsIndex | None = None, /) -> int:
        found = super().find(sub, start, end)
        self.left -= ((found if found >= 0 else len(self)) - int(start or 0)) >> 6
        return found
