"""Agents that people describe in files: found, read and listed. May import core, settings, ingress and resources."""
