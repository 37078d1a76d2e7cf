"""Data: the engine, its sources and Python, the grid, charts and reports."""

from ba_tui.command import AppParts, Command
from ba_tui.feature import Feature

DATA = Feature(
    "data",
    "ba_tui.features.data.session:open_data",
    "ba_tui.features.data.checks:data_checks",
    app=AppParts(
        commands=(
            Command(
                "data",
                "View datasets, results and their rows",
                "ba_tui.features.data.tui:data",
                "[table or file]",
                keys="f4",
                cli="ba_tui.features.data.data_cli:app",
                help="Profile, query, chart and check data files, without a model.",
            ),
            Command(
                "report",
                "Write answers and results as a report",
                "ba_tui.features.data.tui:report",
                "[file.html|md|ipynb|py]",
                cli="ba_tui.features.data.report_cli:app",
                help="Run exported reports again, with the same or other files.",
            ),
            Command(
                "python",
                "View Python's variables and files",
                "ba_tui.features.data.tui:python",
                "[reset | save FILE [PATH]]",
            ),
            Command(
                "unmask",
                "Let models see a column that looks personal",
                "ba_tui.features.data.tui:unmask",
                "<table.column>",
            ),
        ),
    ),
)
