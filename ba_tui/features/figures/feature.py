"""Figures: where each number of an answer comes from."""

from ba_tui.command import AppParts, Command
from ba_tui.feature import Feature

FIGURES = Feature(
    "figures",
    "ba_tui.features.figures.session:open_figures",
    app=AppParts(
        commands=(
            Command(
                "verify",
                "Show where each figure of an answer comes from",
                "ba_tui.features.figures.tui.commands:verify",
                aliases=("figures",),
                cli="ba_tui.features.figures.cli:verify",
                help="Check the figures of answers against tool results.",
            ),
            Command(
                "why",
                "Show what led to the newest answer",
                "ba_tui.features.figures.tui.commands:why",
                "[short|json|audit]",
            ),
        ),
        openers=("ba_tui.features.figures.tui.commands:open_record",),
    ),
)
