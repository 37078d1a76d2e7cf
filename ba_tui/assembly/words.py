"""What a model is told beside the conversation, and about how large each part of a request is."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.messages import Message, Text, Thinking, ToolOutput, ToolUse
from ba_tui.core.tool import Tool
from ba_tui.resources import bundled, project_root
from ba_tui.settings import Settings

CHARACTERS_PER_TOKEN = 4


def system_prompt(settings: Settings, cwd: Path) -> str:
    """The stable part of every request; made once for a conversation, so that the provider's cache holds.

    Raises:
        UsageError: the person's own prompt file can't be read.
    """
    path = settings.system_prompt_file or bundled("config") / "prompts" / "system.md"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The system prompt {path} can't be read: {error}.", "Check system_prompt_file.") from error
    if settings.system_prompt_file is None:
        facts = {
            "cwd": str(cwd),
            "platform": f"{platform.system()} {platform.machine()}",
            "shell": "bash",
            "date": f"{datetime.now().astimezone():%Y-%m-%d}",
            "git": _branch(project_root(cwd)),
        }
        for name, value in facts.items():
            text = text.replace(f"{{{name}}}", value)
    return "\n\n".join(part.strip() for part in (text, settings.append_system_prompt) if part.strip())


def _branch(root: Path) -> str:
    try:
        head = (root / ".git" / "HEAD").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return f"Git branch at the start: {head.removeprefix('ref: refs/heads/')}" if head.startswith("ref: ") else ""


def estimate(text: str) -> int:
    """Tokens of ``text``, roughly."""
    return len(text.encode()) // CHARACTERS_PER_TOKEN


def tool_tokens(tool: Tool) -> int:
    return estimate(f"{tool.name}{tool.description}{tool.input_schema}")


def conversation_tokens(messages: Sequence[Message]) -> tuple[int, int]:
    """Estimates of what was said and of what tools returned."""
    talk = results = 0
    for message in messages:
        for block in message.blocks:
            match block:
                case ToolOutput(content=content):
                    results += estimate(content)
                case Text(text=text) | Thinking(thinking=text):
                    talk += estimate(text)
                case ToolUse(input=given):
                    talk += estimate(str(given))
                case _:
                    pass
    return talk, results
