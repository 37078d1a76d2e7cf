"""The features of ba, in the order in which they open, list tools and hear events. They close in reverse order.

To add one, add the name of its value here: nothing else of the base names a feature. Features import the base, never
each other. Names, no imports: helper processes run modules of one feature, and none of them needs the others.
"""

FEATURES = (
    "ba_tui.features.web.feature:WEB",
    "ba_tui.features.data.feature:DATA",
    "ba_tui.features.figures.feature:FIGURES",
    "ba_tui.features.memory.feature:MEMORY",
    "ba_tui.features.mcp.feature:MCP",
    "ba_tui.features.agents.feature:AGENTS",
    "ba_tui.features.plans.feature:PLANS",
    "ba_tui.features.teams.feature:TEAMS",
    "ba_tui.features.compat.feature:COMPAT",
    "ba_tui.features.hooks.feature:HOOKS",
)
