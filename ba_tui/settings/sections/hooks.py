"""The person's commands on events."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Literal

from ba_tui.core.text.wording import nearest
from ba_tui.core.values import frozen
from ba_tui.settings.fields import Seconds, about
from ba_tui.settings.sections.group import SettingsGroup

HOOK_EVENTS = {
    "session_start": "SessionStart",
    "session_end": "SessionEnd",
    "user_prompt": "UserPromptSubmit",
    "pre_tool": "PreToolUse",
    "permission_request": "PermissionRequest",
    "post_tool": "PostToolUse",
    "post_tool_failure": "PostToolUseFailure",
    "pre_compact": "PreCompact",
    "notification": "Notification",
    "stop": "Stop",
    "subagent_start": "SubagentStart",
    "subagent_stop": "SubagentStop",
}
"""What hooks can be set for: our name, and the one by which Claude Code calls the same."""


def hook_event(name: str) -> str:
    known = [*HOOK_EVENTS, *HOOK_EVENTS.values()]
    if name not in known:
        close = nearest(name, known)
        raise ValueError(f"expected an event{f'; did you mean {close}?' if close else ' such as pre_tool'}")
    return name


@frozen
class HookSetting(SettingsGroup):
    """One command of a hook, or one question to the small model."""

    command: str = field(default="", metadata=about("A shell command; it reads JSON on standard input."))
    type: Literal["command", "prompt"] = field(default="command", metadata=about("What runs: a command or a prompt."))
    prompt: str = field(
        default="", metadata=about("A condition that the small model checks; $ARGUMENTS stands for the JSON.")
    )
    timeout: Seconds = field(default=60, metadata=about("Timeout in seconds."))

    def __post_init__(self) -> None:
        if not getattr(self, self.type).strip():
            raise ValueError(f"expected a {self.type}")
        if self.command and self.prompt:
            raise ValueError("expected a command or a prompt, not both")


@frozen
class HookGroup(SettingsGroup):
    """Commands for the tools that `matcher` names; for one command, `command` may stand here itself."""

    matcher: str = field(
        default="", metadata=about("Tools it applies to: names separated by |, or a regular expression; empty for all.")
    )
    hooks: tuple[HookSetting, ...] = field(default=(), metadata=about("The commands."))
    command: str = field(default="", metadata=about("The command to run."))
    timeout: Seconds = field(default=60, metadata=about("Timeout in seconds."))

    def __post_init__(self) -> None:
        if not self.command.strip() and not self.hooks:
            raise ValueError("expected a command")
        try:
            re.compile("" if self.matcher == "*" else self.matcher)
        except (re.error, RecursionError, OverflowError):
            raise ValueError("expected a valid regular expression as matcher") from None
