"""Ports: the protocols and values through which faces use features and the base. May import core only."""
