"""What a hook is, which events and tools it is for, and those of the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.settings import HOOK_EVENTS, HookLine, HookSetting
from ba_tui.settings.tool_aliases import ALIASES, own_names

DEFAULT_SECONDS = 60.0
EVENTS: Mapping[str, str] = {name: ours for ours, theirs in HOOK_EVENTS.items() for name in (ours, theirs)}
"""Every name of an event, ours and Claude Code's, to ours."""
Dialect: TypeAlias = Literal["ba", "claude"]

_NAMES = regex(r"[\w |,-]*")
_WORD = regex(r"\w+")


@frozen
class Hook:
    """``event`` is our name of it; ``source`` the file and line, for people.

    ``for_claude``: the event stands there by Claude Code's name. ``prompt``: asked of the small model; then there is no
    command. ``args``: the command is a program, started with these and without a shell. ``condition``: see conditions.
    ``background``: nothing waits for it. ``once``: it runs once in a session.
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
        """Whose names of tools and arguments the hook reads and writes: those of its matcher, else of its event."""
        words = set(_WORD.findall(self.matcher))
        if not words.isdisjoint(own_names()):
            return "claude"
        if not words.isdisjoint(ALIASES):
            return "ba"
        return "claude" if self.for_claude else "ba"

    def matches(self, names: Sequence[str]) -> bool:
        """Whether it is meant for something with one of ``names``; no names: for anything."""
        if not names or self.matcher in {"", "*"}:
            return True
        if _NAMES.fullmatch(self.matcher):
            wanted = {name.strip() for name in re.split(r"[|,]", self.matcher)}
            return not wanted.isdisjoint(names)
        return any(re.search(self.matcher, name) for name in names)

    @property
    def text(self) -> str:
        """The command as it was written, or the prompt."""
        return " ".join((self.command, *(self.args or ()))) or self.prompt

    @property
    def label(self) -> str:
        """A few words that name it in a message."""
        return f"The hook “{one_line(self.text, 60)}”"


def read_hooks(lines: Sequence[HookLine]) -> list[Hook]:
    """Those of the settings, in their order."""
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
    """Why ``matcher`` can't be used; empty when it can."""
    if matcher in {"", "*"} or _NAMES.fullmatch(matcher):
        return ""
    try:
        re.compile(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return f"the matcher {matcher[:60]!r} is not a regular expression ({error}); its hooks run for everything."
    return ""
