"""Permission rules of Claude Code as rules of ba: ``Bash(npm test:*)`` becomes ``shell(npm test:*)``.

A rule that denies or asks may become wider, never narrower. An allow rule that ba can't say exactly is not translated.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.settings.claude.file_patterns import Inexact, file_patterns, literal
from ba_tui.settings.tool_aliases import agent_name

LONGEST = 480
_RULE = regex(r"\s*([^()]*?)\s*(?:\((.*)\)\s*)?", re.DOTALL)
_OPEN = regex(r"\s*([^()]*?)\s*\((.*)", re.DOTALL)
_ESCAPED = regex(r"\\([()\\])")
_REST = regex(r"\s*:\*\s*\Z|\s+\*\s*\Z")
_SERVER = regex(r"mcp__[A-Za-z0-9_.-]+\*?")
_ODD = regex(r"[^A-Za-z0-9_.*-]+")
_HOST = regex(r"(?:domain:)?(?:\w+://)?(?:[^/@]*@)?([\w.*-]+)(?:[:/?#].*)?")
_PLAIN = regex(r"[\w ./:=@%+,-]*")
_SKILL = regex(r"[\w./ -]+")

FILE_TOOLS = frozenset({"@read", "edit_file", "write_file", "apply_patch", "glob", "grep", "list_files"})
"""Tools whose patterns are those of files, in allow rules."""
CODE_TOOLS = ("shell", "python", "run_skill_script")
"""Who denies Bash means that no program of the model's runs."""


@frozen
class TranslatedRule:
    """``rules`` of ba that say what the rule says; none where ``why`` tells the reason."""

    rules: tuple[str, ...] = ()
    why: str = ""


@frozen
class _Inner:
    """What stands in the brackets of a rule; None for all that the tool does. ``base``: what a leading slash means."""

    text: str | None
    strict: bool
    base: Path


_Rules: TypeAlias = Iterator[str]


def translated(text: str, verdict: str, base: Path) -> TranslatedRule:
    """The rule ``text`` of a file whose paths with a leading slash start from ``base``."""
    strict = verdict != "allow"
    found = _RULE.fullmatch(text) or (_OPEN.fullmatch(text) if strict else None)
    if found is None or not found[1]:
        return TranslatedRule(why="it is not written as TOOL(PATTERN)")
    name, inner = found[1], found[2]
    if inner is not None:
        inner = _ESCAPED.sub(r"\1", inner)
        if not inner.strip() and not strict:
            return TranslatedRule(why="there is nothing between its brackets")
    inner = None if inner is None or inner.strip() in {"", "*"} else inner
    try:
        made = list(_rules(name, _Inner(inner, strict, base)))
    except Inexact as error:
        return TranslatedRule(why=str(error))
    return TranslatedRule(tuple(rule for at, rule in enumerate(made) if rule not in made[:at]))


def _rules(name: str, inner: _Inner) -> _Rules:
    if name.startswith("mcp__"):
        yield _server_tool(name, inner)
        return
    if inner.strict and name == "*":
        yield "*"
        return
    known = [make for tool, make in TOOLS.items() if tool == name or (inner.strict and _may_be(tool, name))]
    if not known:
        what = "a wildcard is no tool" if "*" in name else f"ba has no tool {name[:40]}"
        raise Inexact(f"{what}, so there is nothing to {'forbid' if inner.strict else 'allow'}")
    for make in known:
        yield from make(inner)


def _may_be(tool: str, name: str) -> bool:
    return fnmatchcase(tool.lower(), name.lower().replace("[", "[[]"))


def _bash(inner: _Inner) -> _Rules:
    if inner.text is None:
        yield from CODE_TOOLS if inner.strict else ("shell",)
        return
    if inner.strict:
        yield f"shell({_strict_command(inner.text)})"
        return
    text = inner.text.strip()
    if not text.isprintable() or len(text) > LONGEST:
        raise Inexact("an allow rule of ba is one line of at most 500 characters")
    head = _REST.sub("", text)
    if "*" in head:
        raise Inexact("ba allows a * only at the end, behind whole words, as in npm run test:*")
    if not head:
        raise Inexact("it names no command")
    if head != text and _words(head) is None:
        raise Inexact("its quotation marks do not match")
    yield f"shell({head}{':*' if head != text else ''})"


def _strict_command(text: str) -> str:
    """The pattern of a rule that catches at least what ``text`` does."""
    text = " ".join(text.replace("\\*", "*").split())
    head = _REST.sub("", text)
    rest = head != text
    if len(head) > LONGEST:
        head, rest = head[:LONGEST], True
    if _words(head) and "*" not in head:
        return f"{head}:*" if rest else head
    spelled = "".join(char if char.isprintable() else "*" for char in head).replace("[", "[[]")
    return f"{spelled}*" if rest or "*" not in head else spelled


def _words(text: str) -> list[str] | None:
    """``text`` as a shell takes it apart; None where its quotation marks do not match."""
    if _PLAIN.fullmatch(text):
        return text.split()
    try:
        return shlex.split(text)
    except ValueError:
        return None


def _reading(inner: _Inner) -> _Rules:
    yield from _on_files(inner, ("read_file",), "@read")


