"""The user's own tools: found, declared, run in worker processes. May import what tools may."""
