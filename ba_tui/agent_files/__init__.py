"""Files that describe agents: found, read, checked. Imports the base only."""
