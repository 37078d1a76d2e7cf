"""Which of our tools the file of an agent means, in the words of any assistant that such files are written for.

Nothing is allowed that a file does not name: a name that is not understood gives no tool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen
from ba_tui.settings.tool_aliases import ALIASES, own_names

Names: TypeAlias = tuple[str, ...]
ALL = frozenset({"*", "all"})
_NAME = regex(r"([^\s,()\[\]\"']+)(\([^()]*(?:\([^()]*\)[^()]*)*\))?")
_RUNNING = ("shell", "shell_output", "shell_kill", "python")
"""What Claude Code does with Bash."""
_MEANT: Mapping[str, Names] = {
    **{theirs.casefold(): (ours,) for theirs, ours in own_names().items()},
    "bash": _RUNNING,
    "execute": _RUNNING,
    "runcommands": _RUNNING,
    "execute/runinterminal": _RUNNING,
    "notebookedit": ("edit_file",),
    "edit/editfiles": ("edit_file", "write_file"),
    "editfiles": ("edit_file", "write_file"),
    "patch": ("apply_patch",),
    "list": ("list_files",),
    "search": ("grep", "glob"),
    "search/codebase": ("grep", "glob"),
    "codebase": ("grep", "glob"),
    "web": ("web_fetch", "web_search"),
    "web/fetch": ("web_fetch",),
    "fetch": ("web_fetch",),
    "todo": ("todo_write", "todo_read"),
    "todos": ("todo_write", "todo_read"),
    "todoread": ("todo_read",),
    "question": ("ask_user",),
}
"""Our tools by the names of Claude Code, OpenCode and Copilot, in lower case."""
_TAKEN: Mapping[str, Names] = {
    "bash": (*_RUNNING, "run_skill_script"),
    "shell": (*_RUNNING, "run_skill_script"),
    "execute": (*_RUNNING, "run_skill_script"),
    "edit": ("edit_file", "write_file", "apply_patch"),
    "write": ("write_file", "apply_patch"),
}
"""What else goes when one of these is taken away."""
_NO, _YES = frozenset({"false", "no", "off", "deny", "0"}), frozenset({"true", "yes", "on", "1"})


@frozen
class ToolChoice:
    """``tools``: the only ones that the agent is given; None: all but those in ``without``. ``unknown`` are the names
    that nothing here is called by, ``limits`` those with a limit in brackets, such as ``Bash(git:*)``."""

    tools: Names | None = None
    without: Names = ()
    unknown: Names = ()
    limits: Names = ()
    partly: Names = ()
    """Tools that are denied in some cases and not in others."""


def chosen_tools(fields: Mapping[str, Any], known: Collection[str]) -> ToolChoice:
    """The tools that ``fields`` ask for: ``tools``, ``disallowedtools`` and OpenCode's ``permission``, each in all its
    spellings. ``known`` are the tools there are."""
    given, off = _asked(fields.get("tools", fields.get("allowedtools")))
    allowed, denied, partly = _ruled(fields.get("permission", fields.get("permissions")))
    refused = [_bare(word) for word in (*off, *denied, *_words(fields.get("disallowedtools")))]
    without = _ours(refused, known, taken=True)
    given = allowed if given is None else given
    if any(name in ALL for name in refused):
        given = []
    if given is None or any(word.casefold() in ALL for word in given):
        return ToolChoice(None, without, partly=partly)
    names = [_bare(word) for word in given]
    tools = _ours(names, known)
    if {"write_file", "edit_file"} <= set(tools) and "apply_patch" in known:
        tools = (*tools, "apply_patch")
    unknown = tuple(clipped(word, 60) for word, name in zip(given, names, strict=True) if not _ours([name], known))
    limits = tuple(clipped(word, 60) for word, name in zip(given, names, strict=True) if word != name)
    kept = tuple(name for name in dict.fromkeys(tools) if name not in without)
    return ToolChoice(kept, without, unknown, tuple(word for word in limits if word not in unknown), partly)


def _asked(value: Any) -> tuple[list[str] | None, list[str]]:
    """The tools that ``tools`` names, None for all, and those that it switches off."""
    if not isinstance(value, dict):
        return (None if value is None else _words(value)), []
    switches = cast("dict[str, Any]", value)
    off = [name for name, state in switches.items() if _said(state) in _NO]
    if any(name in ALL for name in off):
        return [name for name, state in switches.items() if _said(state) in _YES], []
    return None, off


def _ruled(value: Any) -> tuple[list[str] | None, list[str], Names]:
    """Of OpenCode's permissions: the only tools that are allowed, None for all; those denied, and those denied in
    part."""
    if _said(value) == "deny":
        return [], [], ()
    rules = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    denied, partly = list[str](), list[str]()
    for name, rule in rules.items():
        cases = cast("dict[str, Any]", rule) if isinstance(rule, dict) else {"*": rule}
        said = {_said(each) for each in cases.values()}
        # What is denied by default is not given for the cases in which it is allowed.
        if said == {"deny"} or _said(cases.get("*")) == "deny":
            denied.append(name)
        elif "deny" in said:
            partly.append(name)
    if any(name in ALL for name in denied):
        return [name for name in rules if name not in denied], [], tuple(partly)
    return None, denied, tuple(partly)


def _ours(names: Iterable[str], known: Collection[str], *, taken: bool = False) -> Names:
    """The tools among ``known`` that ``names`` mean; ``taken``: also those that could do the same."""
    found: dict[str, None] = {}
    for name in names:
        folded = name.casefold()
        more = _TAKEN.get(folded, ()) if taken else ()
        alike = [ours for ours, theirs in ALIASES.items() if name in theirs] if taken else []
        ours = (name,) if name in known else _MEANT.get(folded, ())
        found.update(dict.fromkeys(each for each in (*ours, *more, *alike) if each in known))
    return tuple(found)


def _words(value: Any) -> list[str]:
    """The names in a text or a list, each with its brackets."""
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str)]
    return list(dict.fromkeys(found[0] for text in texts for found in _NAME.finditer(text)))


def _bare(word: str) -> str:
    return word.partition("(")[0]


def _said(value: Any) -> str:
    return value.strip().casefold() if isinstance(value, str) else ""