def _editing(inner: _Inner) -> _Rules:
    yield from _on_files(inner, ("edit_file", "write_file", "apply_patch"))


def _writing(inner: _Inner) -> _Rules:
    yield from _on_files(inner, ("write_file", "apply_patch") if inner.strict else ("write_file",))


def _changing_twice(inner: _Inner) -> _Rules:
    yield from _on_files(inner, ("edit_file", "apply_patch") if inner.strict else ("edit_file",))


def _notebooks(inner: _Inner) -> _Rules:
    if not inner.strict:
        if inner.text is not None:
            raise Inexact("ba edits notebooks with edit_file: allow Edit")
        yield "edit_file(**/*.ipynb)"
        return
    for pattern in ["**/*.ipynb"] if inner.text is None else file_patterns(inner.text, inner.base, strict=True):
        yield f"@write({pattern})"


def _on_files(inner: _Inner, tools: tuple[str, ...], every: str = "") -> _Rules:
    """Rules for ``tools``; with a pattern for ``every`` tool of that effect, in a strict rule for all that write."""
    if inner.text is None:
        yield from tools
        return
    every = every or ("@write" if inner.strict else "")
    for pattern in file_patterns(inner.text, inner.base, strict=inner.strict):
        yield from (f"{tool}({pattern})" for tool in ([every] if every else tools))


def _looking(tool: str) -> Callable[[_Inner], _Rules]:
    def rules(inner: _Inner) -> _Rules:
        yield from _on_files(inner, (tool,), tool)

    return rules


def _fetching(inner: _Inner) -> _Rules:
    text = (inner.text or "").strip()
    if inner.text is None or text == "domain:*":
        yield "web_fetch"
        return
    found = _HOST.fullmatch(text)
    host = found[1].strip(".").lower() if found else ""
    exact = text == f"domain:{host}"
    if not host or not host.isascii() or "*" in host.removeprefix("*.") or not (inner.strict or exact):
        if not inner.strict:
            raise Inexact("expected the name of one host, as in domain:docs.python.org or domain:*.python.org")
        # Rather more addresses than meant.
        yield "web_fetch"
    elif inner.strict or host.startswith("*."):
        yield f"web_fetch(domain:{host})"
    else:
        # Our domain covers all hosts below it, Claude Code's that host alone.
        for address in (f"https://{host}", f"http://{host}"):
            yield f"web_fetch({address})"
            yield f"web_fetch({address}/**)"


def _skills(inner: _Inner) -> _Rules:
    if inner.text is None:
        yield "activate_skill"
        return
    name = _REST.sub("", inner.text.strip())
    if not _SKILL.fullmatch(name):
        raise Inexact("expected the name of a skill")
    yield f"activate_skill({name}{'*' if name != inner.text.strip() else ''})"


def _searching(inner: _Inner) -> _Rules:
    if inner.text is not None and not (inner.text.isprintable() and len(inner.text) < LONGEST):
        raise Inexact("expected one line")
    yield "web_search" if inner.text is None else f"web_search({literal(inner.text.strip())})"


def _agents(inner: _Inner) -> _Rules:
    if inner.text is None:
        yield "delegate_task"
        return
    name = inner.text.strip()
    if not _SKILL.fullmatch(name):
        raise Inexact("expected the name of an agent")
    yield f"delegate_task({agent_name(name)})"


def _same(tool: str) -> Callable[[_Inner], _Rules]:
    """For a tool of which ba knows no patterns; a strict rule is about all of it."""

    def rules(inner: _Inner) -> _Rules:
        if not inner.strict and inner.text is not None:
            raise Inexact(f"ba has no patterns for {tool}")
        yield tool

    return rules


def _server_tool(name: str, inner: _Inner) -> str:
    if not inner.strict and (inner.text is not None or not _SERVER.fullmatch(name)):
        raise Inexact("expected mcp__SERVER or mcp__SERVER__TOOL")
    whole = "__" not in name.removeprefix("mcp__") and not name.endswith("*")
    return _ODD.sub("*", name) + ("__*" if whole else "")


TOOLS: Mapping[str, Callable[[_Inner], _Rules]] = {
    "Bash": _bash,
    "Read": _reading,
    "Edit": _editing,
    "Write": _writing,
    "MultiEdit": _changing_twice,
    "NotebookEdit": _notebooks,
    "NotebookRead": _reading,
    "Glob": _looking("glob"),
    "Grep": _looking("grep"),
    "LS": _looking("list_files"),
    "WebFetch": _fetching,
    "WebSearch": _searching,
    "Skill": _skills,
    "TodoWrite": _same("todo_write"),
    "TodoRead": _same("todo_read"),
    "AskUserQuestion": _same("ask_user"),
    "ExitPlanMode": _same("present_plan"),
    "BashOutput": _same("shell_output"),
    "TaskOutput": _same("shell_output"),
    "KillShell": _same("shell_kill"),
    "KillBash": _same("shell_kill"),
    "TaskStop": _same("shell_kill"),
    "ToolSearch": _same("tool_search"),
    "Task": _agents,
    "Agent": _agents,
}
"""By the name of a tool of Claude Code, what makes rules of ba."""
