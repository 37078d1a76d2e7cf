"""Finds the traps in data and queries, each with a query that proves it. May import the helper's database and values.

The public face: ``datasets.findings_of_dataset`` and ``queries.findings_of_query``.
"""
