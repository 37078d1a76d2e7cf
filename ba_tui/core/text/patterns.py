"""``regex``: regular expressions that are compiled when they are first used; what is wrong with wildcards of users.

Three hundred of them stand at the heads of modules and in tables, and most starts use thirty.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Pattern:
    """Becomes a ``re.Pattern`` method by method: what was asked for once is an attribute from then on."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        # re keeps what it compiled last, so that a second method rarely compiles again.
        found = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found


def regex(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As ``re.compile``, but an error in ``source`` shows at the first use. For what every start would compile."""
    return cast("re.Pattern[AnyStr]", _Pattern(source, flags))


def wildcard_problem(pattern: str) -> str:
    """Return what is wrong with the sets (``[a-z]``) of a wildcard pattern; empty when nothing is.

    A ``[`` without an end is plain text."""
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
