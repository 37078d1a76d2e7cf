"""Sessions on disk: the journal, its lock, lists, forks and exports. May import core, never a sibling or a face."""
