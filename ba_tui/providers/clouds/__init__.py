"""Models on clouds. May import the files of providers beside it, and core.

needs (what each cloud needs; light), claude (loads Anthropic's SDK), azure (loads none).
"""
