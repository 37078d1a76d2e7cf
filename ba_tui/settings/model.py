"""What can be set, with its meaning, type and default. Where a value comes from is the business of ``layers``."""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

from annotated_types import Ge, Gt, Le, MinLen

from ba_tui.core.events import Mode
from ba_tui.core.text.wording import nearest
from ba_tui.core.values import frozen
from ba_tui.settings.fields import (
    NUMBER,
    Address,
    Amount,
    Count,
    FieldCheck,
    Rounds,
    Seconds,
    Share,
    Whole,
    about,
    finite,
)


def _no_yaml_switch(value: object) -> object:
    """YAML reads ``off`` as a switch."""
    return "off" if value is False else value


SandboxMode = Annotated[Literal["required", "auto", "off"], FieldCheck(_no_yaml_switch, first=True)]
Effort = Literal["low", "medium", "high", "xhigh", "max"]
Temperature = Annotated[float, NUMBER, Ge(0), Le(2), FieldCheck(finite)]
Kind = Literal["anthropic", "openai", "scripted"]
Notify = Literal["bell", "osc9", "osc777", "off"]
OutputFormat = Literal["text", "json", "stream-json"]
LogLevel = Literal["debug", "info", "warning", "error"]


PerMinute = Annotated[Whole, Ge(1), Le(1_000_000_000)]


