"""Commands about what the conversation has: its tools, skills and shells, and what can be mentioned in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.mcp import McpServers
from ba_tui.core.ports.mentions import Mentions, Weight
from ba_tui.faces.tui.acts.port import Actions, Room, SessionActions
from ba_tui.faces.tui.commands import SlashCommand
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.panes import ShellCount
from ba_tui.faces.tui.transcript.records import ToolRow

T = TypeVar("T")


def inventory_of(chat: SessionActions) -> Inventory:
    """Return what the open session has. Raises UsageError until there is one."""
    return chat.session.live[1].inventory


def needed(part: T | None, why: str, hint: str = "") -> T:
    """Return ``part`` of a session. Raises UsageError, with ``why`` and ``hint``, when the session has none."""
    if part is None:
        raise UsageError(why, hint)
    return part


def tools(chat: Actions, __: str) -> None:
    from ba_tui.faces.tui.screens.tools import ToolBrowser  # noqa: PLC0415 - most runs never show it

    found = inventory_of(chat).tools
    hint = "/context shows which tools the model sees."
    chat.ba.push_screen(ToolBrowser(needed(found, "This session has no list of tools.", hint)))


def skills(chat: Actions, __: str) -> None:
    from ba_tui.faces.tui.screens.skills import SkillBrowser  # noqa: PLC0415 - most runs never show it

    chat.ba.push_screen(SkillBrowser(needed(inventory_of(chat).skills, "This session has no skills.")))


def mcp(chat: Actions, __: str) -> None:
    from ba_tui.faces.tui.screens.mcp.browser import ServerBrowser  # noqa: PLC0415 - most runs never show it

    chat.ba.push_screen(
        ServerBrowser(needed(inventory_of(chat).feature(McpServers), "This session has no MCP servers."))
    )


def shells(chat: Actions, __: str) -> None:
    from ba_tui.faces.tui.screens.shells import ShellList  # noqa: PLC0415 - most runs never show it

    inventory = inventory_of(chat)
    jobs = needed(inventory.jobs, "This session can't run commands in the background.")
    chat.ba.push_screen(ShellList(jobs, inventory.results))


def background(chat: Actions, _: str) -> None:
    if not detach(chat):
        raise UsageError("No command is running.")


def detach(chat: Actions) -> bool:
    """Move the newest command that a call waits for to the background; False when there is none."""
    conversation = chat.session.conversation
    jobs = conversation.inventory.jobs if conversation and chat.turns.running.newest else None
    if jobs is None:
        return False
    for record in reversed(chat.transcript.records):
        if isinstance(record, ToolRow) and record.state == "running" and jobs.detach(record.call_id):
            chat.activity.hint("Moved to the background. /shells lists background commands.")
            return True
    return False


def mentions(chat: SessionActions) -> Mentions | None:
    conversation = chat.session.conversation
    return conversation.inventory.mentions if conversation else None


def weight_in_words(weights: Sequence[Weight]) -> str:
    """``+2.1k tokens: a.csv 1.9k, f.py:10-40 200``; empty for no weights."""
    if not weights:
        return ""
    total = sum(weight.tokens for weight in weights)
    parts = [f"{weight.name}{_weight(weight)}" for weight in weights]
    return f"+{short_count(total)} tokens: {', '.join(parts)}"


def _weight(weight: Weight) -> str:
    return f": {weight.trouble}" if weight.trouble else f" {short_count(weight.tokens)}"


TOOLS = Room({SlashCommand("tools", "View tools and switch them on or off"): tools})
SKILLS = Room({SlashCommand("skills", "View, start, end and check skills"): skills})
MCP = Room({SlashCommand("mcp", "View MCP servers, their tools and logins"): mcp})
SHELLS = Room(
    {
        SlashCommand("shells", "List background commands", aliases=("tasks", "bashes", "ps")): shells,
        SlashCommand("background", "Move command to background", keys="ctrl+b"): background,
    },
    panes=(ShellCount,),
)
