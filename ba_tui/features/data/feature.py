"""Data: the engine, its sources and Python, the grid, charts and reports."""

from ba_tui.feature import Feature

DATA = Feature("data", "ba_tui.features.data.session:open_data", checks="ba_tui.features.data.checks:data_checks")