@frozen
class SettingsGroup:
    """Settings that stand together. Descriptions are written out: reading them from docstrings would be slow."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


@frozen
class ModelProfile(SettingsGroup):
    """A way to models: whose wire format, at which address, with which key."""

    kind: Kind = field(
        default="openai",
        metadata=about("The wire format: anthropic, openai (any OpenAI-compatible server) or scripted."),
    )
    base_url: Address | None = field(
        default=None, metadata=about("The server's address; the vendor's own when not set.")
    )
    api_key_env: str | None = field(
        default=None,
        metadata=about("The environment variable that holds the API key; not set for servers that need none."),
    )
    requests_per_minute: PerMinute | None = field(
        default=None, metadata=about("Requests that are sent within a minute at most; further ones wait.")
    )
    tokens_per_minute: PerMinute | None = field(
        default=None, metadata=about("Tokens, in and out, within a minute; once they are used up, requests wait.")
    )


@frozen
class ModelSlot(SettingsGroup):
    """A model for one kind of work, and how it is asked."""

    model: str = field(default="", metadata=about("The model, as PROVIDER/MODEL."))
    temperature: Temperature | None = field(
        default=None, metadata=about("How freely it answers, from 0 to 2; by default the model's own.")
    )
    max_tokens: Annotated[Whole, Ge(1)] | None = field(
        default=None, metadata=about("The longest answer to ask it for, in tokens; by default what fits the work.")
    )
    effort: Effort | None = field(
        default=None, metadata=about("How hard it should think; by default the vendor's own setting.")
    )


def _rule_entry(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get("rule"), str):
        return cast("dict[str, Any]", value)
    raise ValueError("expected text or a group with rule")


RuleEntry = Annotated[str | dict[str, Any], FieldCheck(_rule_entry, first=True)]


@frozen
class RuleSettings(SettingsGroup):
    """Permission rules such as `edit_file(src/**)`. deny wins over ask, ask over allow, whatever the layer.

    A rule with conditions is a group: `{rule: shell, when: {timeout: {max: 60}}, timeout: 300, on_timeout: deny}`.
    """

    allow: tuple[RuleEntry, ...] = field(default=(), metadata=about("What may run without asking."))
    ask: tuple[RuleEntry, ...] = field(default=(), metadata=about("What always asks."))
    deny: tuple[RuleEntry, ...] = field(default=(), metadata=about("What never runs."))


@frozen
class WebSettings(SettingsGroup):
    """Fetching web pages."""

    allow_private: tuple[str, ...] = field(
        default=(), metadata=about("Hosts, *.domains or networks that may be fetched although they are private.")
    )


@frozen
class WebSearch(SettingsGroup):
    """Searching the web."""

    backend: Literal["", "anthropic", "brave", "duckduckgo", "searxng", "tavily"] = field(
        default="", metadata=about("Who is asked: anthropic, brave, duckduckgo, searxng or tavily; none when empty.")
    )
    url: str = field(default="", metadata=about("The address of your own server, for searxng."))
    api_key_env: str = field(
        default="",
        metadata=about("The variable with the key; by default ANTHROPIC_API_KEY, BRAVE_API_KEY or TAVILY_API_KEY."),
    )


HOOK_EVENTS = {
    "session_start": "SessionStart",
    "session_end": "SessionEnd",
    "user_prompt": "UserPromptSubmit",
    "pre_tool": "PreToolUse",
    "permission_request": "PermissionRequest",
    "post_tool": "PostToolUse",
    "post_tool_failure": "PostToolUseFailure",
    "pre_compact": "PreCompact",
    "notification": "Notification",
    "stop": "Stop",
    "subagent_start": "SubagentStart",
    "subagent_stop": "SubagentStop",
}
"""What hooks can be set for: our name, and the one by which Claude Code calls the same."""
FUTURE_HOOK_EVENTS = frozenset({"subagent_start", "subagent_stop", "SubagentStart", "SubagentStop"})
"""Those that are refused as long as ba starts no sub-agents."""


def _hook_event(name: str) -> str:
    known = [*HOOK_EVENTS, *HOOK_EVENTS.values()]
    if name not in known:
        close = nearest(name, known)
        raise ValueError(f"expected an event{f'; did you mean {close}?' if close else ' such as pre_tool'}")
    if name in FUTURE_HOOK_EVENTS:
        raise ValueError(f"{name} is not available yet: ba starts no sub-agents; remove this hook")
    return name


@frozen
class CommandSettings(SettingsGroup):
    """How commands, Python code and a project's own tools run. In the sandbox, and the limits outside it as well."""

    network: bool = field(default=False, metadata=about("Whether the sandbox lets commands use the network."))
    domains: tuple[str, ...] = field(
        default=(), metadata=about("Hosts and *.domains that commands may reach although their network is off.")
    )
    write: tuple[Path, ...] = field(default=(), metadata=about("Further files and folders that may be written in it."))
    read: tuple[Path, ...] = field(
        default=(), metadata=about("Further ones that may be read in it, also files with secrets that are named here.")
    )
    git_hooks: bool = field(
        default=False, metadata=about("Whether git commands of the model run a repository's hooks.")
    )
    memory_gb: Amount = field(default=8, metadata=about("Memory of one process, in GB; 0 for no limit."))
    file_size_gb: Amount = field(
        default=10, metadata=about("The largest file that may be written, in GB; 0 for no limit.")
    )
    processes: Count = field(
        default=1024, metadata=about("Processes and threads that may run at a time; 0 for no limit.")
    )
    output_mb: Annotated[Amount, Gt(0)] = field(
        default=64, metadata=about("The largest result that is stored whole, in MB; of a larger one, head and tail.")
    )
    skill_timeout: Seconds = field(default=30, metadata=about("Seconds that a script of a skill gets."))


@frozen
class ChildEnvironment(SettingsGroup):
    """Which variables programs get that ba starts."""

    keep: tuple[str, ...] = field(
        default=(),
        metadata=about("Variables to hand on although their names look like secrets, such as GITHUB_TOKEN or CI_*."),
    )


@frozen
class HookSetting(SettingsGroup):
    """One command of a hook."""

    command: Annotated[str, MinLen(1)] = field(metadata=about("A shell command; it reads JSON on standard input."))
    type: Literal["command"] = field(default="command", metadata=about("Always command."))
    timeout: Seconds = field(default=60, metadata=about("Seconds after which it is ended."))


