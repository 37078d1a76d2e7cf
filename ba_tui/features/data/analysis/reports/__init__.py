"""Reports of a session that can run again: scripts, notebooks and documents of its results, queries and data.

``rerun`` is copied into the exported folder, so it imports nothing but duckdb and the standard library.
"""
