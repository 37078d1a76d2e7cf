"""One conversation and what a program is told about it: its tools, commands, skills and model."""

from __future__ import annotations

from collections.abc import Mapping

from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import BaError
from ba_tui.core.ports.mcp import McpServers, ServerPhase
from ba_tui.core.provider import ModelInfo
from ba_tui.faces.claude.lines import ClaudeLines
from ba_tui.faces.claude.pieces import Line
from ba_tui.faces.claude.words import ToolWords

_SHOWN = {"core", "on", "deferred"}
_ACTIVE = {"active", "waiting", "on"}
_PHASES: Mapping[ServerPhase, str] = {
    "off": "disabled",
    "untrusted": "disabled",
    "idle": "pending",
    "connecting": "pending",
    "waiting": "pending",
    "ready": "connected",
    "login": "needs-auth",
    "failed": "failed",
}


class Talk:
    """A conversation and its lines."""

    def __init__(self, conversation: Conversation, lines: ClaudeLines) -> None:
        self.conversation = conversation
        self.lines = lines
        self.first_model = conversation.model
        """The model that ``set_model`` without a name goes back to."""

    def tools(self, words: ToolWords) -> list[str]:
        """The tools that the model may call, by Claude Code's names. May read files."""
        tools = self.conversation.inventory.tools
        return (
            list(dict.fromkeys(words.name(each.name) for each in tools.lines() if each.state in _SHOWN))
            if tools
            else []
        )

    def servers(self) -> list[Line]:
        """The MCP servers with their states, by Claude Code's words."""
        servers = self.conversation.inventory.feature(McpServers)
        states = servers.listed() if servers else ()
        return [{"name": state.name, "status": _PHASES[state.phase]} for state in states]

    def skills(self) -> list[str]:
        """The ids of the skills that can be started. Reads files."""
        skills = self.conversation.inventory.skills
        return [each.id for each in skills.lines() if each.state in _ACTIVE] if skills else []

    def commands(self) -> list[Line]:
        """The person's commands and the skills, as ``initialize`` lists them. Reads files."""
        inventory = self.conversation.inventory
        own = inventory.commands.lines() if inventory.commands else ()
        told = [
            {"name": each.name, "description": each.description, "argumentHint": each.hint}
            for each in own
            if not each.trouble
        ]
        skills = inventory.skills.lines() if inventory.skills else ()
        told += [
            {"name": each.id, "description": each.description, "argumentHint": ""}
            for each in skills
            if each.state in _ACTIVE
        ]
        return told

    def model(self) -> ModelInfo | None:
        """Facts of the model of the session; None where they are not known."""
        try:
            return self.conversation.model_info()
        except BaError:
            return None