@frozen
class HookGroup(SettingsGroup):
    """Commands for the tools that `matcher` names; for one command, `command` may stand here itself."""

    matcher: str = field(
        default="", metadata=about("Tools: names with | between, or a regular expression; all if empty.")
    )
    hooks: tuple[HookSetting, ...] = field(default=(), metadata=about("The commands."))
    command: str = field(default="", metadata=about("The one command."))
    timeout: Seconds = field(default=60, metadata=about("Seconds after which it is ended."))

    def __post_init__(self) -> None:
        if not self.command.strip() and not self.hooks:
            raise ValueError("expected a command")
        try:
            re.compile("" if self.matcher == "*" else self.matcher)
        except (re.error, RecursionError, OverflowError):
            raise ValueError(f"expected a regular expression under matcher: {self.matcher[:40]!r} is none") from None


Strategy = Literal["auto", "truncate", "extract", "summarize"]


@frozen
class CompressionSettings(SettingsGroup):
    """How a conversation that fills the window is shortened. Nothing is lost: `/compact undo` brings it back."""

    enabled: bool = field(default=True, metadata=about("Whether it happens by itself; /compact works in any case."))
    strategy: Strategy = field(
        default="auto",
        metadata=about("How: extract (rules), summarize (a model writes notes), truncate (the oldest goes) or auto."),
    )
    trigger: Share = field(default=0.8, metadata=about("How full the window may get, less what an answer needs."))
    target: Share = field(default=0.5, metadata=about("How full it is at most afterwards."))
    keep_rounds: Rounds = field(
        default=5, metadata=about("The last rounds that stay word for word, beside the running one.")
    )
    extract_below: Count = field(
        default=30, metadata=about("With auto: fewer messages than this are never summarized.")
    )
    summarize_from: Count = field(
        default=50, metadata=about("With auto: from so many messages on they are, when the hourly budget allows.")
    )
    enable_llm_summarization: bool = field(
        default=True, metadata=about("With auto: whether a model may be asked at all.")
    )
    hourly_budget: Amount = field(
        default=0.10,
        metadata=about("With auto: US dollars an hour for summaries. A model without a price is not asked."),
    )
    summary_tokens: Annotated[Whole, Ge(200), Le(20_000)] = field(
        default=2_000, metadata=about("The longest summary, in tokens.")
    )
    summary_timeout: Seconds = field(default=60, metadata=about("Seconds to wait for one."))
    cache_size: Annotated[Whole, Ge(0), Le(100_000)] = field(default=1_000, metadata=about("Summaries that are kept."))
    cache_hours: Amount = field(default=24, metadata=about("Hours that they are kept."))
    refocus_rounds: Rounds = field(
        default=5, metadata=about("Say goal and open todos again after so many rounds; 0 for never.")
    )

    def __post_init__(self) -> None:
        if self.target >= self.trigger:
            raise ValueError("expected a target below trigger")


@frozen
class CheckpointSettings(SettingsGroup):
    """What is kept of the files before a turn changes any, for `/rewind`."""

    max_file_mb: Annotated[Amount, Gt(0), Le(1_000)] = field(
        default=10, metadata=about("The largest file that is kept, in MB; a larger one can't be rewound.")
    )


