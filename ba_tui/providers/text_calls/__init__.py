"""Tool calls that a model writes as text: parsed from its replies, and described in its prompt.

May import core, resources and the modules of providers; only json_dialects imports the JSON-repair library.
"""
