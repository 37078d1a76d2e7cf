"""Which commands there are, and in which files. Their order is that of the help."""

from __future__ import annotations

from ba_tui.core.values import frozen


@frozen
class CliCommand:
    """A command in the file of ``module`` below ``ba_tui``: its ``app`` of sub-commands, or the function ``name``."""

    module: str
    name: str = "app"
    help: str | None = None
    hidden: bool = False


COMMANDS = {
    "chat": CliCommand("cli.chat", "chat", hidden=True),
    "demo": CliCommand("cli.demo", "demo", "Take the guided tour: real tools, sample data."),
    "guide": CliCommand("cli.guide", "guide"),
    "run": CliCommand("features.plans.cli.run", "run"),
    "plan": CliCommand(
        "features.plans.cli.commands", help="Plan a goal and carry it out; list, show, export and continue plans."
    ),
    "data": CliCommand(
        "features.data.cli.application", help="Profile, query, chart and check data files, without a model."
    ),
    "sessions": CliCommand(
        "cli.sessions", help="List, show, search, export, import, fork, compare and delete sessions."
    ),
    "memory": CliCommand(
        "features.memory.cli.commands", help="List, search, edit, forget and export what ba remembers."
    ),
    "config": CliCommand("cli.config", help="Show, check and change settings."),
    "permissions": CliCommand("cli.permissions", help="List, check, add and remove permission rules."),
    "hooks": CliCommand("cli.hooks", help="List the commands that run on events."),
    "audit": CliCommand("cli.audit", "audit"),
    "tools": CliCommand("cli.tools", help="List, show, try and write tools."),
    "skills": CliCommand("cli.skills", help="List, show, check, install, write and remove skills."),
    "mcp": CliCommand("features.mcp.cli.application", help="Add, list, test, log in to and remove MCP servers."),
    "agents": CliCommand("cli.agents", help="List, show and check the agents that files describe."),
    "team": CliCommand("features.teams.cli.application", help="Have a team of agents work on a goal; list the roles."),
    "worker": CliCommand("features.teams.cli.worker", "worker"),
    "tokens": CliCommand("cli.tokens", "tokens"),
    "migrate": CliCommand("cli.migrate", "migrate"),
    "verify": CliCommand("features.data.cli.verify", "verify"),
    "report": CliCommand("features.data.cli.report", help="Run exported reports again, with the same or other files."),
    "trust": CliCommand("cli.trust", "trust"),
    "doctor": CliCommand("cli.doctor", "doctor"),
}
