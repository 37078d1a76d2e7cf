"""Connections to models, one module for each vendor. May import core, settings, resources and resilience."""
