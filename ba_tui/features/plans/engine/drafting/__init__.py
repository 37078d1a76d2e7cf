"""Plans as a model writes them: told how, read, checked, mended; asks nobody. May import what ``planning`` may, and of
``providers`` what reads JSON as models write it."""
