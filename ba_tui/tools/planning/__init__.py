"""Plans of a session: agreed on, carried out with tools and agents, answered. May import planning, memory's tools and
what all tools may."""
