"""Lists of tools as ``--allowedTools`` takes them, as permission rules of ba."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.text.patterns import regex
from ba_tui.settings.claude.rules import TOOLS, translated
from ba_tui.settings.tool_aliases import ALIASES

_RULE = regex(r"(?P<name>[A-Za-z][\w-]*)(?:\(.*\))?")
_OWN = regex(r"@?[a-z_]+(?:\(.*\))?")
_ABSENT = regex(
    r"Task(?!Output|Stop)\w+|(?:Enter|Exit)[A-Z]\w+|SlashCommand|\w+McpResources?\w*|Cron\w+|Workflow|SendMessage|LSP|Monitor"
)
"""Tools of Claude Code that ba has no counterpart of: to allow or deny them changes nothing."""


def looks_like_rule(word: str) -> bool:
    """Whether ``word`` is a name of a tool, or a rule about one, rather than the beginning of a prompt."""
    found = _RULE.fullmatch(word)
    if found is None:
        return "," in word and all(map(looks_like_rule, _split(word)))
    name = found["name"]
    return name in TOOLS or name in ALIASES or name.startswith("mcp__") or _ABSENT.fullmatch(name) is not None


def listed_rules(lists: Sequence[str], option: str, base: Path) -> Iterator[str]:
    """Yield the rules of ba for lists such as ``Read,Bash(git *)``; a path with a leading slash starts from ``base``.

    Raises:
        UsageError: no rule of ba says just the same, or denies at least as much.
    """
    for text in (rule for each in lists for rule in _split(each)):
        found = _RULE.fullmatch(text)
        if found and _ABSENT.fullmatch(found["name"]):
            continue
        if _OWN.fullmatch(text) and not text.startswith("mcp__"):
            yield text
            continue
        made = translated(text, option.removeprefix("--"), base)
        if made.why:
            raise UsageError(f"{option} can't say {text[:60]!r}: {made.why}.", "See ba guide permissions.")
        yield from made.rules


def _split(text: str) -> Iterator[str]:
    """The rules of a list: commas and spaces outside brackets part them."""
    depth, word = 0, ""
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth <= 0 and (char == "," or char.isspace()):
            if word:
                yield word
            word = ""
        else:
            word += char
    if word:
        yield word
