"""Agents that people describe in files, and teams of them: the bus, workers, what members share and lend. May import
core, settings, ingress and resources."""
