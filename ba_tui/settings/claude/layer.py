"""A settings file of Claude Code as a layer of settings, and what of it has no effect.

What a project may not set is left out here: it opens no folder, chooses no mode that asks less, and sets no variable
that changes how programs start. Rules that deny or ask count wherever they stand, others only where they may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.settings.checks import Layer, SettingPath
from ba_tui.settings.claude.file_patterns import literal
from ba_tui.settings.claude.files import STRICT, ClaudeFile
from ba_tui.settings.claude.meanings import (
    EFFORTS,
    MODES,
    OTHER_MODES,
    OWN_VARIABLES,
    REASONS,
    SATISFIED,
    UNKNOWN,
)
from ba_tui.settings.claude.rules import FILE_TOOLS, translated
from ba_tui.settings.document import KeyPath, Problem
from ba_tui.settings.foreign import ForeignFile, Unsupported
from ba_tui.settings.variable_names import holds_key, leads, starts, steers

PROJECT_FOLDERS = "a project opens no folders: start ba with --add-dir, or set add_dirs in your config.yaml"
PROJECT_PLUGINS = "only ~/.claude/settings.json turns plugins off; their commands and skills count"
PROJECT_SERVERS = "a project can't approve its own servers: trusting the folder does; see ba trust"
PROJECT_MODE = "a project can't choose a mode that asks less; set permission_mode in your config.yaml"
UNKNOWN_MODE = "Claude Code and ba know no such mode"
LONGEST_NAME = 60
_MODEL = regex(r"(?:opus|sonnet|haiku|fable|claude-[\w.-]+)(?:\[1m\])?")
_QUOTED = regex(r"[\"'=$]")
_NAME = regex(r"[A-Za-z_]\w*")
_OWN = regex(OWN_VARIABLES)


@frozen
class ClaudeLayer:
    """``model``: the one that the file asks for, by a name of Claude Code's; empty for none. ``no_bypass``: it forbids
    the mode bypass."""

    layer: Layer
    report: ForeignFile
    model: str = ""
    no_bypass: bool = False


def claude_layer(file: ClaudeFile, project: Path | None, *, trusted: bool) -> ClaudeLayer:
    """What ``file`` sets; ``project``: the folder that it came with, None for the person's own."""
    return _Reading(file, project, trusted=trusted).read()


