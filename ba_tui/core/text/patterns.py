"""Compile regular expressions on first use (``regex``), and check wildcard patterns of users.

About 300 patterns are defined at module level or in tables, and most starts use thirty of them.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Pattern:
    """A lazy ``re.Pattern``: each method becomes an attribute when it is first used."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        # re caches compiled patterns, so a second method rarely compiles again.
        found = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found


def regex(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern like ``re.compile`` that compiles on first use, so an error in ``source`` shows only then."""
    return cast("re.Pattern[AnyStr]", _Pattern(source, flags))


def wildcard_problem(pattern: str) -> str:
    """Return what is wrong with the character sets (``[a-z]``) of a wildcard pattern; empty if they are valid. A ``[``
    without an end is plain text."""
    at = pattern.find("[")
    while at >= 0:
        close = pattern.find("]", at + 3 if pattern[at + 1 : at + 2] == "!" else at + 2)
        if close < 0:
            return ""
        inner = pattern[at + 1 : close].removeprefix("!")
        for index, sign in enumerate(inner[1:-1], 1):
            if sign == "-" and inner[index - 1] > inner[index + 1]:
                return f"the range {inner[index - 1 : index + 2]} in {pattern[at : close + 1]} is the wrong way round"
        at = pattern.find("[", close)
    return ""
