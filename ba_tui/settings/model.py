"""What can be set, with its meaning, type and default. Where a value comes from is the business of ``layers``."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ba_tui.core.events import Mode


def _no_switch(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


def _no_yaml_switch(value: object) -> object:
    """YAML reads ``off`` as a switch."""
    return "off" if value is False else value


def _web_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("expected an address that begins with http:// or https://")
    return value


Whole = Annotated[int, BeforeValidator(_no_switch)]
Address = Annotated[str, AfterValidator(_web_address)]
Amount = Annotated[float, BeforeValidator(_no_switch), Field(ge=0, allow_inf_nan=False)]
SandboxMode = Annotated[Literal["required", "auto", "off"], BeforeValidator(_no_yaml_switch)]
Effort = Literal["low", "medium", "high", "xhigh", "max"]
Kind = Literal["anthropic", "openai", "scripted"]
Notify = Literal["bell", "osc9", "osc777", "off"]
OutputFormat = Literal["text", "json", "stream-json"]
LogLevel = Literal["debug", "info", "warning", "error"]


class Group(BaseModel):
    """Descriptions are written out: reading them from docstrings would cost a tenth of a second at each start."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Profile(Group):
    """A way to models: whose wire format, at which address, with which key."""

    kind: Kind = Field(
        default="openai", description="The wire format: anthropic, openai (any OpenAI-compatible server) or scripted."
    )
    base_url: Address | None = Field(default=None, description="The server's address; the vendor's own when not set.")
    api_key_env: str | None = Field(
        default=None, description="The environment variable that holds the API key; not set for servers that need none."
    )


def _rule_entry(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get("rule"), str):
        return cast("dict[str, Any]", value)
    raise ValueError("expected text or a group with rule")


RuleEntry = Annotated[str | dict[str, Any], BeforeValidator(_rule_entry)]


class Rules(Group):
    """Permission rules such as `edit_file(src/**)`. deny wins over ask, ask over allow, whatever the layer.

    A rule with conditions is a group: `{rule: shell, when: {timeout: {max: 60}}, timeout: 300, on_timeout: deny}`.
    """

    allow: tuple[RuleEntry, ...] = Field(default=(), description="What may run without asking.")
    ask: tuple[RuleEntry, ...] = Field(default=(), description="What always asks.")
    deny: tuple[RuleEntry, ...] = Field(default=(), description="What never runs.")


class Web(Group):
    """Fetching web pages."""

    allow_private: tuple[str, ...] = Field(
        default=(), description="Hosts, *.domains or networks that may be fetched although they are private."
    )


