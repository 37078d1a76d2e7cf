"""Names of the files that coding assistants load as instructions or as memory.

One list: ba reads these files, and no tool writes one of them without a question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

ForeignAssistant: TypeAlias = Literal["gemini", "cursor"]
"""Assistants whose files are read only when the user wants it."""
OVERRIDE, AGENTS = "AGENTS.override.md", "AGENTS.md"
LOADED = (OVERRIDE, AGENTS, "CLAUDE.md", ".claude/CLAUDE.md", "BA.md", "CLAUDE.local.md")
"""What ba reads in a folder of the project, in this order."""
RULES = (".claude/rules", ".md")
"""The folder of rules and the suffix of its files."""
FOREIGN: Mapping[ForeignAssistant, tuple[Sequence[str], tuple[str, str]]] = {
    "gemini": (("GEMINI.md",), ("", "")),
    "cursor": ((".cursorrules",), (".cursor/rules", ".mdc")),
}
"""By assistant, the files and the folder of rules with their suffix."""
OTHERS = (
    "MEMORY.md", "AGENT.md", "QWEN.md", "CRUSH.md", "WARP.md", ".windsurfrules", ".clinerules", ".roorules",
    ".goosehints",
)  # fmt: skip
"""Memory files, and instruction files that only other assistants load."""
TAILS = (".github/copilot-instructions.md", ".github/instructions/**", ".clinerules/**")
"""Ends of the paths of instruction files whose folder tells what they are."""
NAMES = frozenset({
    *(name for name in LOADED if "/" not in name),
    *(name for files, _ in FOREIGN.values() for name in files),
    *OTHERS,
})  # fmt: skip
"""File names that mean instructions or memory in any folder."""
RULE_FOLDERS = (RULES, *(place for _, place in FOREIGN.values() if place[0]))
LARGEST = 192_000
"""Bytes of one instruction file that are read."""
