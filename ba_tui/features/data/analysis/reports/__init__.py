"""Reports that run again: the results of a session with their queries and data, as a script, notebook or document.

Pure: values in, text out. May import core and plotting only. ``rerun`` is copied beside what is exported and imports
duckdb alone.
"""
