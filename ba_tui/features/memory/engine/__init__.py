"""Memory across sessions: notes in a readable log, indexes made from it, retrieval, facts to propose.

May import core, settings, resources, sqlite_cache, resilience and processes only. Only ``embedding`` and
``store_process`` import numpy, and only when a vector is needed; chromadb is imported in ``store_process`` alone, which
runs in a helper process.
"""
