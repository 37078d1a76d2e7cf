"""What Codex and OpenCode left here, as findings and as changes to ba's settings."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Collection, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.json_text import key_lines
from ba_tui.core.text.patterns import regex
from ba_tui.features.compat.migration_draft import (
    AGENTS,
    BUILT_IN,
    MigrationDraft,
    codex_server,
    group,
    json_object,
    opencode_server,
    provider,
    text_of,
)
from ba_tui.ingress import shown
from ba_tui.settings.claude_layer import EFFORTS
from ba_tui.settings.claude_rules import translated
from ba_tui.settings.document import KeyPath
from ba_tui.settings.environment import holds_key, steers

CODEX_SIGN_IN = "a sign-in is never copied: set OPENAI_API_KEY, or type /setup in ba"
MOST_RULES = 64
_LINE = regex(r"at line (\d+)")
_DECISIONS = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}
_QUIET = frozenset({"model", "model_provider", "model_providers", "approval_policy", "sandbox_mode"})
_CODEX_REASONS: Mapping[str, str] = {
    "profile": "start ba with other flags, or set them in a project's .ba/config.yaml",
    "profiles": "start ba with other flags, or set them in a project's .ba/config.yaml",
    "notify": "write a hook for the event stop or notification; see ba guide hooks",
    "project_doc_max_bytes": "ba limits context files on its own, and says so",
    "project_doc_fallback_filenames": "ba reads AGENTS.md, CLAUDE.md and BA.md",
    "project_root_markers": "ba takes the nearest folder with .git, .ba and the like",
    "history": "ba keeps every session until you delete it",
    "tui": "it changes only the display of Codex; ba has theme and notify",
    "projects": "ba asks about each folder itself; see ba guide trust",
    "review_model": "use /model before you ask for a review",
    "web_search": "set web_search in your config.yaml",
    "tools": "set web_search in your config.yaml",
    "features": "it switches features of Codex",
    "model_context_window": "write it into models.yaml; see ba guide prices",
    "model_max_output_tokens": "set max_output_tokens in your config.yaml",
    "model_auto_compact_token_limit": "set compression in your config.yaml",
    "model_instructions_file": "set system_prompt_file in your config.yaml",
    "experimental_instructions_file": "set system_prompt_file in your config.yaml",
    "agents": AGENTS,
    "hooks": "write them under hooks in your config.yaml; see ba guide hooks",
    "plugins": "ba reads no plugins of Codex; install their skills with ba skills install",
    "skills": "ba lists skills on its own; see ba guide skills",
    "permissions": "set permissions in your config.yaml; see ba guide permissions",
    "default_permissions": "set permissions in your config.yaml; see ba guide permissions",
    "otel": "ba has its own logs",
}
NO_COUNTERPART = "ba has no such setting"


def codex(folder: Path, root: Path, draft: MigrationDraft, known: Collection[Path]) -> None:
    """Add the files of ``folder`` (``~/.codex``) and of the project ``root`` to ``draft``. ``known``: folders that ba
    reads."""
    file = draft.file = folder / "config.toml"
    try:
        _ConfigReader(draft, tomllib.loads(text_of(file, draft) or "")).read()
    except (ValueError, RecursionError) as error:
        line = _LINE.search(str(error))
        draft.problems.append(f"{file}{f':{line[1]}' if line else ''}: can't be read as TOML ({error})")
    for path in sorted((folder / "rules").glob("*.rules")):
        draft.file = path
        _rules(path, draft)
    draft.file = None
    for name in ("AGENTS.override.md", "AGENTS.md"):
        if (folder / name).is_file():
            draft.note("context file", "by hand", f"copy {shown(folder / name)} to AGENTS.md beside your config.yaml")
            break
    for what, place, pattern, better in (
        ("skills", "skills", "SKILL.md", "~/.agents/skills"),
        ("commands", "prompts", "*.md", "~/.claude/commands"),
        ("agents", "agents", "*.toml", "~/.codex/agents"),
    ):
        draft.read(what, folder / place, pattern, known, f"ba reads no {what} there: move them to {better}")
    draft.count(
        "sessions",
        folder / "sessions",
        "*.jsonl",
        "by hand",
        f"ba sessions import --own-folders {shown(folder)}/sessions/*/*/*/*.jsonl",
    )
    if (folder / "auth.json").is_file():
        draft.note("sign-in", "by hand", CODEX_SIGN_IN)
    if root / ".codex" != folder and (root / ".codex" / "config.toml").is_file():
        draft.no("the project's .codex/config.toml", "write what the project needs into .ba/config.yaml")


class _ConfigReader:
    """Converts one config.toml."""

    def __init__(self, draft: MigrationDraft, data: dict[str, Any]) -> None:
        self._draft, self._data = draft, data

    def read(self) -> None:
        providers = group(self._data, "model_providers")
        for name in providers:
            self._provider(name, group(providers, name))
        self._model()
        self._asking()
        for key, value in self._data.items():
            if key not in _QUIET:
                self._setting(key, value)

    def _provider(self, name: str, given: Mapping[str, Any]) -> None:
        provider(self._draft, name, given.get("base_url"), given.get("env_key"))
        for key in given:
            if key not in {"name", "base_url", "env_key", "wire_api", "requires_openai_auth"}:
                self._draft.no(f"model_providers.{name}.{key}", NO_COUNTERPART)

    def _model(self) -> None:
        model, name = self._data.get("model"), self._data.get("model_provider", "openai")
        if not isinstance(model, str):
            return
        if name in BUILT_IN or self._draft.has(f"providers.{name}"):
            self._draft.set("model", f"{name}/{model}", "model")
        else:
            self._draft.no("model", f"ba has no provider {name}")

    def _asking(self) -> None:
        policy, box = self._data.get("approval_policy"), self._data.get("sandbox_mode", "workspace-write")
        if box == "danger-full-access":
            self._draft.no("sandbox_mode", "ba never turns its sandbox off by a migration")
        elif "sandbox_mode" in self._data:
            text = "ba asks before it edits" if box == "read-only" else "ba runs commands in its sandbox"
            self._draft.note("sandbox_mode", "already", text)
        match policy:
            case None:
                return
            case "on-request" | "untrusted":
                self._draft.note("approval_policy", "already", "ba asks before it changes or runs something")
            case "never" | "on-failure" if box == "workspace-write":
                self._draft.set("permission_mode", "auto", "approval_policy")
            case _:
                self._draft.no("approval_policy", "choose with --permission-mode at each start")

    def _setting(self, key: str, value: Any) -> None:
        draft = self._draft
        match key, value:
            case "model_reasoning_effort", str() if value in EFFORTS:
                draft.set("effort", value, key)
            case "developer_instructions" | "persistent_instructions", str() if value.strip():
                draft.set("append_system_prompt", value, key)
            case "openai_base_url", str():
                provider(draft, "openai", value, None)
            case "sandbox_workspace_write", dict():
                self._writing(cast("dict[str, Any]", value))
            case "shell_environment_policy", dict():
                self._variables(cast("dict[str, Any]", value))
            case "mcp_servers", dict():
                for name in cast("dict[str, Any]", value):
                    codex_server(draft, name, group(value, name))
            case "profiles" | "projects", dict():
                draft.no(f"{key}: {', '.join(cast('dict[str, Any]', value))}", _CODEX_REASONS[key])
            case _:
                draft.no(key, _CODEX_REASONS.get(key, NO_COUNTERPART))

    def _writing(self, given: Mapping[str, Any]) -> None:
        for key, value in given.items():
            match key, value:
                case "writable_roots", list():
                    for item in cast("list[Any]", value):
                        self._draft.add("commands.write", str(item), f"writable_roots {item}")
                case "network_access", bool():
                    self._network(value)
                case _:
                    self._draft.no(f"sandbox_workspace_write.{key}", NO_COUNTERPART)

    def _network(self, allowed: bool) -> None:
        if allowed:
            self._draft.set("commands.network", True, "network_access")
        else:
            self._draft.note("network_access", "already", "the sandbox of ba has no network")

    def _variables(self, given: Mapping[str, Any]) -> None:
        for key, value in given.items():
            if key != "set" or not isinstance(value, dict):
                self._draft.no(f"shell_environment_policy.{key}", "see environment in your config.yaml")
                continue
            for name, text in cast("dict[str, Any]", value).items():
                if holds_key(name) or steers(name) or not re.fullmatch(r"[A-Za-z_]\w*", name):
                    self._draft.note(f"variable {name}", "by hand", "keys are never copied: set it in your shell")
                else:
                    self._draft.set(f"environment.set.{name}", str(text), f"variable {name}")


def _rules(path: Path, draft: MigrationDraft) -> None:
    """Convert rules such as ``prefix_rule(pattern=["git", "push"], decision="prompt")``."""
    try:
        tree = ast.parse(text_of(path, draft) or "")
    except SyntaxError as error:
        draft.problems.append(f"{path}:{error.lineno or 0}: can't be read ({error.msg})")
        return
    except (ValueError, RecursionError, MemoryError) as error:
        draft.problems.append(f"{path}: can't be read ({error})")
        return
    for node in tree.body:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name(id="prefix_rule"), keywords=words)):
                _rule({word.arg: _plain(word.value) for word in words if word.arg}, node.lineno, draft)
            case _:
                draft.no(ast.unparse(node), "only prefix_rule has a counterpart", node.lineno)


def _rule(given: Mapping[str, Any], line: int, draft: MigrationDraft) -> None:
    verdict = _DECISIONS.get(str(given.get("decision", "allow")), "")
    commands = list(_commands(given.get("pattern")))
    made = [rule for command in commands for rule in translated(f"Bash({command}:*)", verdict, Path("/")).rules]
    if not verdict or not made or len(made) < len(commands):
        draft.no(f"rule {given.get('pattern')}", "it can't be said as a rule of ba", line)
    for rule in made if verdict else ():
        draft.add(f"permissions.{verdict}", rule, f"rule {rule}")


def _commands(pattern: Any) -> Iterator[str]:
    """Yield each command that ``pattern`` matches; a list in it contains alternative words."""
    items = cast("list[Any]", pattern) if isinstance(pattern, list) else []
    choices = [
        [str(each) for each in cast("list[Any]", item)] if isinstance(item, list) else [str(item)] for item in items
    ]
    for number, words in enumerate(product(*choices) if choices else ()):
        if number < MOST_RULES:
            yield shlex.join(words).replace("(", "\\(").replace(")", "\\)")


def _plain(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


OPENCODE_FILES = ("opencode.json", "opencode.jsonc", "config.json")
OPENCODE_SIGN_IN = "a sign-in is never copied: set the provider's variable, or type /setup in ba"
_KEY = regex(r"\{env:(\w+)\}")
_TOOLS = {
    "bash": "Bash", "edit": "Edit", "write": "Write", "read": "Read", "glob": "Glob", "grep": "Grep", "list": "LS",
    "webfetch": "WebFetch", "websearch": "WebSearch", "task": "Task", "skill": "Skill", "todowrite": "TodoWrite",
}  # fmt: skip
"""Claude Code's names of tools by those in OpenCode's permissions."""
_OPENCODE_REASONS: Mapping[str, str] = {
    "agent": AGENTS, "mode": AGENTS, "default_agent": AGENTS,
    "command": "write a file for each into ~/.claude/commands",
    "instructions": "import the files in AGENTS.md, with @ before their names",
    "plugin": "ba runs no plugins of OpenCode; write a hook, see ba guide hooks",
    "tools": "deny a tool with a rule; see ba guide permissions", "keybinds": "see ba guide keys",
    "theme": "choose a theme in ba with /theme", "tui": "it changes only the display of OpenCode",
    "share": "ba shares nothing", "autoupdate": "ba is updated as it was installed",
    "formatter": "write a post_tool hook; see ba guide hooks", "lsp": "ba starts no language servers",
    "compaction": "set compression in your config.yaml", "snapshot": "checkpoints are always kept; see ba guide undo",
    "logLevel": "set log_level in your config.yaml", "disabled_providers": "ba asks only the provider of your model",
    "enabled_providers": "ba asks only the provider of your model",
}  # fmt: skip


def opencode(folder: Path, data: Path, root: Path, draft: MigrationDraft, known: Collection[Path]) -> None:
    """Add the files of ``folder`` (``~/.config/opencode``), ``data`` and the project to ``draft``. ``known``: folders
    that ba reads."""
    for name in OPENCODE_FILES:
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
        draft.note("sign-in", "by hand", OPENCODE_SIGN_IN)
    for name in OPENCODE_FILES[:2]:
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
            draft.no(f"{key}: {names}", _OPENCODE_REASONS[key], line)
        case _:
            draft.no(key, _OPENCODE_REASONS.get(key, NO_COUNTERPART), line)


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
