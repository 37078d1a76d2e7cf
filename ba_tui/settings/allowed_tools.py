"""Tools as front matter names them, in all the ways that are in use, and the allow rules that they stand for.

Whether anything is granted is decided by the person, and a rule that denies stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.settings.tool_aliases import own_name

FIELDS = ("allowed-tools", "allowed_tools", "allowedtools", "tools")
"""What the field is called, in lower case; the first that is there counts."""
LONGEST = 20_000
ALL = "*"
_TOOL = regex(r"([^\s,()\[\]]+)[ \t]*(\((?:[^()]|\([^()]*\))*\)|\(.*\Z)?", re.DOTALL)
_QUOTES = "\"'`"


def tools_in(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """What front matter with these fields allows."""
    lower = {key.lower(): value for key, value in fields.items()}
    return next((tools_of(lower[name]) for name in FIELDS if name in lower), ())


def tools_of(value: Any) -> tuple[str, ...]:
    """The tools of one field, each once: ``Read, Bash(git:*)``, separated by commas or spaces, or a list of such, with
    quotes or without, or a mapping to true. Of a bracket that is not closed nothing is taken: it would be too much."""
    if isinstance(value, dict):
        given = cast("dict[Any, Any]", value)
        value = [name for name, on in given.items() if str(on).strip().lower() in {"true", "yes", "allow"}]
    items = cast("Sequence[Any]", value) if isinstance(value, list) else [value]
    text = ", ".join(item for item in items if isinstance(item, str))[:LONGEST]
    found: dict[str, None] = {}
    for name, pattern in _TOOL.findall(text):
        plain = name.strip(_QUOTES)
        if not any(char.isalnum() or char == ALL for char in plain) or (pattern and not pattern.endswith(")")):
            continue
        inside = [part.strip().strip(_QUOTES).strip() for part in pattern[1:-1].split(",")]
        found.update(dict.fromkeys(f"{plain}({part})" if part else plain for part in inside if part or not pattern))
    return tuple(found)


def rules_of(tools: Iterable[str]) -> tuple[str, ...]:
    """``tools`` as allow rules of ours, ``shell(git:*)`` for ``Bash(git:*)``, each once."""
    rules: dict[str, None] = {}
    for tool in tools:
        name, bracket, rest = tool.partition("(")
        # A pattern for everything is the tool without one.
        rules[own_name(name) + ("" if rest in {"*)", "**)"} else bracket + rest)] = None
    return tuple(rules)
