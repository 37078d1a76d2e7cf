"""The system prompt, which a model reads before a conversation."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import neutralized, paintable
from ba_tui.ingress import Ingress, from_home
from ba_tui.resources import bundled, read_regular
from ba_tui.settings import LoadedSettings, Settings

PROMPTS = ("system_prompt_file", "append_system_prompt")
"""Settings that a trusted project may make."""
_HEAD = regex(r"ref: refs/heads/([^\s~^:?*\[\\<>\x00-\x20\x7f]{1,120})")
"""A branch name that git itself accepts: without spaces and on one line."""
LARGEST = 1_000_000
"""Bytes of a system prompt of the user's own."""


def system_prompt(loaded: LoadedSettings, cwd: Path, ingress: Ingress) -> str:
    """Return the stable part of every request, made once for a conversation, so that the provider's cache can be used.

    Raises:
        UsageError: the prompt file that the settings name can't be read.
    """
    settings = loaded.settings
    theirs = [key for key in PROMPTS if _of_project(loaded.sources[key], ingress)]
    text = settings.system_prompt
    if text is None:
        text = _of_file(settings.system_prompt_file, cwd, ingress, theirs=PROMPTS[0] in theirs)
    added = settings.append_system_prompt
    return join_parts(text, ingress.clean(added) if PROMPTS[1] in theirs else added)


def _of_file(named: Path | None, cwd: Path, ingress: Ingress, *, theirs: bool) -> str:
    """Return the prompt of the file in the settings, else ba's own with the facts of this start."""
    path = named or bundled("config") / "prompts" / "system.md"
    try:
        text = ingress.text(path, LARGEST, "project") if theirs else _named_prompt(path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"The system prompt {path} can't be read: {why}.", "Check system_prompt_file.") from error
    if named is not None:
        return text
    machine = os.uname()
    facts = {
        "cwd": neutralized(paintable(_folder(cwd), newlines=False)),
        "platform": f"{machine.sysname} {machine.machine}",
        "shell": "bash",
        "date": f"{datetime.now().astimezone():%Y-%m-%d}",
        "git": _branch(ingress),
    }
    for name, value in facts.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _folder(cwd: Path) -> str:
    """Return the folder for the model: its path from the home folder, else its name. Paths start there anyway."""
    shown = from_home(cwd)
    return shown if shown.startswith("~") else cwd.name or shown


def _named_prompt(path: Path) -> str:
    """Return the text of the user's prompt file, or of the one that ships with ba."""
    # A pipe that the shell opens, <(command), ends; another one may not.
    handed = path.is_relative_to("/dev/fd")
    return path.read_text("utf-8") if handed else read_regular(path, LARGEST).decode("utf-8")


def _of_project(source: str, ingress: Ingress) -> bool:
    """Whether a setting is from a project's file, not the user's."""
    return source.startswith("/") and not any(map(Path(source).is_relative_to, ingress.own))


def join_parts(*parts: str) -> str:
    """Join the parts that are not empty."""
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _branch(ingress: Ingress) -> str:
    try:
        head = _HEAD.fullmatch(ingress.text(ingress.root / ".git" / "HEAD", 4_096, "project").strip())
    except OSError:
        return ""
    return f"Git branch at the start: {head[1]}" if head else ""


def prompt_origin(settings: Settings) -> str:
    """Return the origin of the system prompt, for users."""
    own = str(settings.system_prompt_file) if settings.system_prompt_file else "built in"
    own = own if settings.system_prompt is None else "system_prompt"
    return f"{own}, append_system_prompt" if settings.append_system_prompt else own
