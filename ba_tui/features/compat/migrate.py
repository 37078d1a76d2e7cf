"""``ba migrate``: lists the settings and files of Claude Code, Codex and OpenCode, and saves them after a yes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ba_tui.agent_files.catalog import agent_folders
from ba_tui.cli.config import Cwd, folder_of, load
from ba_tui.cli.streams import print_line, say
from ba_tui.context.commands import folders
from ba_tui.core.errors import UsageError
from ba_tui.core.text.wording import count
from ba_tui.features.compat.foreign_settings import codex, opencode
from ba_tui.features.compat.migration_draft import (
    Change,
    Finding,
    MigrationDraft,
    group,
    json_object,
    own_settings,
    text_of,
    write_changes,
)
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.permissions.trust.grants import Trust
from ba_tui.resources import UserFolders, bundled, places, project_root, user_home
from ba_tui.settings.claude_files import ForeignFile
from ba_tui.settings.claude_layer import REASONS
from ba_tui.settings.hooks import found_hooks
from ba_tui.settings.layers import LoadedSettings
from ba_tui.settings.plugins import Plugin, plugins_of
from ba_tui.skills.catalog import plugin_roots, skill_roots

SIGN_IN = "a sign-in is never copied: set ANTHROPIC_API_KEY, or type /setup in ba"
TRUST = "trust the folder: ba trust"
PLUGIN_PARTS = ("agents", "hooks", ".mcp.json")
NARROWEST = 24
"""Least width of a text, in columns."""


class Assistant(StrEnum):
    CLAUDE = "claude"
    CODEX = "codex"
    OPENCODE = "opencode"


NAMES = {Assistant.CLAUDE: "Claude Code", Assistant.CODEX: "Codex", Assistant.OPENCODE: "OpenCode"}


def migrate(
    tool: Annotated[Assistant | None, typer.Argument(help="All three by default.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show; write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="As one JSON object; writes only with --yes.")] = False,
    cwd: Cwd = None,
) -> int:
    """Show what Claude Code, Codex and OpenCode left here, and take over their settings.

    ba reads Claude Code's files where they are. What it takes from Codex and OpenCode goes into your config.yaml, after
    a yes; a copy of the file is kept, and what you set yourself stays. Keys and sign-ins are never copied. Exit code 1:
    a file can't be read, or you said no.
    """
    where = places()
    drafts = _drafts(list(Assistant) if tool is None else [tool], where, cwd)
    changes = [change for draft in drafts for change in draft.changes]
    problems = [problem for draft in drafts for problem in draft.problems]
    if not json_:
        _show(drafts, where)
    for problem in problems:
        say(problem)
    written = bool(changes) and not dry_run and (yes or (not json_ and _agreed(changes, where)))
    kept = write_changes(where, changes) if written else None
    if json_:
        found = {draft.tool: [asdict(finding) for finding in draft.findings] for draft in drafts}
        report = {"found": found, "changes": [asdict(change) for change in changes], "problems": problems}
        print_line(json.dumps({**report, "written": written}, indent=2, ensure_ascii=True))
    elif written:
        copy = f" The file as it was: {kept}" if kept else ""
        print_line(f"Written to {where.settings}.{copy}")
    declined = bool(changes) and not (written or dry_run or json_)
    return 1 if problems or declined else 0


def _drafts(tools: Sequence[Assistant], where: UserFolders, cwd: Path | None) -> list[MigrationDraft]:
    """Return a draft of the changes for each of ``tools``."""
    home = user_home()
    if home is None:
        raise UsageError("There is no home folder to look in.", "Set HOME.")
    root, env, own = project_root(folder_of(cwd)), os.environ, own_settings(where)
    known, plugins = _known(home, where, root)
    drafts: list[MigrationDraft] = []
    for tool in tools:
        draft = MigrationDraft(tool.value, own, drafts, lambda text: redact(text) != text)
        match tool:
            case Assistant.CLAUDE:
                _claude(load(cwd), home, root, draft, known, plugins)
                for text in found_hooks((), root, Trust(where).trusted)[1]:
                    draft.no("hook", text)
            case Assistant.CODEX:
                codex(_folder(env, "CODEX_HOME", home / ".codex"), root, draft, known)
            case Assistant.OPENCODE:
                config = _folder(env, "XDG_CONFIG_HOME", home / ".config") / "opencode"
                data = _folder(env, "XDG_DATA_HOME", home / ".local" / "share") / "opencode"
                opencode(_folder(env, "OPENCODE_CONFIG_DIR", config), data, root, draft, known)
        drafts.append(draft)
    return drafts


def _folder(env: Mapping[str, str], name: str, default: Path) -> Path:
    return Path(env[name]).expanduser() if env.get(name) else default


def _known(home: Path, where: UserFolders, root: Path) -> tuple[Collection[Path], Sequence[Plugin]]:
    """Return the folders of skills, commands and agents that ba reads already, and its plugins."""

    def trusted() -> bool:
        return Trust(where).trusted(root)

    plugins = plugins_of(home, where.config, root, trusted)
    skills = [*skill_roots(bundled("skills"), home, where.config, root, trusted), *plugin_roots(plugins)]
    commands = folders(home, where.config, root, trusted, plugins)
    agents = agent_folders(bundled("config") / "agents", home, where.config, root, trusted)()
    known = {each.folder for each in skills if each.open()}
    return known | {each.path for each in (*commands, *agents) if each.open()}, plugins


def _show(drafts: Sequence[MigrationDraft], where: UserFolders) -> None:
    found = False
    for draft in drafts:
        if not draft.findings:
            continue
        found = True
        print_line(NAMES[Assistant(draft.tool)])
        for place in sorted({each.where for each in draft.findings}):
            if place:
                print_line(f"  {place}")
            _rows([each for each in draft.findings if each.where == place])
        print_line("")
    if not found:
        print_line(f"Nothing of {', '.join(NAMES[Assistant(draft.tool)] for draft in drafts)} was found.")
    elif not any(draft.changes for draft in drafts):
        print_line(f"Nothing to write to {where.settings}.")


def _rows(findings: Sequence[Finding]) -> None:
    """Print a row for each finding; in a terminal, long texts wrap within their column."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    widest = min(max(len(_what(each)) for each in findings), 32)
    for each in findings:
        head = f"    {each.state:<7}  {_what(each):<{widest}}  "
        room = max(columns - len(head) - 1, NARROWEST)
        first, *others = textwrap.wrap(each.text, room, break_long_words=False, break_on_hyphens=False) or [""]
        print_line(head + first)
        for text in others:
            print_line(" " * (widest + 15) + text)


def _what(finding: Finding) -> str:
    return f"{finding.what} (line {finding.line})" if finding.line else finding.what


def _agreed(changes: Sequence[Change], where: UserFolders) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("No terminal to ask on.", "See the changes with --dry-run, then run: ba migrate --yes")
    return typer.confirm(f"Write {count(len(changes), 'change')} to {where.settings}?")


def _claude(
    loaded: LoadedSettings,
    home: Path,
    root: Path,
    draft: MigrationDraft,
    known: Collection[Path],
    plugins: Sequence[Plugin],
) -> None:
    """Add the files of ``~/.claude`` and of the project to ``draft``. ``known``: folders that ba reads. It reads nearly
    all of them where they are, so that nothing is written.
    """
    for file in loaded.foreign:
        _settings(file, draft)
    draft.problems += [str(each) for each in loaded.warnings if "/.claude/" in each.where]
    draft.file = None
    for folder in dict.fromkeys((home / ".claude", root / ".claude")):
        _claude_folder(folder, draft, known)
    for plugin in plugins:
        _plugin(plugin, draft, known)
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


def _claude_folder(folder: Path, draft: MigrationDraft, known: Collection[Path]) -> None:
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
