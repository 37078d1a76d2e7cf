"""Hooks: the user's commands and prompts that run on events."""

from ba_tui.command import AppParts, Command
from ba_tui.feature import Feature

HOOKS = Feature(
    "hooks",
    "ba_tui.features.hooks.session:open_hooks",
    "ba_tui.features.hooks.session:hook_checks",
    app=AppParts(
        commands=(
            Command(
                "hooks",
                "List hooks and their results",
                "ba_tui.features.hooks.tui:show_hooks",
                cli="ba_tui.features.hooks.cli:app",
                help="List the commands that run on events.",
            ),
        )
    ),
)
