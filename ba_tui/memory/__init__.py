"""Memory across sessions: notes in a readable log, indexes made from it, retrieval, facts to propose.

May import core, resources, sqlite_cache and resilience only. Only ``embedding``, ``nearest`` and ``likeness`` import
numpy, and only when a vector is needed.
"""
