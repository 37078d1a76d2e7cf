"""Claude Code's names of ba's tools, and the tools in front matter as allow rules.

Hooks and front matter may use either names. The user decides whether a rule is granted, and deny rules still apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, cast

from ba_tui.core.text.patterns import regex

ALIASES: Mapping[str, tuple[str, ...]] = {
    "shell": ("Bash",),
    "shell_output": ("BashOutput",),
    "shell_kill": ("KillShell", "KillBash"),
    "read_file": ("Read", "NotebookRead"),
    "write_file": ("Write",),
    "edit_file": ("Edit", "MultiEdit"),
    "apply_patch": ("Edit", "MultiEdit", "Write"),
    "apply_changes": ("Edit", "MultiEdit", "Write"),
    "list_files": ("LS",),
    "glob": ("Glob",),
    "grep": ("Grep",),
    "web_fetch": ("WebFetch",),
    "web_search": ("WebSearch",),
    "todo_write": ("TodoWrite",),
    "ask_user": ("AskUserQuestion",),
    "activate_skill": ("Skill",),
    "delegate_task": ("Task", "Agent"),
    "remember": ("Remember",),
    "forget": ("Forget",),
}
"""Claude Code's names of a tool, by ba's name."""
AGENTS = {"general-purpose": "general", "plan": "explore"}
"""ba's counterparts of Claude Code's built-in agents, by their lower-case names."""


def agent_name(name: str) -> str:
    """Return ba's name of an agent; names of agents are lower case."""
    folded = name.strip().casefold()
    return AGENTS.get(folded, folded)


def names_of(tool: str) -> tuple[str, ...]:
    """Return the names of ``tool`` for matchers: ba's and Claude Code's."""
    return (tool, *ALIASES.get(tool, ()))


@cache
def own_names() -> Mapping[str, str]:
    """Return ba's names of tools by Claude Code's."""
    found: dict[str, str] = {}
    for ours, theirs in ALIASES.items():
        for name in theirs:
            found.setdefault(name, ours)
    return found


def own_name(name: str) -> str:
    """Return ba's name for Claude Code's tool ``name``, in any capitalization; ``name`` itself for an unknown tool."""
    return own_names().get(name) or _folded().get(name.casefold(), name)


@cache
def _folded() -> Mapping[str, str]:
    return {name.casefold(): ours for name, ours in own_names().items()}


FIELDS = ("allowed-tools", "allowed_tools", "allowedtools", "tools")
"""Names of the field, in lower case; the first one present is used."""
LONGEST = 20_000
ALL = "*"
_TOOL = regex(r"([^\s,()\[\]]+)[ \t]*(\((?:[^()]|\([^()]*\))*\)|\(.*\Z)?", re.DOTALL)
_QUOTES = "\"'`"


def tools_in(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tools that front matter with these fields allows."""
    lower = {key.lower(): value for key, value in fields.items()}
    return next((tools_of(lower[name]) for name in FIELDS if name in lower), ())


def tools_of(value: Any) -> tuple[str, ...]:
    """Return the distinct tools of one field: ``Read, Bash(git:*)``, separated by commas or spaces, with or without
    quotes, or a list of these, or a mapping to true. A tool with an unclosed bracket is left out: without its pattern
    it would allow too much."""
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
    """Return ``tools`` as distinct allow rules of ba: ``shell(git:*)`` for ``Bash(git:*)``."""
    rules: dict[str, None] = {}
    for tool in tools:
        name, bracket, rest = tool.partition("(")
        # A pattern that matches everything equals a rule without a pattern.
        rules[own_name(name) + ("" if rest in {"*)", "**)"} else bracket + rest)] = None
    return tuple(rules)
