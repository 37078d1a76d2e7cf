"""Sub-agents: agent files, background agents, and copies of the project that they work in."""

from ba_tui.command import AppParts, Command
from ba_tui.feature import Feature

AGENTS = Feature(
    "agents",
    "ba_tui.features.agents.session:open_agents",
    app=AppParts(
        commands=(
            Command(
                "agents",
                "List running and ended agents, and agent files",
                "ba_tui.features.agents.tui.commands:agents",
                "[NAME|files]",
                ("agent",),
                "f5",
                choices=(("files", "Search the agents that files describe"),),
                cli="ba_tui.cli.agents:app",
                help="List, show and check the agents that files describe.",
            ),
        ),
        panes=("ba_tui.features.agents.tui.commands:RunningAgents",),
        openers=("ba_tui.features.agents.tui.commands:open_record",),
    ),
)
