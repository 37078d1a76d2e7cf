"""Compatibility with other assistants: their options, their wire format, and ``ba migrate``."""

from ba_tui.command import AppParts, Command, ShellParts
from ba_tui.feature import Feature
from ba_tui.features.compat import GUESSES

COMPAT = Feature(
    "compat",
    app=AppParts(
        commands=(
            Command(
                "migrate",
                cli="ba_tui.features.compat.migrate:migrate",
                help="Show what Claude Code, Codex and OpenCode left here, and take over their settings.",
            ),
        ),
        guesses=GUESSES,
    ),
    shell=ShellParts(
        translate="ba_tui.features.compat.habits:translated",
        converse="ba_tui.features.compat.printing:converse",
        formats={"claude-stream-json": "ba_tui.features.compat.printing:print_lines"},
    ),
)
