"""OpenCode: its ``opencode.json`` becomes settings of ba."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.json_text import key_lines
from ba_tui.core.text.patterns import regex
from ba_tui.features.compat.migration.draft import (
    AGENTS,
    BUILT_IN,
    MigrationDraft,
    group,
    json_object,
    opencode_server,
    provider,
    text_of,
)
from ba_tui.ingress import shown
from ba_tui.settings.claude_rules import translated
from ba_tui.settings.document import KeyPath

NAMES = ("opencode.json", "opencode.jsonc", "config.json")
SIGN_IN = "a sign-in is never copied: set the provider's variable, or type /setup in ba"
_KEY = regex(r"\{env:(\w+)\}")
_TOOLS = {
    "bash": "Bash",
    "edit": "Edit",
    "write": "Write",
    "read": "Read",
    "glob": "Glob",
    "grep": "Grep",
    "list": "LS",
    "webfetch": "WebFetch",
    "websearch": "WebSearch",
    "task": "Task",
    "skill": "Skill",
    "todowrite": "TodoWrite",
}
"""Claude Code's names of tools by those in OpenCode's permissions."""
_REASONS: Mapping[str, str] = {
    "agent": AGENTS,
    "mode": AGENTS,
    "default_agent": AGENTS,
    "command": "write a file for each into ~/.claude/commands",
    "instructions": "import the files in AGENTS.md, with @ before their names",
    "plugin": "ba runs no plugins of OpenCode; write a hook, see ba guide hooks",
    "tools": "deny a tool with a rule; see ba guide permissions",
    "keybinds": "see ba guide keys",
    "theme": "choose a theme in ba with /theme",
    "tui": "it changes only the display of OpenCode",
    "share": "ba shares nothing",
    "autoupdate": "ba is updated as it was installed",
    "formatter": "write a post_tool hook; see ba guide hooks",
    "lsp": "ba starts no language servers",
    "compaction": "set compression in your config.yaml",
    "snapshot": "checkpoints are always kept; see ba guide undo",
    "logLevel": "set log_level in your config.yaml",
    "disabled_providers": "ba asks only the provider of your model",
    "enabled_providers": "ba asks only the provider of your model",
}
NO_COUNTERPART = "ba has no such setting"


def opencode(folder: Path, data: Path, root: Path, draft: MigrationDraft, known: Collection[Path]) -> None:
    """Add the files of ``folder`` (``~/.config/opencode``), ``data`` and the project to ``draft``. ``known``: folders
    that ba reads."""
    for name in NAMES:
        draft.file = folder / name
        _file(draft.file, draft)
    draft.file = None
    if (folder / "AGENTS.md").is_file():
        draft.note(
            "context file", "by hand", f"copy {shown(folder / 'AGENTS.md')} to AGENTS.md beside your config.yaml"
        )
    for what, name, pattern, better in (
        ("commands", "command", "*.md", "~/.claude/commands"),
        ("skills", "skill", "SKILL.md", "~/.agents/skills"),
        ("agents", "agent", "*.md", "~/.config/opencode/agent"),
    ):
        for place in (folder / name, folder / f"{name}s"):
            draft.read(what, place, pattern, known, f"ba reads no {what} there: move them to {better}")
    text = "opencode export ID > FILE, then ba sessions import FILE"
    draft.count("sessions", data / "storage" / "session", "ses_*.json", "by hand", text)
    if (data / "opencode.db").is_file():
        draft.note("sessions", "by hand", text)
    if (data / "auth.json").is_file():
        draft.note("sign-in", "by hand", SIGN_IN)
    for name in NAMES[:2]:
        if (root / name).is_file():
            draft.no(f"the project's {name}", "write what the project needs into .ba/config.yaml")


def _file(path: Path, draft: MigrationDraft) -> None:
    if (text := text_of(path, draft)) is None:
        return
    lines, settings = key_lines(text), json_object(path, text, draft)
    # Read providers first: a model is accepted only if its provider is known.
    for key, value in sorted(settings.items(), key=lambda each: each[0] != "provider"):
        _setting(key, value, lines, draft)


def _setting(key: str, value: Any, lines: Mapping[KeyPath, int], draft: MigrationDraft) -> None:
    line = lines.get((key,), 0)
    match key, value:
        case "$schema", _:
            return
        case "model" | "small_model", str():
            _model(key, value, line, draft)
        case "provider", dict():
            for name in cast("dict[str, Any]", value):
                _provider(name, group(value, name), draft)
        case "permission", dict():
            for name, given in cast("dict[str, Any]", value).items():
                _permission(name, given, lines.get((key, name), line), draft)
        case "permission", str():
            _permission("*", value, line, draft)
        case "mcp", dict():
            for name in cast("dict[str, Any]", value):
                opencode_server(draft, name, group(value, name))
        case "agent" | "command", dict():
            names = ", ".join(cast("dict[str, Any]", value))
            draft.no(f"{key}: {names}", _REASONS[key], line)
        case _:
            draft.no(key, _REASONS.get(key, NO_COUNTERPART), line)


def _model(key: str, value: str, line: int, draft: MigrationDraft) -> None:
    name = value.partition("/")[0]
    if name in BUILT_IN or draft.has(f"providers.{name}"):
        draft.set("model" if key == "model" else "small.model", value, key)
    else:
        draft.no(key, f"ba has no provider {name}: set it up with /setup", line)


def _provider(name: str, given: Mapping[str, Any], draft: MigrationDraft) -> None:
    options = group(given, "options")
    key = str(options.get("apiKey", ""))
    variable = _KEY.fullmatch(key)
    provider(draft, name, options.get("baseURL"), variable[1] if variable else None)
    if key and not variable:
        draft.note(f"provider {name}", "by hand", "a key is never copied: type /setup in ba")
    if "models" in given:
        draft.no(f"provider.{name}.models", "ba asks the server; write a price into models.yaml")


def _permission(name: str, given: Any, line: int, draft: MigrationDraft) -> None:
    tool = _TOOLS.get(name, "")
    patterns = cast("dict[str, Any]", given) if isinstance(given, dict) else {"*": given}
    if not tool or any(str(each) not in {"allow", "ask", "deny"} for each in patterns.values()):
        draft.no(f"permission.{name}", NO_COUNTERPART, line)
        return
    for pattern, verdict in patterns.items():
        what = f"permission.{name} {pattern}"
        if pattern == "*" and verdict == "ask":
            draft.note(what, "already", "ba asks before it changes or runs something", line)
        elif pattern == "*" and verdict == "deny" and len(patterns) > 1:
            draft.no(what, "in ba a rule that denies wins over all that allow", line)
        else:
            made = translated(f"{tool}({pattern})" if pattern != "*" else tool, str(verdict), Path("/"))
            for rule in made.rules:
                draft.add(f"permissions.{verdict}", rule, what)
            if made.why:
                draft.no(what, made.why, line)
