"""Work that is shared out, as values: plans, agents, teams. May import what ``core.results`` may; never events."""
