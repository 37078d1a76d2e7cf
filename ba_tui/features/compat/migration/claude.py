"""Claude Code: ba reads nearly all of it where it is, so that nothing is written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from ba_tui.core.values import frozen
from ba_tui.features.compat.migration.draft import MigrationDraft, group, json_object, text_of
from ba_tui.settings.claude_files import ForeignFile
from ba_tui.settings.claude_layer import REASONS
from ba_tui.settings.layers import LoadedSettings
from ba_tui.settings.plugins import Plugin

SIGN_IN = "a sign-in is never copied: set ANTHROPIC_API_KEY, or type /setup in ba"
TRUST = "trust the folder: ba trust"
PLUGIN_PARTS = ("agents", "hooks", ".mcp.json")


@frozen
class ClaudePlaces:
    """Where Claude Code keeps its files. ``known``: folders that ba reads; ``plugins``: those that it reads from."""

    home: Path
    root: Path
    known: Collection[Path]
    plugins: Sequence[Plugin]


def claude(places: ClaudePlaces, loaded: LoadedSettings, draft: MigrationDraft) -> None:
    """Add the files of ``~/.claude`` and of the project to ``draft``."""
    home, root = places.home, places.root
    for file in loaded.foreign:
        _settings(file, draft)
    draft.problems += [str(each) for each in loaded.warnings if "/.claude/" in each.where]
    draft.file = None
    for folder in dict.fromkeys((home / ".claude", root / ".claude")):
        _folder(folder, draft, places.known)
    for plugin in places.plugins:
        _plugin(plugin, draft, places.known)
    for path in (home / ".claude.json", root / ".mcp.json"):
        _servers(path, draft)
    draft.file = None
    projects = home / ".claude" / "projects"
    how = "ba sessions import --own-folders ~/.claude/projects/*/*.jsonl"
    draft.count("sessions", projects, "*.jsonl", "by hand", how)
    if (home / ".claude" / ".credentials.json").is_file():
        draft.note("sign-in", "by hand", SIGN_IN)


def _settings(file: ForeignFile, draft: MigrationDraft) -> None:
    draft.file = file.path
    if not file.trusted:
        draft.note("settings", "by hand", "the folder is not trusted: only rules that deny or ask count. See ba trust")
    for key, number in file.honoured.items():
        draft.note(key, "already", "counts" if number == 1 else f"{number} count")
    for each in file.unsupported:
        draft.no(each.key, each.why, each.line)


def _folder(folder: Path, draft: MigrationDraft, known: Collection[Path]) -> None:
    for name in ("CLAUDE.md", "CLAUDE.local.md"):
        if (folder / name).is_file():
            draft.file = folder / name
            draft.note("context file", "already", "ba tells it to models")
    draft.file = None
    draft.count("rules for files", folder / "rules", "*.md", "already", "ba reads them")
    for what, pattern in (("skills", "SKILL.md"), ("commands", "*.md"), ("agents", "*.md")):
        draft.read(what, folder / what, pattern, known, TRUST)
    draft.count("output styles", folder / "output-styles", "*.md", "no", f"not supported: {REASONS['outputStyle']}")


def _plugin(plugin: Plugin, draft: MigrationDraft, known: Collection[Path]) -> None:
    for folder in plugin.commands:
        draft.read(f"commands of {plugin.name}", folder, "*.md", known, TRUST)
    draft.read(f"skills of {plugin.name}", plugin.folder / "skills", "SKILL.md", known, TRUST)
    if any((plugin.folder / part).exists() for part in PLUGIN_PARTS):
        draft.no(f"plugin {plugin.name}", REASONS["enabledPlugins"])


def _servers(path: Path, draft: MigrationDraft) -> None:
    draft.file = path
    text = text_of(path, draft)
    data = json_object(path, text, draft) if text else {}
    names = list(group(data, "mcpServers"))
    for project in group(data, "projects").values():
        names += list(group(project, "mcpServers"))
    if names:
        draft.note(f"MCP servers: {', '.join(dict.fromkeys(names))}", "already", "ba reads them: ba mcp list")