class _Reading:
    """One file, read key by key into ``data``, which are settings of ba."""

    def __init__(self, file: ClaudeFile, project: Path | None, *, trusted: bool) -> None:
        self.file, self._project = file, project
        self._trusted = trusted or project is None
        # A leading slash means the project, in the person's own file the folder that the file is in.
        self._base = project or file.path.parent
        self.data: dict[str, Any] = {}
        self._lines: dict[KeyPath, int] = {}
        self._honoured: list[str] = []
        self._unsupported: list[Unsupported] = []
        self.model = ""
        self.no_bypass = False

    def read(self) -> ClaudeLayer:
        self._rules()
        if self._trusted:
            for key, value in self.file.data.items():
                self._setting(key, value)
        layer = Layer(
            self.data, self._place, self.file.path.parent, kind="claude", foreign=not self._trusted,
            project=self._project is not None,
        )  # fmt: skip
        if self.file.problem:
            text = f"{self.file.problem}, so only its rules that deny or ask count"
            layer.problems.append(Problem(str(self.file.path), text, self.file.line, fatal=False))
        honoured, unsupported = Counter(self._honoured), tuple(self._unsupported)
        whose = self._project is not None
        report = ForeignFile(self.file.path, honoured, unsupported, whose, self._trusted)
        return ClaudeLayer(layer, report, self.model, self.no_bypass)

    def _place(self, path: KeyPath) -> SettingPath:
        while path and path not in self._lines:
            path = path[:-1]
        return str(self.file.path), self._lines.get(path, 0)

    def _set(self, path: tuple[str, ...], value: Any, *theirs: str) -> None:
        """Set ours at ``path``, because of ``theirs``."""
        holder = self.data
        for part in path[:-1]:
            holder = holder.setdefault(part, {})
        holder[path[-1]] = value
        self._lines[path] = self.file.at(*theirs)
        self._honoured.append(".".join(theirs))

    def _not(self, why: str, *theirs: str) -> None:
        self._unsupported.append(Unsupported(".".join(theirs), why, self.file.at(*theirs)))

    def _rules(self) -> None:
        groups = self.file.data.get("permissions")
        groups = cast("dict[str, Any]", groups) if isinstance(groups, dict) else {}
        known: set[tuple[str, str]] = set()
        for verdict in (*STRICT, "allow") if self._trusted else STRICT:
            # People also write them outside of permissions, where Claude Code ignores them.
            for path in (("permissions", verdict), (verdict,)) if verdict in STRICT else (("permissions", verdict),):
                value: Any = groups.get(verdict) if len(path) > 1 else self.file.data.get(verdict)
                for index, text in enumerate(_listed(value)):
                    known.add((verdict, str(text)))
                    self._rule(text, verdict, self.file.at(*path, index))
        for verdict, text, line in self.file.strict:
            if (verdict, text) not in known:
                self._rule(text, verdict, line)

    def _rule(self, text: Any, verdict: str, line: int) -> None:
        key = f"permissions.{verdict}"
        if not isinstance(text, str):
            self._unsupported.append(Unsupported(key, "expected text", line))
            return
        made = translated(text, verdict, self._base)
        outside = verdict == "allow" and self._project is not None and any(map(self._leads_out, made.rules))
        if made.why or outside:
            why = made.why or "a project allows no files outside its folder; add the rule to your own settings"
            self._unsupported.append(Unsupported(f"{key} {_named(text)}", why, line))
            return
        rules: list[Any] = self.data.setdefault("permissions", {}).setdefault(verdict, [])
        for rule in made.rules:
            self._lines["permissions", verdict, len(rules)] = line
            rules.append(rule)
        self._honoured.append(key)

    def _leads_out(self, rule: str) -> bool:
        """Whether ``rule`` is about files that do not lie in the project."""
        tool, _, pattern = rule.partition("(")
        inside = pattern.startswith(f"{literal(str(self._base))}/")
        return tool in FILE_TOOLS and pattern.startswith(("/", "~")) and not inside

    def _setting(self, key: str, value: Any) -> None:
        if key in {"$schema", *STRICT} or value is None:
            return
        if value in SATISFIED.get(key, ()):
            self._honoured.append(key)
            return
        match key, value:
            case "permissions", dict():
                for name, item in cast("dict[str, Any]", value).items():
                    self._permission(name, item)
            case "env", dict():
                for name, item in cast("dict[str, Any]", value).items():
                    self._variable(name, item)
            case "hooks", dict():
                self._honoured += [key] * max(1, sum(1 for _ in _commands(cast("dict[str, Any]", value))))
            case "disableAllHooks", bool():
                self._honoured.append(key)
            case "model", str() if _MODEL.fullmatch(value):
                self.model = value
                self._honoured.append(key)
            case "model", _:
                self._not("Claude Code takes it for a model, ba knows none of that name: choose one with /model", key)
            case "effortLevel", str() if value in EFFORTS:
                self._set(("effort",), value, key)
            case "autoCompactEnabled", bool():
                self._set(("compression", "enabled"), value, key)
            case "disabledMcpjsonServers", list():
                self._honoured += [key] * len(_listed(value))
            case "enableAllProjectMcpServers" | "enabledMcpjsonServers", _ if self._project:
                self._not(PROJECT_SERVERS, key)
            case "enableAllProjectMcpServers" | "enabledMcpjsonServers", bool() | list():
                # Whoever trusts a folder approves its servers.
                self._honoured.append(key)
            case "enabledPlugins", _ if self._project:
                self._not(PROJECT_PLUGINS, key)
            case "permissions" | "env" | "hooks", _:
                self._not("expected a JSON object", key)
            case "effortLevel" | "autoCompactEnabled" | "disableAllHooks" | "disabledMcpjsonServers", _:
                self._not("Claude Code and ba know no such value", key)
            case "enableAllProjectMcpServers" | "enabledMcpjsonServers", _:
                self._not("Claude Code and ba know no such value", key)
            case _:
                self._not(REASONS.get(key, UNKNOWN), key)

    def _permission(self, name: str, value: Any) -> None:
        path = ("permissions", name)
        match name, value:
            case "allow" | "ask" | "deny", _:
                return
            case "defaultMode", str():
                self._mode(value)
            case "disableBypassPermissionsMode", "disable":
                self.no_bypass = True
                self._honoured.append(".".join(path))
            case "additionalDirectories", _ if self._project is None:
                folders = [item for item in _listed(value) if isinstance(item, str) and item.startswith(("/", "~"))]
                if folders:
                    self._set(("add_dirs",), folders, *path)
                if len(folders) < len(_listed(value)):
                    self._not("expected whole paths", *path)
            case "additionalDirectories", _ if _listed(value):
                self._not(PROJECT_FOLDERS, *path)
            case "additionalDirectories", _:
                return
            case _:
                self._not(REASONS.get(name, UNKNOWN), *path)

    def _mode(self, value: str) -> None:
        path = ("permissions", "defaultMode")
        if value not in MODES:
            self._not(OTHER_MODES.get(value, UNKNOWN_MODE), *path)
        elif value == "plan" or self._project is None:
            self._set(("permission_mode",), MODES[value], *path)
        elif value != "default":
            self._not(PROJECT_MODE, *path)

    def _variable(self, name: str, value: Any) -> None:
        path = ("env", name)
        if not _NAME.fullmatch(name) or isinstance(value, dict | list):
            self._not("expected a name and a text", *path)
        elif holds_key(name):
            self._not("it looks like a key: set it in your shell, or type /setup", *path)
        elif _OWN.fullmatch(name):
            self._not("only Claude Code reads this variable", *path)
        elif steers(name) or (self._project is not None and starts(name)):
            self._not("it changes how programs start: set it in your shell", *path)
        elif self._project is not None and (leads(name) or "://" in _as_text(value)):
            self._not("it names an address: set it in your shell", *path)
        else:
            self._set(("environment", "set", name), _as_text(value), *path)


def _named(rule: str) -> str:
    """``rule`` as far as no key can stand in it: rules that were saved from a question may hold one."""
    head = _QUOTED.split(rule)[0]
    return one_line(head if head == rule else f"{head}…", LONGEST_NAME)


def _listed(value: Any) -> list[Any]:
    return list(cast("list[Any]", value)) if isinstance(value, list) else [] if value is None else [value]


def _commands(hooks: Mapping[str, Any]) -> Iterator[object]:
    """Each command or prompt of a group of hooks."""
    for groups in hooks.values():
        for group in _listed(groups):
            yield from _listed(cast("dict[str, Any]", group).get("hooks") if isinstance(group, dict) else None)


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
