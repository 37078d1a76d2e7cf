"""Data analysis, and where the numbers of an answer come from. May import the floors below, no sibling."""
