"""Hooks from the settings files of Claude Code. What ba can't do is named, one line each.

Nothing runs here; whether a project's files may be read at all is decided by who calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, cast

from ba_tui.hooks.config import DEFAULT_SECONDS, EVENTS, Hook, matcher_problem
from ba_tui.settings.claude.files import ClaudeFile, read_claude_file

MAX_SECONDS = 600.0
FoundHooks: TypeAlias = tuple[list[Hook], list[str]]
"""Hooks, and a line for each that can't be used."""


def read_claude(path: Path, root: Path | None = None) -> FoundHooks:
    """The hooks in a settings file of Claude Code, of the project ``root`` or the person's own; none when there is no
    such file."""
    file = read_claude_file(path, root)
    return claude_hooks(file) if file else ([], [])


def claude_hooks(file: ClaudeFile) -> FoundHooks:
    """The hooks in ``file``."""
    if file.problem:
        return [], [f"{file.path}: {file.problem}; its hooks are ignored."]
    if hooks_off(file):
        return [], []
    found: list[Hook] = []
    problems: list[str] = []
    for event, group in _groups(file.data.get("hooks")):
        for hook in _hooks(event, group, str(file.path)):
            if isinstance(hook, Hook):
                found.append(hook)
            else:
                problems.append(f"{file.path}: {event}: {hook}")
    return found, problems


def hooks_off(file: ClaudeFile) -> bool:
    """Whether ``file`` turns hooks off."""
    return file.data.get("disableAllHooks") is True


def _groups(value: Any) -> Iterator[tuple[str, Any]]:
    events = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    for event, groups in events.items():
        for group in cast("list[Any]", groups) if isinstance(groups, list) else [groups]:
            yield event, group


def _hooks(event: str, group: Any, source: str) -> Iterator[Hook | str]:
    """Each hook of a group, or what is wrong with it."""
    if event not in EVENTS:
        yield "ba has no such event; its hooks are ignored."
        return
    match group:
        case {"hooks": list(), **rest}:
            entries: Any = group["hooks"]
            matcher = rest.get("matcher") or ""
        case _:
            yield "expected a group with hooks; it is ignored."
            return
    problem = "the matcher is not text; its hooks run for everything."
    if isinstance(matcher, str):
        problem = matcher_problem(matcher)
    if problem:
        # In doubt a hook runs: it may be the one that blocks.
        yield problem
        matcher = ""
    for entry in cast("list[Any]", entries):
        yield from _hook(Hook(EVENTS[event], "", str(matcher), source=source, for_claude=EVENTS[event] != event), entry)


def _hook(empty: Hook, entry: Any) -> Iterator[Hook | str]:
    match entry:
        case {"type": "command", "shell": "powershell"}:
            yield "a hook for PowerShell; ba runs hooks with bash or sh, so it is ignored."
        case {"type": "command", "command": str(command), **rest} if command.strip():
            if rest.get("asyncRewake") is True:
                yield "asyncRewake: the hook runs in the background, but ba does not wake the model for it."
            background = rest.get("async") is True or rest.get("asyncRewake") is True
            args = rest.get("args")
            words = tuple(map(str, cast("list[Any]", args))) if isinstance(args, list) else None
            yield replace(_common(empty, rest), command=command, background=background, args=words)
        case {"type": "prompt", "prompt": str(prompt), **rest} if prompt.strip():
            yield replace(_common(empty, rest), prompt=prompt)
        case {"type": str(kind)} if kind not in {"command", "prompt"}:
            yield f"ba has no hooks of type {kind[:20]!r}; it is ignored."
        case _:
            yield "a hook without a command or a prompt; it is ignored."


def _common(hook: Hook, entry: Mapping[str, Any]) -> Hook:
    """``hook`` with what commands and prompts have in common."""
    condition = entry.get("if")
    return replace(
        hook,
        timeout=_seconds(entry.get("timeout")),
        condition=condition if isinstance(condition, str) else "",
        once=entry.get("once") is True,
    )


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return DEFAULT_SECONDS
    return min(float(value), MAX_SECONDS)
