"""Convert a settings file of Claude Code to a layer of settings, and report the settings without effect.

A project's file can't add folders, choose a mode that asks less, or set variables that change how programs start. Its
deny and ask rules always apply, its allow rules only in a trusted project.
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
from ba_tui.settings.claude_files import STRICT, ClaudeFile, ForeignFile, UnsupportedSetting
from ba_tui.settings.claude_rules import FILE_TOOLS, literal, translated
from ba_tui.settings.document import KeyPath, Problem
from ba_tui.settings.environment import holds_key, leads, starts, steers


def _all(why: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), why)


REASONS: Mapping[str, str] = {
    **_all("ba has no status line commands", "statusLine subagentStatusLine"),
    **_all("ba has no output styles; write AGENTS.md, or set append_system_prompt", "outputStyle"),
    **_all("write the language into your AGENTS.md", "language"),
    **_all("write it into AGENTS.md or CLAUDE.md", "systemPrompt instructions claudeMd customInstructions"),
    **_all("name the files to leave out in your own settings", "claudeMdExcludes"),
    **_all("Claude Code keeps servers in ~/.claude.json and .mcp.json, which ba reads", "mcpServers"),
    **_all("ba has no connectors of claude.ai", "disableClaudeAiConnectors allowAllClaudeAiMcps"),
    **_all(
        "commands and skills of installed plugins count; their agents, hooks and MCP servers do not", "enabledPlugins"
    ),
    **_all(
        "ba installs no plugins; it reads commands and skills of those that Claude Code installed",
        "extraKnownMarketplaces strictKnownMarketplaces blockedMarketplaces pluginConfigs plugins "
        "pluginSuggestionMarketplaces pluginTrustMessage disableSideloadFlags channelsEnabled allowedChannelPlugins "
        "strictPluginOnlyCustomization",
    ),
    **_all(
        "set an API key: type /setup, or set its environment variable",
        "apiKeyHelper proxyAuthHelper forceLoginMethod forceLoginOrgUUID forceLoginGatewayUrl primaryApiKey",
    ),
    **_all(
        "set up the cloud's own credentials; see ba guide clouds", "awsAuthRefresh awsCredentialExport gcpAuthRefresh"
    ),
    **_all("ba adds no such text to commits", "includeCoAuthoredBy attribution gitAttribution"),
    **_all("ba has its own instructions for git", "includeGitInstructions"),
    **_all("ba keeps sessions until you delete them with ba sessions delete", "cleanupPeriodDays"),
    **_all("set effort in your config.yaml", "alwaysThinkingEnabled showThinkingSummaries ultracode maxThinkingTokens"),
    **_all("set fallback_model in your config.yaml", "fallbackModel switchModelsOnFlag"),
    **_all("set small.model in your config.yaml", "advisorModel smallFastModel"),
    **_all(
        "ba lists the models of your providers; see ba guide models",
        "availableModels enforceAvailableModels modelOverrides fastMode fastModePerSessionOptIn",
    ),
    **_all("set compression in your config.yaml", "autoCompactWindow precomputeCompactionEnabled"),
    **_all("ba confines commands where it can; set sandbox and commands in your config.yaml", "sandbox"),
    **_all("ba always leaves out what .gitignore names", "respectGitignore"),
    **_all("choose a theme in ba with /theme", "theme"),
    **_all("set notify in your config.yaml", "preferredNotifChannel inputNeededNotifEnabled agentPushNotifEnabled"),
    **_all("checkpoints are always kept; see ba guide undo", "fileCheckpointingEnabled checkpointingEnabled"),
    **_all("memory is not supported yet; ba reads AGENTS.md", "autoMemoryEnabled autoMemoryDirectory autoDreamEnabled"),
    **_all(
        "not needed here; see ba guide agents",
        "agent agents disableAgentView teammateMode isolatePeerMachines daemonColdStart",
    ),
    **_all("ba has workflows of its own; see ba guide workflows", "enableWorkflows disableWorkflows"),
    **_all(
        "ba lists skills on its own; see skills.yaml in ba guide skills",
        "skillOverrides skillListingMaxDescChars skillListingBudgetFraction disableBundledSkills skillDirectories",
    ),
    **_all("ba asks before a command of a skill runs", "disableSkillShellExecution"),
    **_all("set the exporter up for ba itself", "otelHeadersHelper"),
    **_all(
        "only rules an administrator sets, and ba reads none",
        "allowManagedHooksOnly allowManagedPermissionRulesOnly policyHelper parentSettingsBehavior "
        "forceRemoteSettingsRefresh requiredMinimumVersion requiredMaximumVersion companyAnnouncements "
        "allowedMcpServers deniedMcpServers allowManagedMcpServersOnly "
        "allowedHttpHookUrls httpHookAllowedEnvVars wslInheritsWindowsSettings",
    ),
    **_all("ba is updated as it was installed", "autoUpdates autoUpdatesChannel minimumVersion"),
    **_all("ba makes no worktrees", "worktree"),
    **_all("ba runs commands with bash", "defaultShell"),
    **_all("plans are kept in the session", "plansDirectory showClearContextOnPlanAccept"),
    **_all(
        "it changes only the display of Claude Code",
        """
        tui viewMode spinnerTipsEnabled spinnerVerbs spinnerTipsOverride syntaxHighlightingDisabled verbose editorMode
        terminalTitleFromRename prefersReducedMotion autoScrollEnabled wheelScrollAccelerationEnabled showTurnDuration
        showMessageTimestamps terminalProgressBarEnabled prUrlTemplate footerLinksRegexes breakReminder quietHours
        promptSuggestionEnabled awaySummaryEnabled feedbackSurveyRate todoFeatureEnabled fileSuggestion voice
        totalTokensReminder totalTokensReminderBudget doneMeansMerged""",
    ),
    **_all(
        "it belongs to a service of Claude Code",
        "remote disableRemoteControl remoteControlAtStartup disableArtifact enableArtifact autoUploadSessions "
        "sshConfigs skipWebFetchPreflight workflowKeywordTriggerEnabled skipWorkflowUsageWarning respondToBashCommands",
    ),
    **_all("bypass is chosen at each start, with a flag", "skipDangerousModePermissionPrompt"),
    **_all(
        "the auto mode of ba is another: it confines commands; see ba guide permissions", "disableAutoMode autoMode"
    ),
    **_all("rules belong into permissions", "allow allowedTools disallowedTools defaultMode additionalDirectories"),
}
"""Why a setting has no effect and what to do instead, by its key."""
UNKNOWN = "Claude Code's schema and ba know no such setting"

MODES: Mapping[str, str] = {"default": "default", "acceptEdits": "accept-edits", "plan": "plan"}
"""ba's permission modes by Claude Code's names."""
OTHER_MODES: Mapping[str, str] = {
    "bypassPermissions": "bypass works only as a flag: --permission-mode bypass",
    "dontAsk": "ba has no such mode; ba -p denies what would ask",
    "auto": "the auto mode of ba is another: set permission_mode in your config.yaml",
    "delegate": "ba has no such mode",
}

SATISFIED: Mapping[str, tuple[Any, ...]] = {
    "includeCoAuthoredBy": (False,),
    "attribution": ({"commit": "", "pr": ""}, {"commit": ""}, {"pr": ""}),
    "enableAllProjectMcpServers": (False,),
    "enabledMcpjsonServers": ([],),
    "disabledMcpjsonServers": ([],),
    "enabledPlugins": ({},),
    "respectGitignore": (True,),
    "fileCheckpointingEnabled": (True,),
    "allow": ([],),
}
"""Values that equal ba's behaviour."""
OWN_VARIABLES = (
    r"(?:CLAUDE|ANTHROPIC|MCP|OTEL|VERTEX_REGION|DISABLE|ENABLE)_\w+|BASH_(?:DEFAULT|MAX)_\w+|MAX_\w*TOKENS"
    r"|USE_BUILTIN_RIPGREP|SLASH_COMMAND_TOOL_CHAR_BUDGET|API_TIMEOUT_MS|IS_DEMO|FORCE_AUTOUPDATE_PLUGINS"
)
"""Variables that configure Claude Code itself."""
EFFORTS = ("low", "medium", "high", "xhigh", "max")


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
    """A file's layer. ``model``: the model that it asks for, by Claude Code's name. ``no_bypass``: it forbids the mode
    bypass."""

    layer: Layer
    report: ForeignFile
    model: str = ""
    no_bypass: bool = False


