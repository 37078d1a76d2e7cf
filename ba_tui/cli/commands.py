"""Which commands there are, and in which files. Their order is that of the help."""

from __future__ import annotations

from ba_tui.core.values import frozen


@frozen
class CliCommand:
    """A command in the file of ``module``: its ``app`` of sub-commands, or the function ``name``."""

    module: str
    name: str = "app"
    help: str | None = None
    hidden: bool = False


COMMANDS = {
    "chat": CliCommand("chat", "chat", hidden=True),
    "demo": CliCommand("demo", "demo", "Take the guided tour: real tools, sample data."),
    "guide": CliCommand("guide", "guide"),
    "run": CliCommand("run", "run"),
    "plan": CliCommand("plans.commands", help="Plan a goal and carry it out; list, show, export and continue plans."),
    "data": CliCommand("data.application", help="Profile, query, chart and check data files, without a model."),
    "sessions": CliCommand("sessions", help="List, show, search, export, import, fork, compare and delete sessions."),
    "memory": CliCommand("memory.commands", help="List, search, edit, forget and export what ba remembers."),
    "config": CliCommand("config", help="Show, check and change settings."),
    "permissions": CliCommand("permissions", help="List, check, add and remove permission rules."),
    "hooks": CliCommand("hooks", help="List the commands that run on events."),
    "audit": CliCommand("audit", "audit"),
    "tools": CliCommand("tools", help="List, show, try and write tools."),
    "skills": CliCommand("skills", help="List, show, check, install, write and remove skills."),
    "mcp": CliCommand("mcp.application", help="Add, list, test, log in to and remove MCP servers."),
    "agents": CliCommand("agents", help="List, show and check the agents that files describe."),
    "team": CliCommand("teams.application", help="Have a team of agents work on a goal; list the roles."),
    "worker": CliCommand("teams.worker", "worker"),
    "tokens": CliCommand("tokens", "tokens"),
    "migrate": CliCommand("migrate", "migrate"),
    "verify": CliCommand("verify", "verify"),
    "report": CliCommand("reports.commands", help="Run exported reports again, with the same or other files."),
    "trust": CliCommand("trust", "trust"),
    "doctor": CliCommand("doctor", "doctor"),
}
