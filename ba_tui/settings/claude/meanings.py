"""Why ba does not go by a setting of Claude Code, one reason a key. What ba goes by stands in ``layer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
        "ba lists skills by itself; see skills.yaml in ba guide skills",
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
"""By the key of a setting, why it has no effect and what to do instead."""
UNKNOWN = "Claude Code's schema and ba know no such setting"

MODES: Mapping[str, str] = {"default": "default", "acceptEdits": "accept-edits", "plan": "plan"}
"""By Claude Code's name of a permission mode, ours."""
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
"""Values that ask for what ba does anyway."""
OWN_VARIABLES = (
    r"(?:CLAUDE|ANTHROPIC|MCP|OTEL|VERTEX_REGION|DISABLE|ENABLE)_\w+|BASH_(?:DEFAULT|MAX)_\w+|MAX_\w*TOKENS"
    r"|USE_BUILTIN_RIPGREP|SLASH_COMMAND_TOOL_CHAR_BUDGET|API_TIMEOUT_MS|IS_DEMO|FORCE_AUTOUPDATE_PLUGINS"
)
"""Variables that Claude Code reads itself."""
EFFORTS = ("low", "medium", "high", "xhigh", "max")
