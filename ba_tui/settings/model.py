"""All settings, with description, type and default. ``layers`` reads their values."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from ba_tui.core.events import Mode
from ba_tui.core.values import frozen
from ba_tui.flags import Format
from ba_tui.settings.fields import MODEL, NUMBER, Amount, FieldCheck, Setter, SettingsGroup, Whole, about, finite
from ba_tui.settings.sections.agents import AgentSettings, CheckpointSettings, PlanSettings, TeamSettings
from ba_tui.settings.sections.data import AnalysisSettings, MemorySettings, SourceSettings, memory_switch, source_name
from ba_tui.settings.sections.models import (
    CompressionSettings,
    Effort,
    LocalSettings,
    ModelProfile,
    ModelSlot,
    Temperature,
)
from ba_tui.settings.sections.tools import (
    ChildEnvironment,
    CommandSettings,
    HookGroup,
    McpSettings,
    RuleSettings,
    SandboxMode,
    WebSearch,
    WebSettings,
    hook_event,
)

Notify = Literal["bell", "osc9", "osc777", "off"]
LogLevel = Literal["debug", "info", "warning", "error"]


@frozen
class Settings(SettingsGroup):
    """All settings of ba. Environment: `BA_` and the name (`BA_MODEL`), groups with `__` (`BA_PERMISSIONS__DENY`)."""

    model: str = field(
        default="",
        metadata=about("The model to ask, as PROVIDER/MODEL; the provider is one of `providers`.", MODEL),
    )
    max_output_tokens: Annotated[Whole, Ge(1)] | None = field(
        default=None,
        metadata=about("The longest answer to ask for, in tokens; by default what fits the model.", "project"),
    )
    effort: Effort | None = field(
        default=None,
        metadata=about("How much effort a reasoning model spends; by default the vendor's setting.", "project"),
    )
    temperature: Temperature | None = field(
        default=None, metadata=about("Sampling temperature, from 0 to 2; by default the model's own.", "project")
    )
    small: ModelSlot = field(
        default=ModelSlot(),
        metadata=about("The model for small work, such as summaries; by default the vendor's cheap one (models.yaml)."),
    )
    reasoning: ModelSlot = field(
        default=ModelSlot(), metadata=about("The model that answers in plan mode; by default the main one.")
    )
    local: LocalSettings = field(
        default=LocalSettings(), metadata=about("How ba runs a model file on this machine (`local:PATH`).")
    )
    fallback_model: str = field(
        default="",
        metadata=about(
            "The model that answers while the main one is overloaded, as PROVIDER/MODEL.",
            MODEL,
        ),
    )
    fallback_after: Annotated[Whole, Ge(1), Le(5)] = field(
        default=3, metadata=about("Overload errors in a row before the fallback model is asked.", "project")
    )
    providers: dict[str, ModelProfile] = field(
        default_factory=dict[str, ModelProfile],
        metadata=about("Model providers, by name; anthropic and openai are built in."),
    )
    permission_mode: Mode = field(
        default="default",
        metadata=about(
            "What runs without asking: default (reads), accept-edits (also edits in this folder), plan (nothing but "
            "reads may run), auto (everything except commands outside the sandbox and what a rule asks about).",
            Setter(stricter=("plan",)),
        ),
    )
    secrets: Literal["redact", "ask", "allow"] = field(
        default="redact",
        metadata=about(
            "Keys and passwords in tool results: hide them from the model (redact), ask, or allow.",
            Setter(stricter=("redact",)),
        ),
    )
    permissions: RuleSettings = field(
        default=RuleSettings(), metadata=about("Permission rules; they come before the mode.")
    )
    sandbox: SandboxMode = field(
        default="auto",
        metadata=about(
            "Sandbox for commands: auto (when available), required (refuse to run without one) or off.",
            Setter(stricter=("required",)),
        ),
    )
    commands: CommandSettings = field(
        default=CommandSettings(), metadata=about("Limits and network access of commands.")
    )
    environment: ChildEnvironment = field(
        default=ChildEnvironment(), metadata=about("Environment variables passed to commands.")
    )
    add_dirs: tuple[Path, ...] = field(
        default=(),
        metadata=about(
            "More folders to work in, besides the project.",
            Setter("asked", question="to work in {value} too", names="path"),
        ),
    )
    max_loops: Annotated[Whole, Ge(1), Le(500)] = field(
        default=100, metadata=about("Model requests in one turn before ba asks whether to continue.", "project")
    )
    max_turns: Annotated[Whole, Ge(1)] | None = field(
        default=None,
        metadata=about(
            "Your turns in one call with --input-format stream-json; further prompts are refused.", "project"
        ),
    )
    error_budget: Annotated[Whole, Ge(1), Le(500)] = field(
        default=20,
        metadata=about(
            "Tool calls and sub-agents that fail in a row, without a success, before a turn ends.", "project"
        ),
    )
    max_cost: Annotated[Amount, Gt(0)] | None = field(
        default=None,
        metadata=about(
            "US dollars after which a session stops, counted from when it was opened.", Setter("project", lower=True)
        ),
    )
    max_tokens: Annotated[Whole, Ge(1)] | None = field(
        default=None,
        metadata=about(
            "Tokens, in and out, after which a session stops, counted from when it was opened.",
            Setter("project", lower=True),
        ),
    )
    compression: CompressionSettings = field(
        default=CompressionSettings(), metadata=about("How long conversations are compressed.")
    )
    checkpoints: CheckpointSettings = field(
        default=CheckpointSettings(), metadata=about("Limits of what /rewind can restore.")
    )
    request_timeout: Annotated[float, NUMBER, Gt(0), FieldCheck(finite)] = field(
        default=600,
        metadata=about("Timeout for a model in seconds: until the answer begins, and between its lines.", "project"),
    )
    system_prompt: str | None = field(
        default=None,
        metadata=about("A system prompt to use instead of the built-in one; only as the flag --system-prompt."),
    )
    system_prompt_file: Path | None = field(
        default=None,
        metadata=about(
            "A file with a system prompt to use instead of the built-in one.",
            Setter("asked", question="to replace the system prompt with {value}", names="path"),
        ),
    )
    other_instructions: tuple[Literal["gemini", "cursor"], ...] = field(
        default=(),
        metadata=about("Other assistants' files to read too: gemini (GEMINI.md), cursor (.cursor/rules).", "project"),
    )
    append_system_prompt: str = field(default="", metadata=about("Text added to the system prompt.", "project"))
    theme: str = field(
        default="auto",
        metadata=about("Colours of the app, by the name of a theme; auto follows the terminal.", "anyone"),
    )
    notify: Notify = field(
        default="bell",
        metadata=about(
            "How ba notifies you while its window is not focused: bell, osc9 or osc777 (desktop notification), or off.",
            "project",
        ),
    )
    output_format: Format = field(
        default="text",
        metadata=about(
            "What `ba -p` prints: text, json (one object), stream-json (one event a line) or claude-stream-json "
            "(the lines of Claude Code).",
            "anyone",
        ),
    )
    web: WebSettings = field(default=WebSettings(), metadata=about("Which addresses may be fetched."))
    web_search: WebSearch = field(default=WebSearch(), metadata=about("Web search."))
    analysis: AnalysisSettings = field(
        default=AnalysisSettings(), metadata=about("Datasets, queries, and what a model sees of them.")
    )
    sources: dict[Annotated[str, FieldCheck(source_name)], SourceSettings] = field(
        default_factory=dict[str, SourceSettings],
        metadata=about("Databases and engines that queries can run on, by name (guide: sources)."),
    )
    mcp: McpSettings = field(default=McpSettings(), metadata=about("MCP servers: other people's tools."))
    memory: Annotated[MemorySettings, FieldCheck(memory_switch, first=True)] = field(
        default=MemorySettings(), metadata=about("What is remembered across sessions.", Setter(stricter=(False,)))
    )
    plans: PlanSettings = field(default=PlanSettings(), metadata=about("Limits of plans (guide: plans)."))
    team: TeamSettings = field(default=TeamSettings(), metadata=about("Teams of agents."))
    agents: AgentSettings = field(default=AgentSettings(), metadata=about("Limits of sub-agents (guide: agents)."))
    hooks: dict[Annotated[str, FieldCheck(hook_event)], tuple[HookGroup, ...]] = field(
        default_factory=dict[str, tuple[HookGroup, ...]],
        metadata=about("Hooks: shell commands by event, such as pre_tool or PreToolUse.", "project"),
    )
    features: tuple[str, ...] = field(
        default=(), metadata=about("Features of installed packages to load, by name (guide: features).")
    )
    tool_dirs: tuple[Path, ...] = field(default=(), metadata=about("More folders with your own tools."))
    log_level: LogLevel = field(default="info", metadata=about("Log level: debug, info, warning or error.", "project"))
