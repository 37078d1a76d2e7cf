"""Hooks, with their events and matchers, read from settings and from Claude Code's settings files.

Nothing runs here. ``features/hooks`` runs them; the base needs their commands before a session opens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.resources import user_home
from ba_tui.settings import HOOK_EVENTS, HookLine, HookSetting
from ba_tui.settings.claude_files import ClaudeFile, claude_paths, read_claude_file
from ba_tui.settings.tool_names import ALIASES, own_names

DEFAULT_SECONDS = 60.0
EVENTS: Mapping[str, str] = {name: ours for ours, theirs in HOOK_EVENTS.items() for name in (ours, theirs)}
"""ba's names of events by every name, ba's and Claude Code's."""
Dialect: TypeAlias = Literal["ba", "claude"]

_NAMES = regex(r"[\w |,-]*")
_WORD = regex(r"\w+")


@frozen
class Hook:
    """A hook. ``event``: ba's name of its event. ``source``: file and line, for the user.

    ``for_claude``: the file uses Claude Code's name of the event. ``prompt``: a question to the small model, instead of
    a command. ``args``: the command is a program that is started with these and without a shell. ``condition``: see
    ``may_apply`` of its runner. ``background``: the agent does not wait for it. ``once``: it runs once in a session.
    """

    event: str
    command: str
    matcher: str = ""
    timeout: float = DEFAULT_SECONDS
    source: str = ""
    for_claude: bool = False
    prompt: str = ""
    args: tuple[str, ...] | None = None
    condition: str = ""
    background: bool = False
    once: bool = False

    @property
    def dialect(self) -> Dialect:
        """Return whose names of tools and arguments the hook uses, by its matcher, else by its event's name."""
        words = set(_WORD.findall(self.matcher))
        if not words.isdisjoint(own_names()):
            return "claude"
        if not words.isdisjoint(ALIASES):
            return "ba"
        return "claude" if self.for_claude else "ba"

    def matches(self, names: Sequence[str]) -> bool:
        """Return whether the matcher accepts one of ``names``; without names it accepts anything."""
        if not names or self.matcher in {"", "*"}:
            return True
        if _NAMES.fullmatch(self.matcher):
            wanted = {name.strip() for name in re.split(r"[|,]", self.matcher)}
            return not wanted.isdisjoint(names)
        return any(re.search(self.matcher, name) for name in names)

    @property
    def text(self) -> str:
        """Return the command as written, or the prompt."""
        return " ".join((self.command, *(self.args or ()))) or self.prompt

    @property
    def label(self) -> str:
        """Return a short name for messages."""
        return f"The hook “{one_line(self.text, 60)}”"


def read_hooks(lines: Sequence[HookLine]) -> list[Hook]:
    """Return the hooks of the settings, in their order."""
    found: list[Hook] = []
    for line in lines:
        group, event = line.group, EVENTS[line.event]
        given = list(group.hooks)
        if group.command:
            given.append(HookSetting(command=group.command, timeout=group.timeout))
        found += [
            Hook(event, each.command, group.matcher, each.timeout, line.source, line.event != event, each.prompt)
            for each in given
        ]
    return found


def matcher_problem(matcher: str) -> str:
    """Return why ``matcher`` is invalid; empty when it is valid."""
    if matcher in {"", "*"} or _NAMES.fullmatch(matcher):
        return ""
    try:
        re.compile(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return f"the matcher {matcher[:60]!r} is not a regular expression ({error}); its hooks run for everything."
    return ""


MAX_SECONDS = 600.0
CLAUDE = ".claude"


class FoundHooks(NamedTuple):
    """Hooks, and a line for each that can't be used."""

    hooks: list[Hook]
    problems: list[str]


def found_hooks(lines: Sequence[HookLine], root: Path, trusted: Callable[[Path], bool]) -> FoundHooks:
    """Return the hooks that apply in the project ``root``, and the problems of others. Claude Code's files are read
    from the user's home, and from the project if it is ``trusted``."""
    home = user_home()
    places = [folder for folder in dict.fromkeys((home, root)) if folder and (folder / CLAUDE).is_dir()]
    if not lines and not places:
        return FoundHooks([], [])
    found, problems = read_hooks(lines), list[str]()
    paths = [each for each in claude_paths(root) if not each[1] or trusted(root)] if places else []
    files = [(file, project) for path, project in paths if (file := read_claude_file(path, root if project else None))]
    # A project can turn off its own hooks only: the user's hooks may guard against the project.
    off = {project for file, project in files if hooks_off(file)}
    for file, project in files:
        if off.isdisjoint({project, False}):
            more, wrong = claude_hooks(file)
            found += more
            problems += wrong
    return FoundHooks(found, problems)


def read_claude(path: Path, root: Path | None = None) -> FoundHooks:
    """Read the hooks in a settings file of Claude Code, of the project ``root`` or of the user; none without a file."""
    file = read_claude_file(path, root)
    return claude_hooks(file) if file else FoundHooks([], [])


def claude_hooks(file: ClaudeFile) -> FoundHooks:
    """Return the hooks in ``file`` and its problems, one line each."""
    if file.problem:
        return FoundHooks([], [f"{file.path}: {file.problem}; its hooks are ignored."])
    if hooks_off(file):
        return FoundHooks([], [])
    found: list[Hook] = []
    problems: list[str] = []
    for event, group in _groups(file.data.get("hooks")):
        for hook in _hooks(event, group, str(file.path)):
            if isinstance(hook, Hook):
                found.append(hook)
            else:
                problems.append(f"{file.path}: {event}: {hook}")
    return FoundHooks(found, problems)


def hooks_off(file: ClaudeFile) -> bool:
    """Return whether ``file`` turns hooks off."""
    return file.data.get("disableAllHooks") is True


def _groups(value: Any) -> Iterator[tuple[str, Any]]:
    events = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    for event, groups in events.items():
        for group in cast("list[Any]", groups) if isinstance(groups, list) else [groups]:
            yield event, group


def _hooks(event: str, group: Any, source: str) -> Iterator[Hook | str]:
    """Yield each hook of a group, or its problem."""
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
    """Return ``hook`` with the fields that commands and prompts share."""
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