class WebSearch(Group):
    """Searching the web."""

    backend: Literal["", "anthropic", "brave", "duckduckgo", "searxng", "tavily"] = Field(
        default="", description="Who is asked: anthropic, brave, duckduckgo, searxng or tavily; none when empty."
    )
    url: str = Field(default="", description="The address of your own server, for searxng.")
    api_key_env: str = Field(
        default="",
        description="The variable with the key; by default ANTHROPIC_API_KEY, BRAVE_API_KEY or TAVILY_API_KEY.",
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


def _hook_event(name: str) -> str:
    known = [*HOOK_EVENTS, *HOOK_EVENTS.values()]
    if name not in known:
        close = difflib.get_close_matches(name, known, 1, 0.5)
        raise ValueError(f"expected an event{f'; did you mean {close[0]}?' if close else ' such as pre_tool'}")
    return name


Seconds = Annotated[float, BeforeValidator(_no_switch), Field(gt=0, le=600)]


class Commands(Group):
    """How commands, Python code and a project's own tools run. In the sandbox, and the limits outside it as well."""

    network: bool = Field(default=False, description="Whether the sandbox lets commands use the network.")
    domains: tuple[str, ...] = Field(
        default=(), description="Hosts and *.domains that commands may reach although their network is off."
    )
    write: tuple[Path, ...] = Field(default=(), description="Further files and folders that may be written in it.")
    read: tuple[Path, ...] = Field(default=(), description="Further ones that may be read in it, such as in your home.")
    memory_gb: Amount = Field(default=8, description="Memory of one process, in GB; 0 for no limit.")
    file_size_gb: Amount = Field(default=10, description="The largest file that may be written, in GB; 0 for no limit.")
    processes: Annotated[Whole, Field(ge=0)] = Field(
        default=1024, description="Processes and threads that may run at a time; 0 for no limit."
    )
    skill_timeout: Seconds = Field(default=30, description="Seconds that a script of a skill gets.")


class ChildEnvironment(Group):
    """Which variables programs get that ba starts."""

    keep: tuple[str, ...] = Field(
        default=(),
        description="Variables to hand on although their names look like secrets, such as GITHUB_TOKEN or CI_*.",
    )


class HookCommand(Group):
    """One command of a hook."""

    type: Literal["command"] = Field(default="command", description="Always command.")
    command: str = Field(min_length=1, description="A shell command; it reads JSON on standard input.")
    timeout: Seconds = Field(default=60, description="Seconds after which it is ended.")


class HookGroup(Group):
    """Commands for the tools that `matcher` names; for one command, `command` may stand here itself."""

    matcher: str = Field(default="", description="Tools: names with | between, or a regular expression; all if empty.")
    hooks: tuple[HookCommand, ...] = Field(default=(), description="The commands.")
    command: str = Field(default="", description="The one command.")
    timeout: Seconds = Field(default=60, description="Seconds after which it is ended.")

    @model_validator(mode="after")
    def _usable(self) -> HookGroup:
        if not self.command.strip() and not self.hooks:
            raise ValueError("expected a command")
        try:
            re.compile("" if self.matcher == "*" else self.matcher)
        except (re.error, RecursionError, OverflowError):
            raise ValueError(f"expected a regular expression under matcher: {self.matcher[:40]!r} is none") from None
        return self


Share = Annotated[float, BeforeValidator(_no_switch), Field(gt=0, lt=1)]
Rounds = Annotated[int, BeforeValidator(_no_switch), Field(ge=0, le=100)]
Strategy = Literal["auto", "truncate", "extract", "summarize"]


class Compression(Group):
    """How a conversation that fills the window is shortened. Nothing is lost: `/compact undo` brings it back."""

    enabled: bool = Field(default=True, description="Whether it happens by itself; /compact works in any case.")
    strategy: Strategy = Field(
        default="auto",
        description="How: extract (rules), summarize (a model writes notes), truncate (the oldest goes) or auto.",
    )
    trigger: Share = Field(default=0.8, description="How full the window may get, less what an answer needs.")
    target: Share = Field(default=0.5, description="How full it is at most afterwards.")
    keep_rounds: Rounds = Field(
        default=5, description="The last rounds that stay word for word, beside the running one."
    )
    extract_below: Annotated[Whole, Field(ge=0)] = Field(
        default=30, description="With auto: fewer messages than this are never summarized."
    )
    summarize_from: Annotated[Whole, Field(ge=0)] = Field(
        default=50, description="With auto: from so many messages on they are, when the hourly budget allows."
    )
    enable_llm_summarization: bool = Field(default=True, description="With auto: whether a model may be asked at all.")
    hourly_budget: Amount = Field(
        default=0.10, description="With auto: US dollars an hour for summaries. A model without a price is not asked."
    )
    model: str = Field(default="", description="The model that writes summaries; the conversation's own when empty.")
    summary_tokens: Annotated[Whole, Field(ge=200, le=20_000)] = Field(
        default=2_000, description="The longest summary, in tokens."
    )
    summary_timeout: Seconds = Field(default=60, description="Seconds to wait for one.")
    cache_size: Annotated[Whole, Field(ge=0, le=100_000)] = Field(default=1_000, description="Summaries that are kept.")
    cache_hours: Amount = Field(default=24, description="Hours that they are kept.")
    refocus_rounds: Rounds = Field(
        default=5, description="Say goal and open todos again after so many rounds; 0 for never."
    )

    @model_validator(mode="after")
    def _descends(self) -> Compression:
        if self.target >= self.trigger:
            raise ValueError("expected a target below trigger")
        return self


class Settings(Group):
    """All settings of ba. Environment: `BA_` and the name (`BA_MODEL`), groups with `__` (`BA_PERMISSIONS__DENY`)."""

    model_config = ConfigDict(title="Settings of ba", protected_namespaces=())

    model: str = Field(
        default="", description="The model to ask, as PROVIDER/MODEL; the provider is one of `providers`."
    )
    max_output_tokens: Annotated[Whole, Field(ge=1)] | None = Field(
        default=None, description="The longest answer to ask for, in tokens; by default what fits the model."
    )
    effort: Effort | None = Field(
        default=None, description="How hard a model that can think should think; by default the vendor's own setting."
    )
    providers: dict[str, Profile] = Field(
        default={}, description="Ways to models, by name; anthropic and openai are built in."
    )
    permission_mode: Mode = Field(
        default="default",
        description="What may run without asking: default (reads), accept-edits (edits here too), plan (reads only), "
        "auto (all but commands outside a sandbox and what rules ask about).",
    )
    secrets: Literal["redact", "ask", "allow"] = Field(
        default="redact",
        description="Keys and passwords in results of tools: kept from the model (redact), asked about, or shared.",
    )
    permissions: Rules = Field(default=Rules(), description="Rules that decide before the mode does.")
    sandbox: SandboxMode = Field(
        default="auto",
        description="Whether commands run in a sandbox: auto (when there is one), required (else not at all) or off.",
    )
    commands: Commands = Field(default=Commands(), description="What commands may use and reach.")
    environment: ChildEnvironment = Field(default=ChildEnvironment(), description="What commands get told.")
    add_dirs: tuple[Path, ...] = Field(default=(), description="Further folders to work in beside the project.")
    max_loops: Annotated[Whole, Field(ge=1, le=500)] = Field(
        default=100, description="Model requests within one turn before you are asked whether to go on."
    )
    max_cost: Annotated[Amount, Field(gt=0)] | None = Field(
        default=None, description="US dollars after which a session stops, counted from when it was opened."
    )
    max_tokens: Annotated[Whole, Field(ge=1)] | None = Field(
        default=None, description="Tokens, in and out, after which a session stops, counted likewise."
    )
    compression: Compression = Field(default=Compression(), description="How long conversations are shortened.")
    request_timeout: Annotated[float, BeforeValidator(_no_switch), Field(gt=0, allow_inf_nan=False)] = Field(
        default=600, description="Seconds to wait for a model that sends nothing."
    )
    system_prompt_file: Path | None = Field(
        default=None, description="A file with a system prompt to use instead of the built-in one."
    )
    append_system_prompt: str = Field(default="", description="Text added to the system prompt.")
    theme: str = Field(
        default="auto", description="Colours of the app, by the name of a theme; auto follows the terminal."
    )
    notify: Notify = Field(
        default="bell",
        description="How the app calls you when you look elsewhere: bell, osc9 or osc777 (a notice), or off.",
    )
    output_format: OutputFormat = Field(
        default="text", description="What `ba -p` prints: text, json (one object) or stream-json (one event a line)."
    )
    web: Web = Field(default=Web(), description="How pages are fetched.")
    web_search: WebSearch = Field(default=WebSearch(), description="How the web is searched.")
    hooks: dict[Annotated[str, AfterValidator(_hook_event)], tuple[HookGroup, ...]] = Field(
        default={},
        description="Commands to run on events, by the event's name, such as pre_tool or PreToolUse.",
    )
    tool_dirs: tuple[Path, ...] = Field(default=(), description="Further folders with tools of yours.")
    log_level: LogLevel = Field(
        default="info", description="How much goes into the log file: debug, info, warning or error."
    )