@frozen
class Settings(SettingsGroup):
    """All settings of ba. Environment: `BA_` and the name (`BA_MODEL`), groups with `__` (`BA_PERMISSIONS__DENY`)."""

    model: str = field(
        default="", metadata=about("The model to ask, as PROVIDER/MODEL; the provider is one of `providers`.")
    )
    max_output_tokens: Annotated[Whole, Ge(1)] | None = field(
        default=None, metadata=about("The longest answer to ask for, in tokens; by default what fits the model.")
    )
    effort: Effort | None = field(
        default=None,
        metadata=about("How hard a model that can think should think; by default the vendor's own setting."),
    )
    temperature: Temperature | None = field(
        default=None, metadata=about("How freely the model answers, from 0 to 2; by default the model's own.")
    )
    small: ModelSlot = field(
        default=ModelSlot(),
        metadata=about("The model for small work, such as summaries; by default the vendor's cheap one (models.yaml)."),
    )
    reasoning: ModelSlot = field(
        default=ModelSlot(), metadata=about("The model that answers in plan mode; by default the main one.")
    )
    fallback_model: str = field(
        default="", metadata=about("The model that answers while the main one is overloaded, as PROVIDER/MODEL.")
    )
    fallback_after: Annotated[Whole, Ge(1), Le(5)] = field(
        default=3, metadata=about("Answers in a row that say so before the fallback model is asked.")
    )
    providers: dict[str, ModelProfile] = field(
        default_factory=dict[str, ModelProfile],
        metadata=about("Ways to models, by name; anthropic and openai are built in."),
    )
    permission_mode: Mode = field(
        default="default",
        metadata=about(
            "What may run without asking: default (reads), accept-edits (edits here too), plan (reads only), "
            "auto (all but commands outside a sandbox and what rules ask about)."
        ),
    )
    secrets: Literal["redact", "ask", "allow"] = field(
        default="redact",
        metadata=about("Keys and passwords in results of tools: kept from the model (redact), asked about, or shared."),
    )
    permissions: RuleSettings = field(default=RuleSettings(), metadata=about("Rules that decide before the mode does."))
    sandbox: SandboxMode = field(
        default="auto",
        metadata=about(
            "Whether commands run in a sandbox: auto (when there is one), required (else not at all) or off."
        ),
    )
    commands: CommandSettings = field(default=CommandSettings(), metadata=about("What commands may use and reach."))
    environment: ChildEnvironment = field(default=ChildEnvironment(), metadata=about("What commands get told."))
    add_dirs: tuple[Path, ...] = field(default=(), metadata=about("Further folders to work in beside the project."))
    max_loops: Annotated[Whole, Ge(1), Le(500)] = field(
        default=100, metadata=about("Model requests within one turn before you are asked whether to go on.")
    )
    max_cost: Annotated[Amount, Gt(0)] | None = field(
        default=None, metadata=about("US dollars after which a session stops, counted from when it was opened.")
    )
    max_tokens: Annotated[Whole, Ge(1)] | None = field(
        default=None, metadata=about("Tokens, in and out, after which a session stops, counted likewise.")
    )
    compression: CompressionSettings = field(
        default=CompressionSettings(), metadata=about("How long conversations are shortened.")
    )
    checkpoints: CheckpointSettings = field(default=CheckpointSettings(), metadata=about("Which files can be rewound."))
    request_timeout: Annotated[float, NUMBER, Gt(0), FieldCheck(finite)] = field(
        default=600, metadata=about("Seconds to wait for a model: until its answer begins, and for each line of it.")
    )
    system_prompt_file: Path | None = field(
        default=None, metadata=about("A file with a system prompt to use instead of the built-in one.")
    )
    append_system_prompt: str = field(default="", metadata=about("Text added to the system prompt."))
    theme: str = field(
        default="auto", metadata=about("Colours of the app, by the name of a theme; auto follows the terminal.")
    )
    notify: Notify = field(
        default="bell",
        metadata=about("How the app calls you when you look elsewhere: bell, osc9 or osc777 (a notice), or off."),
    )
    output_format: OutputFormat = field(
        default="text",
        metadata=about("What `ba -p` prints: text, json (one object) or stream-json (one event a line)."),
    )
    web: WebSettings = field(default=WebSettings(), metadata=about("How pages are fetched."))
    web_search: WebSearch = field(default=WebSearch(), metadata=about("How the web is searched."))
    hooks: dict[Annotated[str, FieldCheck(_hook_event)], tuple[HookGroup, ...]] = field(
        default_factory=dict[str, tuple[HookGroup, ...]],
        metadata=about("Commands to run on events, by the event's name, such as pre_tool or PreToolUse."),
    )
    tool_dirs: tuple[Path, ...] = field(default=(), metadata=about("Further folders with tools of yours."))
    log_level: LogLevel = field(
        default="info", metadata=about("How much goes into the log file: debug, info, warning or error.")
    )
