"""The condition of a hook, such as ``Bash(git *)``: the rule that Claude Code writes under ``if``.

In doubt a hook runs: it may be the one that blocks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ba_tui.core.text.patterns import regex, wildcard_problem

_RULE = regex(r"([\w*.-]+)\s*(?:\((.*)\))?", re.DOTALL)
_PARTS = regex(r"[;&|\n()`]+|\$\(")
_ASSIGNED = regex(r"\A(?:\w+=\S*\s+)+")
_TARGETS = ("command", "file_path", "notebook_path", "path", "url", "pattern", "query", "skill")
_DOMAIN = "domain:"


def may_apply(condition: str, names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Whether a hook with ``condition`` is to run for a call of a tool with ``names`` and the input ``given``."""
    if not condition.strip() or not names:
        return True
    match = _RULE.fullmatch(condition.strip())
    if match is None:
        return True
    tool, pattern = match[1], match[2]
    if not any(fnmatchcase(name, tool) for name in names):
        return False
    target = next((str(given[name]) for name in _TARGETS if name in given), None)
    if not pattern or pattern == "*" or target is None:
        return True
    if pattern.startswith(_DOMAIN):
        host = re.sub(r"^\w+://(?:[^/@]*@)?", "", target).split("/")[0].split(":")[0]
        wanted = pattern.removeprefix(_DOMAIN)
        return fnmatchcase(host, wanted) or host.endswith(f".{wanted}")
    if wildcard_problem(pattern):
        return True
    if "command" in given:
        return any(_begins(part, pattern) for part in (target, *_PARTS.split(target)))
    return fnmatchcase(target, pattern) or fnmatchcase(target, f"*/{pattern.lstrip('./')}")


def _begins(command: str, pattern: str) -> bool:
    command = _ASSIGNED.sub("", command.strip(), 1)
    if pattern.endswith(":*"):
        return command.startswith(pattern.removesuffix(":*"))
    return fnmatchcase(command, pattern) or (pattern.endswith(" *") and command == pattern.removesuffix(" *"))
