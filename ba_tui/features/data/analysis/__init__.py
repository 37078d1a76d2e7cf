"""Data analysis: datasets, SQL results and their engine, in a helper process, and where the figures of an answer come
from. May import the floors below, no sibling.

The public face: ``engine.Analysis`` (the client), ``values`` (what it returns), ``errors`` and ``card`` (a profile as
text). The package ``engine_process`` runs in the process alone; nothing else imports it, or duckdb. ``figures`` is
pure.
"""
