"""Work that is laid out before it is done: workflows. May import core, settings and resources, never a sibling."""
