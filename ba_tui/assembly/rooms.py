"""What each room brings: tools that join, shares of the context report, checks. A new room adds a value here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from ba_tui.core.ports.rooms import MarkedShare, RoomContribution, ToolSource
from ba_tui.permissions.trust.grants import Trust
from ba_tui.planning.workflows import flow_folders
from ba_tui.resources import Places, bundled, project_root
from ba_tui.settings import Loaded
from ba_tui.skills.activation import MARK
from ba_tui.skills.active import active_skills
from ba_tui.skills.prompt import SkillNotes
from ba_tui.tools.registry import Registry
from ba_tui.tools.session import GuardedTools
from ba_tui.tools.workflows import Workflows


def session_rooms(
    tools: GuardedTools, notes: SkillNotes, where: Places, trusted: Path | None
) -> tuple[RoomContribution, ...]:
    """For one session; ``trusted`` is the root of its project if the person trusts it."""
    folders, read = flow_folders(bundled("config"), where.config, trusted), notes.skills.catalog.ingress.raw
    workflows = Workflows(folders, read, tools.registry.tools, tools.results)
    return (
        RoomContribution("planning", tools=(ToolSource("workflow", workflows.look),)),
        RoomContribution("analysis", shares=tools.data.shares),
        RoomContribution("skills", shares=(MarkedShare("Skills", MARK, notes.catalogue, active_skills),)),
    )


def checked_rooms(
    loaded: Loaded, where: Places, folder: Path, tools: Callable[[], AbstractContextManager[Registry]]
) -> tuple[RoomContribution, ...]:
    """For the doctor, in the order in which it reports. No session is begun; ``tools`` are those of ``folder``."""
    from ba_tui.hooks.checks import hook_checks  # noqa: PLC0415 - no session needs them
    from ba_tui.permissions.checks import rule_checks, trust_check  # noqa: PLC0415
    from ba_tui.tools.checks import sandbox_checks, tool_checks  # noqa: PLC0415
    from ba_tui.tools.data.checks import data_checks  # noqa: PLC0415
    from ba_tui.tools.mcp.setup import mcp_checks  # noqa: PLC0415
    from ba_tui.tools.memory.checks import memory_checks  # noqa: PLC0415

    root, trust = project_root(folder), Trust(where)
    rules, sandbox = partial(rule_checks, loaded, where, folder), partial(sandbox_checks, loaded.settings, where)
    return (
        RoomContribution("permissions", checks=(rules, lambda: [trust_check(trust.look(root))], sandbox)),
        RoomContribution("hooks", checks=(partial(hook_checks, loaded.hooks, root, trust.trusted),)),
        RoomContribution("tools", checks=(partial(tool_checks, tools),)),
        RoomContribution("mcp", checks=(partial(mcp_checks, loaded, where, root, trust.trusted),)),
        RoomContribution("analysis", checks=(partial(data_checks, loaded, where, folder),)),
        RoomContribution("memory", checks=(partial(memory_checks, loaded, where, folder),)),
    )
