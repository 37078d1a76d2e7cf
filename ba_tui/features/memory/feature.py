"""Memory across sessions: what is recalled, proposed and stored."""

from ba_tui.feature import Feature

MEMORY = Feature(
    "memory", "ba_tui.features.memory.session:open_memory", checks="ba_tui.features.memory.checks:memory_checks"
)
