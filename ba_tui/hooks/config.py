"""Loads hooks from the settings and from Claude Code's settings files, and matches them to events and tools.

Nothing runs here; whether a project's files may be read at all is decided by who calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.ingress import Read
from ba_tui.resources import read_regular
from ba_tui.settings import FUTURE_HOOK_EVENTS, HOOK_EVENTS, HookLine

DEFAULT_SECONDS, MAX_SECONDS = 60.0, 600.0
MAX_BYTES = 1_000_000
CLAUDE_FILES = (".claude/settings.json", ".claude/settings.local.json")
EVENTS: Mapping[str, str] = {name: ours for ours, theirs in HOOK_EVENTS.items() for name in (ours, theirs)}
"""Every name of an event, ours and Claude Code's, to ours."""

_NAMES = regex(r"[\w |,-]*")
FoundHooks: TypeAlias = tuple[list["Hook"], list[str]]
"""Hooks, and a line for each that can't be used."""


@frozen
class Hook:
    """``event`` is our name of it; ``source`` the file and line, for people."""

    event: str
    command: str
    matcher: str = ""
    timeout: float = DEFAULT_SECONDS
    source: str = ""

    def matches(self, names: Sequence[str]) -> bool:
        """Whether it is meant for something with one of ``names``; no names: for anything."""
        if not names or self.matcher in {"", "*"}:
            return True
        if _NAMES.fullmatch(self.matcher):
            wanted = {name.strip() for name in re.split(r"[|,]", self.matcher)}
            return not wanted.isdisjoint(names)
        return any(re.search(self.matcher, name) for name in names)

    @property
    def label(self) -> str:
        """A few words that name it in a message."""
        return f"The hook “{one_line(self.command, 60)}”"


def read_hooks(lines: Sequence[HookLine]) -> list[Hook]:
    """Those of the settings, in their order."""
    found: list[Hook] = []
    for line in lines:
        group, event = line.group, EVENTS[line.event]
        commands = [(each.command, each.timeout) for each in group.hooks]
        if group.command:
            commands.append((group.command, group.timeout))
        found += [Hook(event, command, group.matcher, seconds, line.source) for command, seconds in commands]
    return found


def read_claude(path: Path, read: Read = read_regular) -> FoundHooks:
    """The hooks in a settings file of Claude Code; none when there is no such file."""
    try:
        raw = read(path, MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except OSError as error:
        return [], [f"{path}: can't be read: {error.strerror or error}"]
    try:
        data: Any = json.loads(raw) if len(raw) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        return [], [f"{path}: not a JSON object; its hooks are ignored."]
    settings = cast("dict[str, Any]", data)
    if settings.get("disableAllHooks") is True:
        return [], []
    found: list[Hook] = []
    problems: list[str] = []
    for event, group in _groups(settings.get("hooks")):
        for hook in _claude_hooks(event, group, str(path)):
            if isinstance(hook, Hook):
                found.append(hook)
            else:
                problems.append(f"{path}: {event}: {hook}")
    return found, problems


def _groups(value: Any) -> Iterator[tuple[str, Any]]:
    events = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    for event, groups in events.items():
        for group in cast("list[Any]", groups) if isinstance(groups, list) else [groups]:
            yield event, group


def _claude_hooks(event: str, group: Any, source: str) -> Iterator[Hook | str]:
    """Each hook of a group, or why it is not used."""
    if event not in EVENTS:
        yield "unknown event; its hooks are ignored."
        return
    if event in FUTURE_HOOK_EVENTS:
        yield "is not available yet: ba starts no sub-agents; its hooks are ignored."
        return
    match group:
        case {"hooks": list(), **rest}:
            entries: Any = group["hooks"]
            matcher = rest.get("matcher") or ""
        case _:
            yield "expected a group with hooks; ignored."
            return
    trouble = _trouble(matcher) if isinstance(matcher, str) else "the matcher is not text; its hooks are ignored."
    if trouble:
        yield trouble
        return
    for entry in cast("list[Any]", entries):
        match entry:
            case {"type": "command", "command": str(command), **rest} if command.strip():
                yield Hook(EVENTS[event], command, str(matcher), _seconds(rest.get("timeout")), source)
            case {"type": str(kind)} if kind != "command":
                yield f"hooks of type {kind[:20]!r} are not supported; ignored."
            case _:
                yield "a hook without a command; ignored."


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return DEFAULT_SECONDS
    return min(float(value), MAX_SECONDS)


def _trouble(matcher: str) -> str:
    if matcher in {"", "*"} or _NAMES.fullmatch(matcher):
        return ""
    try:
        re.compile(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return f"the matcher {matcher[:60]!r} is not a valid regular expression ({error}); its hooks are ignored."
    return ""
