"""The rooms of the screen, in the order in which help and completion list their commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ba_tui.faces.tui import panes, suggesting
from ba_tui.faces.tui.acts import (
    agents,
    compacting,
    data,
    editor,
    figures,
    folders,
    guide,
    inventory,
    memory,
    own_shell,
    plan,
    reports,
    rewind,
    sessions,
    settings,
    team,
    trust,
    view,
)
from ba_tui.faces.tui.acts.port import Act, Room
from ba_tui.faces.tui.commands import SlashCommand

ROOMS: Sequence[Room] = (
    view.HELP,
    guide.GUIDE,
    panes.QUESTIONS,
    suggesting.SUGGESTIONS,
    sessions.SESSIONS,
    rewind.REWINDING,
    sessions.RECORD,
    reports.TRANSCRIPT,
    settings.MODELS,
    settings.PERMISSIONS,
    plan.PLANS,
    trust.TRUST,
    folders.FOLDERS,
    settings.CONTEXT,
    reports.STATUS,
    compacting.COMPACTION,
    data.DATA,
    figures.FIGURES,
    inventory.TOOLS,
    inventory.SKILLS,
    agents.AGENTS,
    team.TEAMS,
    inventory.MCP,
    inventory.SHELLS,
    own_shell.SHELL,
    settings.THEMES,
    settings.SETUP,
    memory.MEMORY,
    reports.SETTINGS,
    view.PANELS,
    editor.EDITOR,
    view.SCREEN,
    sessions.LEAVING,
)
ACTS: Mapping[SlashCommand, Act] = {row: act for room in ROOMS for row, act in room.commands.items()}
COMMANDS: Sequence[SlashCommand] = sorted(ACTS, key=lambda row: not row.slash)
"""ba's own commands; those that are only a key come last."""
