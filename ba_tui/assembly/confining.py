"""The sandbox of one conversation out of the settings, and what it takes to run outside it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ba_tui.core.tool import Tool
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.sandbox import Sandbox
from ba_tui.permissions.sandbox_layout import Reach
from ba_tui.permissions.verdicts import Allow, Ask, Deny
from ba_tui.resources import Places, user_home
from ba_tui.settings import Settings
from ba_tui.tools.limits import GIGABYTE, Limits

CURES = {
    "required": "Install bubblewrap (its program is bwrap); until then commands are refused.",
    "auto": "Install bubblewrap (its program is bwrap); until then every command that no rule allows asks.",
}
FORBIDDEN = "The system forbids name spaces: its own package bubblewrap often may make them all the same."
OUTSIDE = "It would run outside the sandbox."


def sandbox_for(settings: Settings, where: Places, workspace: Workspace) -> Sandbox:
    """Nothing is looked for yet; that happens at the first command."""
    commands = settings.commands
    reach = Reach(
        (workspace.root, *workspace.extra),
        commands.write,
        (*commands.read, *(lent.folder for lent in workspace.lent)),
        tuple(dict.fromkeys((where.config, where.data, where.cache, where.state))),
        network=commands.network,
        home=user_home(),
    )
    return Sandbox(reach, settings.sandbox)


def sandbox_report(settings: Settings) -> tuple[Literal["ok", "warn", "fail"], str, str]:
    """For the doctor: how well commands are confined here, in words, and what would mend it."""
    if settings.sandbox == "off":
        return "warn", "off by the settings: commands run with all your rights", "ba config set sandbox auto"
    found = Sandbox(Reach(()), settings.sandbox).found
    troubles = "; ".join(found.troubles)
    forbidden = any(word in troubles.lower() for word in ("uid map", "namespace", "not permitted", "denied"))
    if found.mechanism is None:
        why = f": {troubles}" if troubles else ""
        fix = FORBIDDEN if forbidden else CURES[settings.sandbox]
        return "fail" if settings.sandbox == "required" else "warn", f"nothing confines commands here{why}", fix
    network = "on" if settings.commands.network else "off"
    text = f"{found.mechanism.name} confines commands ({found.mechanism.guards}); their network is {network}"
    if not found.mechanism.separate and sys.platform == "linux":
        return "warn", f"{text}; {troubles or 'there is no bubblewrap'}", FORBIDDEN if forbidden else CURES["auto"]
    return "ok", text, ""


def limits_for(settings: Settings) -> Limits:
    given = settings.commands
    memory, size = int(given.memory_gb * GIGABYTE), int(given.file_size_gb * GIGABYTE)
    return Limits(memory or None, size or None, given.processes or None)


def leaving(policy: Policy, tool: Tool, args: Mapping[str, Any], folder: Path) -> Allow | Deny | Ask:
    """Whether a call may run outside: a rule that allows it means that, a mode that counts on the sandbox does not."""
    verdict = policy.judge(tool, args, folder)
    if isinstance(verdict, Allow) and not verdict.by and policy.mode != "bypass":
        return Ask(OUTSIDE, None, ("runs a command",))
    return verdict


def judge_of(policy: Policy) -> partial[Allow | Deny | Ask]:
    return partial(leaving, policy)
