"""The sandbox of one conversation out of the settings, and what it takes to run outside it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ba_tui.core.tool import Tool
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Allow, Ask, Deny, Policy
from ba_tui.permissions.sandbox import Sandbox
from ba_tui.permissions.sandbox_layout import Reach
from ba_tui.resources import Places, user_home
from ba_tui.settings import Settings
from ba_tui.tools.limits import GIGABYTE, Limits

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
