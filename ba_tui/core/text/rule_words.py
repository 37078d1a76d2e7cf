"""What permission rules cover, in words for people, told from the text of the rules alone.

What a rule means is decided in the room permissions; these words never say more than that.
"""

from __future__ import annotations

from collections.abc import Iterable

from ba_tui.core.text.patterns import regex

EDITS = ("edit_file(**)", "write_file(**)", "apply_patch(**)")
"""Together: every edit of a file in the workspace's folder."""
SANDBOXED = "@sandbox"
"""The pattern of a rule about code that a sandbox without network holds."""
_RULE = regex(r"(?P<tool>[\w.*@-]+)(?:\((?P<pattern>.*)\))?")
_ESCAPED = regex(r"\[([*?\[])\]")
_COMMANDS = {"shell": "", "outside": ", outside the sandbox"}
_EDITORS = frozenset({"edit_file", "write_file", "apply_patch"})
_SQL = {
    "read": "that only read data",
    "write": "that change data",
    "ddl": "that change tables",
    "unknown": "of any kind",
}
_CLASSES = {
    "@secret": "files with secrets",
    "@guarded": "protected files",
    "@outside": "files outside the workspace",
    "*": "every tool",
    "@read": "every tool that reads",
    "@write": "every tool that writes",
    "@execute": "every tool that runs code",
    "@network": "every tool that uses the network",
}


def joined_rules(rules: Iterable[str]) -> str:
    """Return several rules as one text, a line each: no rule holds a line end."""
    return "\n".join(rules)


def split_rules(text: str) -> tuple[str, ...]:
    """Return the rules of a text that ``joined_rules`` made."""
    return tuple(text.split("\n"))


def rule_words(text: str) -> str:
    """Return what the rules in ``text`` cover: ``git commit …``, ``all edits in this folder``."""
    rules = split_rules(text)
    if set(rules) == set(EDITS):
        return "all edits in this folder"
    return " and ".join(map(_words, rules))


def _words(rule: str) -> str:
    found = _RULE.fullmatch(rule)
    if found is None:
        return rule
    tool, pattern = found["tool"], found["pattern"]
    if tool in _COMMANDS:
        return _command(pattern) + _COMMANDS[tool]
    if pattern is None:
        return "all web searches" if tool == "web_search" else f"{_CLASSES.get(tool, tool)}, with any arguments"
    if tool == "python":
        return "Python in the sandbox, without network" if pattern == SANDBOXED else "exactly this code"
    if tool == "run_skill_script":
        skill, slash, script = pattern.partition("/")
        return f"{_plain(script)} of the skill {_plain(skill)}, with any arguments" if slash else rule
    if pattern.startswith("domain:"):
        host = pattern.removeprefix("domain:")
        what = "commands that connect to" if tool == "shell_network" else f"{tool} from"
        within = f"subdomains of {host[2:]}" if host.startswith("*.") else f"{host} and its subdomains"
        return f"{what} {within}"
    return _about(tool, pattern)


def _command(pattern: str | None) -> str:
    """``npm run test …`` where anything may follow, else the one command."""
    if pattern is None or pattern in {"*", ":*"}:
        return "every command"
    return f"{pattern[:-2]} …" if pattern.endswith((":*", " *")) else pattern


def _about(tool: str, pattern: str) -> str:
    if pattern in _SQL:
        return f"calls of {tool} {_SQL[pattern]}"
    known = tool in _EDITORS or tool == "read_file" or tool in _CLASSES
    what = f"{_CLASSES.get(tool, tool)} on {_CLASSES.get(pattern) or _plain(pattern)}"
    return what if known else f"{what}, with any other arguments"


def _plain(pattern: str) -> str:
    """A pattern without the brackets that keep its characters from being wildcards."""
    return _ESCAPED.sub(r"\1", pattern)
