"""Tool calls that a model writes as text: read out of its replies, and written into its prompt.

May import core, resources and the modules of providers beside it; only json_dialects imports the JSON-repair library.
"""
