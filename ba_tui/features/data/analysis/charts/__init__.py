"""Charts of tables: which one fits the columns, what it says in words, and the same as a picture. May import what the
analysis may.

The helper computes what is drawn (``engine_process.charting``); ``ba_tui.plotting`` draws it as text.
"""
