"""Memory across sessions: what is recalled, proposed and stored."""

from ba_tui.command import AppParts, Command
from ba_tui.feature import Feature

MEMORY = Feature(
    "memory",
    "ba_tui.features.memory.session:open_memory",
    "ba_tui.features.memory.checks:memory_checks",
    app=AppParts(
        commands=(
            Command(
                "memory",
                "Search, edit and forget what is remembered; instruction files",
                "ba_tui.features.memory.tui.commands:memory",
                "[words|files|undo]",
                choices=(
                    ("files", "Show and edit AGENTS.md and other instruction files"),
                    ("undo", "Take back the newest change of memory"),
                ),
                cli="ba_tui.features.memory.cli:app",
                help="List, search, edit, forget and export what ba remembers.",
            ),
            Command(
                "remember",
                "Remember a text, in this project or everywhere; the same as # text",
                "ba_tui.features.memory.tui.commands:remember",
                "<text>",
            ),
            Command(
                "forget",
                "Find something in memory, and forget it",
                "ba_tui.features.memory.tui.commands:forget",
                "[words]",
            ),
            Command(
                "save-memory",
                "Remember what is proposed above the input",
                "ba_tui.features.memory.tui.commands:save",
                keys="ctrl+s",
                slash=False,
            ),
            Command(
                "drop-memory",
                "Drop what is proposed above the input",
                "ba_tui.features.memory.tui.commands:drop",
                slash=False,
            ),
        ),
        panes=("ba_tui.features.memory.tui.commands:MemoryPane",),
        openers=("ba_tui.features.memory.tui.commands:open_record",),
    ),
)