def claude_layer(file: ClaudeFile, project: Path | None, *, trusted: bool) -> ClaudeLayer:
    """Return the layer of ``file``; ``project`` is its project, None for the user's file."""
    return _LayerBuilder(file, project, trusted=trusted).read()


class _LayerBuilder:
    """Converts one file key by key into ``data``, the settings of ba."""

    def __init__(self, file: ClaudeFile, project: Path | None, *, trusted: bool) -> None:
        self.file, self._project = file, project
        self._trusted = trusted or project is None
        # In patterns a leading slash means the project, or in the user's file the folder of that file.
        self._base = project or file.path.parent
        self.data: dict[str, Any] = {}
        self._lines: dict[KeyPath, int] = {}
        self._honoured: list[str] = []
        self._unsupported: list[UnsupportedSetting] = []
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
        """Set ba's setting at ``path`` for the setting ``theirs`` of the file."""
        holder = self.data
        for part in path[:-1]:
            holder = holder.setdefault(part, {})
        holder[path[-1]] = value
        self._lines[path] = self.file.at(*theirs)
        self._honoured.append(".".join(theirs))

    def _not(self, why: str, *theirs: str) -> None:
        self._unsupported.append(UnsupportedSetting(".".join(theirs), why, self.file.at(*theirs)))

    def _rules(self) -> None:
        groups = self.file.data.get("permissions")
        groups = cast("dict[str, Any]", groups) if isinstance(groups, dict) else {}
        known: set[tuple[str, str]] = set()
        for verdict in (*STRICT, "allow") if self._trusted else STRICT:
            # Rules outside of ``permissions``, which Claude Code ignores, are common too.
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
            self._unsupported.append(UnsupportedSetting(key, "expected text", line))
            return
        made = translated(text, verdict, self._base)
        outside = verdict == "allow" and self._project is not None and any(map(self._leads_out, made.rules))
        if made.why or outside:
            why = made.why or "a project allows no files outside its folder; add the rule to your own settings"
            self._unsupported.append(UnsupportedSetting(f"{key} {_named(text)}", why, line))
            return
        rules: list[Any] = self.data.setdefault("permissions", {}).setdefault(verdict, [])
        for rule in made.rules:
            self._lines["permissions", verdict, len(rules)] = line
            rules.append(rule)
        self._honoured.append(key)

    def _leads_out(self, rule: str) -> bool:
        """Return whether ``rule`` covers files outside the project."""
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
                # Trust in a folder approves its servers.
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
    """Return the part of ``rule`` that can't contain a key: rules saved from a question may contain one."""
    head = _QUOTED.split(rule)[0]
    return one_line(head if head == rule else f"{head}…", LONGEST_NAME)


def _listed(value: Any) -> list[Any]:
    return list(cast("list[Any]", value)) if isinstance(value, list) else [] if value is None else [value]


def _commands(hooks: Mapping[str, Any]) -> Iterator[object]:
    """Yield each command or prompt of a group of hooks."""
    for groups in hooks.values():
        for group in _listed(groups):
            yield from _listed(cast("dict[str, Any]", group).get("hooks") if isinstance(group, dict) else None)


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
