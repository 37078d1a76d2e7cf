"""Sub-agents: agent files, background agents, and copies of the project that they work in."""

from ba_tui.feature import Feature

AGENTS = Feature("agents", "ba_tui.features.agents.session:open_agents")
