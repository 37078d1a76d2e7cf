"""Sessions on disk: the journal, its lock, lists, forks and exports. May import core and resources only."""
