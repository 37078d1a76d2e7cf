"""Names of files that coding assistants load as instructions or memory.

ba reads these files, and no tool writes one of them without a question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

ForeignAssistant: TypeAlias = Literal["gemini", "cursor"]
"""Assistants whose files are read only on request of the user."""
OVERRIDE, AGENTS = "AGENTS.override.md", "AGENTS.md"
LOADED = (OVERRIDE, AGENTS, "CLAUDE.md", ".claude/CLAUDE.md", "BA.md", "CLAUDE.local.md")
"""Files that ba reads in a project folder, in this order."""
RULES = (".claude/rules", ".md")
"""The rules folder and the suffix of its files."""
FOREIGN: Mapping[ForeignAssistant, tuple[Sequence[str], tuple[str, str]]] = {
    "gemini": (("GEMINI.md",), ("", "")),
    "cursor": ((".cursorrules",), (".cursor/rules", ".mdc")),
}
"""By assistant: its files, and its rules folder with the suffix."""
OTHERS = (
    "MEMORY.md", "AGENT.md", "QWEN.md", "CRUSH.md", "WARP.md", ".windsurfrules", ".clinerules", ".roorules",
    ".goosehints",
)  # fmt: skip
"""Memory files, and instruction files of other assistants only."""
TAILS = (".github/copilot-instructions.md", ".github/instructions/**", ".clinerules/**")
"""Path ends of instruction files that are recognised by their folder."""
NAMES = frozenset({
    *(name for name in LOADED if "/" not in name),
    *(name for files, _ in FOREIGN.values() for name in files),
    *OTHERS,
})  # fmt: skip
"""File names that mean instructions or memory in any folder."""
RULE_FOLDERS = (RULES, *(place for _, place in FOREIGN.values() if place[0]))
LARGEST = 192_000
"""Maximum number of bytes read from an instruction file."""
