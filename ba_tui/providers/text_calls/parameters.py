"""Arguments that stand between tags, one by one: ``<parameter name="path">a.txt</parameter>`` and its relatives.

Whose arguments they are, and of which types, is not known here: every value is text.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.text_calls.json_dialects import Unfinished

MOST = 100
"""Arguments of one call."""
PREFIX = r"(?:[\w.-]{1,20}:|[a-z]{1,15}_)?"
"""What families put before the names of their tags."""
_NAMED = regex(
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
    """``given``: text by name, or one text for all of them, or None when there were none. ``end``: where they end."""

    given: dict[str, str] | str | None
    end: int


def arguments(text: str, at: int, stop: int, names: Collection[str] | None) -> Arguments:
    """All arguments from ``at`` on. ``names``: the tags that may be arguments by themselves; None: any.

    Raises Unfinished when a value has no end.
    """
    for shape in (_NAMED, _PAIRED):
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


def starts_pair(text: str, at: int) -> bool:
    """Whether ``<arg_key>`` stands at ``at``."""
    return _PAIRED.match(text, at) is not None


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
    raise Unfinished("there are too many arguments")


def _value(text: str, at: int, stop: int, tag: str) -> tuple[str, int]:
    """The text up to the end of ``tag``, which some families leave away before the next argument."""
    end = text.find(f"</{tag}>", at, stop)
    if end >= 0:
        return _trimmed(text[at:end]), end + len(tag) + 3
    following = _FOLLOWING.search(text, at, stop)
    if following is None:
        raise Unfinished("it breaks off before its end")
    return _trimmed(text[at : following.start()]), following.start()


def _trimmed(value: str) -> str:
    """Without the line breaks that only set it off from its tags."""
    return value.removeprefix("\n").removesuffix("\n")
