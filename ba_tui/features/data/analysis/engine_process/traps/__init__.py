"""Detection of traps in data and queries; each finding has a query that proves it.

Entry points: ``datasets.findings_of_dataset`` and ``queries.findings_of_query``. May import core and the engine's
database.
"""
