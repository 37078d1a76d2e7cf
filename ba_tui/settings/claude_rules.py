"""Translate permission rules of Claude Code to rules of ba: ``Bash(npm test:*)`` becomes ``shell(npm test:*)``.

A deny or ask rule may become wider, never narrower. An allow rule without an exact counterpart is not translated.

Patterns of files: ``//x`` is an absolute path, ``~/x`` is in the home folder, ``/x`` in the project, ``x`` in the
working folder. A name without a slash matches in every folder, and a folder matches everything in it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.settings.tool_names import agent_name

MOST_NAMES = 32
_SPACED = regex(r"\s*([*/])\s*")
_BRACES = regex(r"\{([^{}]*)\}")
_HOME = regex(r"\A\$(?:HOME\b|\{HOME\})")


class Inexact(ValueError):
    """A rule of Claude Code has no exact counterpart; the text says why."""


def file_patterns(text: str, base: Path, *, strict: bool) -> list[str]:
    """Return ba's patterns for ``text``; ``base`` is the folder that a leading slash means. For a ``strict`` rule they
    may be wider, and forms that Claude Code rejects are accepted.

    Raises:
        Inexact: there is no exact pattern.
    """
    text = text.strip()
    if strict and not re.match(r"[A-Za-z]:", text):
        text = text.replace("\\", "/")
    if not text.isprintable() or not text or len(text) > LONGEST:
        raise Inexact("its pattern is empty, too long or not on one line")
    if text.startswith("!"):
        raise Inexact("ba has no patterns with ! in front")
    if "\\" in text or re.match(r"[A-Za-z]:", text):
        raise Inexact("ba has no patterns with a backslash or a drive")
    loose = list(dict.fromkeys((text, *(_HOME.sub("~", each) for each in _expanded(text)))))
    if not strict and loose != [text]:
        raise Inexact("Claude Code takes braces and variables literally, ba does not take them")
    if strict:
        loose += [squeezed for each in loose if (squeezed := _SPACED.sub(r"\1", each)) != each]
    return list(dict.fromkeys(pattern for each in loose for pattern in _patterns(each, base, strict)))


def literal(text: str) -> str:
    """Return a pattern that matches only ``text``."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def _patterns(text: str, base: Path, strict: bool) -> Iterator[str]:
    if text in {".", "./", "./**"}:
        yield "**"
        return
    yield from _with_all_below(_anchored(text, base, strict))
    if strict and text.startswith("/") and not text.startswith("//"):
        # Many users mean the whole path.
        yield from _with_all_below(text)


def _anchored(text: str, base: Path, strict: bool) -> str:
    if text.startswith("//"):
        return text[1:]
    if text.startswith("~"):
        return text
    if text.startswith("/"):
        return literal(str(base)) + text
    if text.startswith("../"):
        if not strict:
            raise Inexact("it is about files above the folder")
        return os.path.normpath(f"{literal(str(base))}/{text}")
    plain = text.removeprefix("./")
    everywhere = "/" not in plain.rstrip("/") and plain == text
    return f"**/{plain}" if everywhere and not plain.startswith("**") else plain


def _with_all_below(pattern: str) -> Iterator[str]:
    pattern = pattern.rstrip("/") or "/"
    if pattern.endswith("**"):
        yield pattern
        return
    yield pattern
    yield f"{pattern.rstrip('/')}/**"


def _expanded(text: str) -> list[str]:
    """Expand the braces in ``text`` to all alternatives."""
    found = [text]
    while (at := next((each for each in found if _BRACES.search(each)), None)) and len(found) < MOST_NAMES:
        first = _BRACES.search(at)
        assert first is not None
        names = [at[: first.start()] + part.strip() + at[first.end() :] for part in first[1].split(",")]
        found = [other for each in found for other in (names if each == at else [each])]
    return found


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
"""Tools with patterns of files, for allow rules."""
CODE_TOOLS = ("shell", "python", "run_skill_script")
"""A rule that denies Bash denies all of these: the user wants the model to run no program."""


@frozen
class TranslatedRule:
    """The equivalent ``rules`` of ba; none when ``why`` has a reason."""

    rules: tuple[str, ...] = ()
    why: str = ""


@frozen
class _Inner:
    """The text in the brackets of a rule; None for the whole tool. ``base``: the folder that a leading slash means."""

    text: str | None
    strict: bool
    base: Path


_Rules: TypeAlias = Iterator[str]


def translated(text: str, verdict: str, base: Path) -> TranslatedRule:
    """Translate the rule ``text``; paths with a leading slash start from ``base``."""
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
    """Return a pattern that matches at least the commands that ``text`` matches."""
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
    """Split ``text`` into words as a shell does; None when quotation marks are unbalanced."""
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
        # A wider rule is safe here: it denies or asks.
        yield "web_fetch"
    elif inner.strict or host.startswith("*."):
        yield f"web_fetch(domain:{host})"
    else:
        # ba's domain includes its subdomains, Claude Code's does not.
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
    """Return a translator for a tool without patterns; a strict rule covers the whole tool."""

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
"""Translators of rules, by Claude Code's name of the tool."""
