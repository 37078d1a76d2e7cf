"""Lists of tools as ``--allowedTools`` takes them, as permission rules of ba."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ba_tui.core.errors import UsageError
from ba_tui.core.text.patterns import regex
from ba_tui.settings.tool_aliases import ALIASES, own_names

_RULE = regex(r"(?P<name>[A-Za-z][\w-]*)(?:\((?P<inner>.*)\))?")
_REST = regex(r"\s*:\*\Z|\s+\*\Z")
_EDITORS = ("edit_file", "write_file", "apply_patch")
_WHOLE = {"Edit": _EDITORS, "MultiEdit": _EDITORS, "NotebookEdit": ("edit_file",), "TodoRead": ("todo_read",)}
_DENIED = {"Bash": ("shell", "python", "run_skill_script"), "Write": ("write_file", "apply_patch")}
"""Who denies Bash means that no program of the model's runs."""
_ABSENT = regex(
    r"Task\w*|Agent|(?:Enter|Exit)[A-Z]\w+|SlashCommand|\w+McpResources?\w*|Cron\w+|Workflow|SendMessage|LSP|Monitor"
)
"""Tools of Claude Code that ba has no counterpart of: to allow or deny them changes nothing."""


def looks_like_rule(word: str) -> bool:
    """Whether ``word`` is a name of a tool, or a rule about one, rather than the beginning of a prompt."""
    found = _RULE.fullmatch(word)
    if found is None:
        return "," in word and all(map(looks_like_rule, _split(word)))
    name = found["name"]
    known = name in own_names() or name in ALIASES or name in _WHOLE or _ABSENT.fullmatch(name)
    return bool(known) or name.startswith("mcp__")


def listed_rules(lists: Sequence[str], option: str) -> Iterator[str]:
    """Yield the rules of ba for lists such as ``Read,Bash(git *)``.

    Raises:
        UsageError: no rule of ba says just the same.
    """
    for text in (rule for each in lists for rule in _split(each)):
        found = _RULE.fullmatch(text)
        if found is None:
            raise UsageError(f"{option}: {text[:60]!r} is no rule.", "Rules read TOOL or TOOL(PATTERN).")
        yield from _ours(found["name"], found["inner"], option)


def _ours(name: str, inner: str | None, option: str) -> Iterator[str]:
    inner = None if inner in {"", "*"} else inner
    own = own_names().get(name, name)
    if _ABSENT.fullmatch(name):
        return
    if inner is None:
        yield from (_DENIED.get(name) if option == "--deny" else None) or _WHOLE.get(name) or (own,)
    elif own == name:
        # A rule of ba's own.
        yield f"{name}({inner})"
    elif own == "shell":
        head = _REST.sub("", inner)
        if "*" in head:
            raise UsageError(f"Bash({inner}): ba allows a * only at the end.", f"Use {option} 'shell(COMMAND:*)'.")
        yield f"shell({head}:*)" if head != inner else f"shell({inner})"
    elif own == "web_fetch" and inner.startswith("domain:"):
        yield f"web_fetch({inner.removeprefix('domain:')})"
    elif own == "activate_skill":
        yield f"activate_skill({inner})"
    else:
        raise UsageError(
            f"{name}({inner}) may mean other files here.", f"Use {option} '{own}(PATTERN)': ba guide permissions."
        )


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
