"""Commands of the person's own that run on events. May import core, settings and resources only."""
