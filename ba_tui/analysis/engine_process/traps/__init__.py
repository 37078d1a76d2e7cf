"""Finds the traps in data and queries that make an analysis wrong, each with a query that proves it."""
