"""What Claude Code calls our tools, for hooks and front matter that were written for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

ALIASES: Mapping[str, tuple[str, ...]] = {
    "shell": ("Bash",),
    "shell_output": ("BashOutput",),
    "shell_kill": ("KillShell", "KillBash"),
    "read_file": ("Read", "NotebookRead"),
    "write_file": ("Write",),
    "edit_file": ("Edit", "MultiEdit"),
    "apply_patch": ("Edit", "MultiEdit", "Write"),
    "apply_changes": ("Edit", "MultiEdit", "Write"),
    "list_files": ("LS",),
    "glob": ("Glob",),
    "grep": ("Grep",),
    "web_fetch": ("WebFetch",),
    "web_search": ("WebSearch",),
    "todo_write": ("TodoWrite",),
    "ask_user": ("AskUserQuestion",),
    "activate_skill": ("Skill",),
    "delegate_task": ("Task", "Agent"),
    "remember": ("Remember",),
    "forget": ("Forget",),
}
"""By our name, those of Claude Code for what the tool does."""
AGENTS = {"general-purpose": "general", "plan": "explore"}
"""What Claude Code calls agents that come with it, in lower case, and ours that do the same."""


def agent_name(name: str) -> str:
    """Our name of the agent that is called so; names of agents have no capitals."""
    folded = name.strip().casefold()
    return AGENTS.get(folded, folded)


def names_of(tool: str) -> tuple[str, ...]:
    """What a matcher may call ``tool``: our name and Claude Code's."""
    return (tool, *ALIASES.get(tool, ()))


@cache
def own_names() -> Mapping[str, str]:
    """Our names of tools by Claude Code's."""
    found: dict[str, str] = {}
    for ours, theirs in ALIASES.items():
        for name in theirs:
            found.setdefault(name, ours)
    return found


def own_name(name: str) -> str:
    """Our name of the tool that Claude Code calls so, however it is capitalized; ``name`` itself for any other."""
    return own_names().get(name) or _folded().get(name.casefold(), name)


@cache
def _folded() -> Mapping[str, str]:
    return {name.casefold(): ours for name, ours in own_names().items()}
