"""The features of ba, in the order in which they open, list tools and hear events. They close in reverse order.

To add one, add its value here: nothing else of the base names a feature. Features import the base, never each other.
"""

from ba_tui.feature import Feature
from ba_tui.features.agents.feature import AGENTS
from ba_tui.features.data.feature import DATA
from ba_tui.features.mcp.feature import MCP
from ba_tui.features.memory.feature import MEMORY
from ba_tui.features.plans.feature import PLANS
from ba_tui.features.teams.feature import TEAMS

FEATURES: tuple[Feature, ...] = (DATA, MEMORY, MCP, AGENTS, PLANS, TEAMS)
