"""Settings of tools: permission rules, commands, hooks, MCP servers and the web."""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from annotated_types import Ge, Gt, Le

from ba_tui.core.text.patterns import regex, wildcard_problem
from ba_tui.core.text.wording import nearest
from ba_tui.core.values import frozen
from ba_tui.settings.fields import (
    Amount,
    Count,
    FieldCheck,
    Seconds,
    Setter,
    SettingsGroup,
    Whole,
    about,
    off_as_word,
    web_address,
)

SandboxMode = Annotated[Literal["required", "auto", "off"], FieldCheck(off_as_word, first=True)]


def _rule_entry(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get("rule"), str):
        return cast("dict[str, Any]", value)
    raise ValueError("expected text or a group with rule")


def _wildcards(value: str) -> str:
    if problem := wildcard_problem(value):
        raise ValueError(f"expected a name or a pattern, but {problem}")
    return value


RuleEntry = Annotated[str | dict[str, Any], FieldCheck(_rule_entry, first=True)]


@frozen
class RuleSettings(SettingsGroup):
    """Permission rules such as `edit_file(src/**)`. deny wins over ask, ask over allow, whatever the layer.

    A rule with conditions is a group: `{rule: shell, when: {timeout: {max: 60}}, timeout: 300, on_timeout: deny}`.
    """

    allow: tuple[RuleEntry, ...] = field(default=(), metadata=about("What may run without asking.", "project"))
    ask: tuple[RuleEntry, ...] = field(
        default=(), metadata=about("What always asks.", Setter("anyone", refused=(("on_timeout", "allow"),)))
    )
    deny: tuple[RuleEntry, ...] = field(
        default=(), metadata=about("What never runs.", Setter("anyone", refused=(("on_timeout", "allow"),)))
    )


@frozen
class CommandSettings(SettingsGroup):
    """How commands, Python code and a project's own tools run. In the sandbox, and the limits outside it as well."""

    network: bool = field(default=False, metadata=about("Whether the sandbox lets commands use the network."))
    domains: tuple[str, ...] = field(
        default=(), metadata=about("Hosts and *.domains that commands may reach while their network is off.")
    )
    write: tuple[Path, ...] = field(
        default=(), metadata=about("More files and folders that commands may write in the sandbox.")
    )
    read: tuple[Path, ...] = field(
        default=(),
        metadata=about(
            "More files and folders that commands may read in the sandbox, also files with secrets that you list here."
        ),
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
        default=64,
        metadata=about(
            "The largest result stored in full, in MB; of larger results ba keeps the beginning and the end."
        ),
    )
    skill_timeout: Seconds = field(default=30, metadata=about("Timeout for scripts of skills, in seconds."))


@frozen
class ChildEnvironment(SettingsGroup):
    """Which variables programs get that ba starts."""

    keep: tuple[Annotated[str, FieldCheck(_wildcards)], ...] = field(
        default=(),
        metadata=about(
            "Variables to pass to commands although their names look like secrets, such as GITHUB_TOKEN or CI_*."
        ),
    )
    set: dict[str, str] = field(
        default_factory=dict[str, str],
        metadata=about("Variables that ba adds for commands and hooks, by name; none whose name looks like a secret."),
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


def hook_event(name: str) -> str:
    known = [*HOOK_EVENTS, *HOOK_EVENTS.values()]
    if name not in known:
        close = nearest(name, known)
        raise ValueError(f"expected an event{f'; did you mean {close}?' if close else ' such as pre_tool'}")
    return name


@frozen
class HookSetting(SettingsGroup):
    """One command of a hook, or one question to the small model."""

    command: str = field(default="", metadata=about("A shell command; it reads JSON on standard input."))
    type: Literal["command", "prompt"] = field(default="command", metadata=about("What runs: a command or a prompt."))
    prompt: str = field(
        default="", metadata=about("A condition that the small model checks; $ARGUMENTS stands for the JSON.")
    )
    timeout: Seconds = field(default=60, metadata=about("Timeout in seconds."))

    def __post_init__(self) -> None:
        if not getattr(self, self.type).strip():
            raise ValueError(f"expected a {self.type}")
        if self.command and self.prompt:
            raise ValueError("expected a command or a prompt, not both")


@frozen
class HookGroup(SettingsGroup):
    """Commands for the tools that `matcher` names; for one command, write `command` here instead."""

    matcher: str = field(
        default="", metadata=about("Tools it applies to: names separated by |, or a regular expression; empty for all.")
    )
    hooks: tuple[HookSetting, ...] = field(default=(), metadata=about("The commands."))
    command: str = field(default="", metadata=about("The command to run."))
    timeout: Seconds = field(default=60, metadata=about("Timeout in seconds."))

    def __post_init__(self) -> None:
        if not self.command.strip() and not self.hooks:
            raise ValueError("expected a command")
        try:
            re.compile("" if self.matcher == "*" else self.matcher)
        except (re.error, RecursionError, OverflowError):
            raise ValueError("expected a valid regular expression as matcher") from None


Transport: TypeAlias = Literal["stdio", "http", "sse"]
SERVER_NAME = regex(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*_?")
LONGEST_NAME = 64


def server_name(name: str) -> str:
    """Return ``name``. Raises ValueError when the names of tools could not hold it."""
    if len(name) > LONGEST_NAME or not SERVER_NAME.fullmatch(name):
        raise ValueError("expected a name of letters, digits, - and single _, such as github")
    return name


def server_url(url: str) -> str:
    """Return ``url``. Raises ValueError for one that is no web address, unless a variable may make it one."""
    return url if "${" in url else web_address(url)


@frozen
class OAuthSettings(SettingsGroup):
    """How to sign in to a server that asks for OAuth; by default ba registers itself there."""

    client_id: str = field(default="", metadata=about("The id of an app that is registered with the server."))
    client_secret: str = field(default="", metadata=about("Its secret, as ${VARIABLE} or ${keyring:NAME}."), repr=False)
    scopes: tuple[str, ...] = field(default=(), metadata=about("Scopes to ask for; by default what the server names."))
    callback_port: Annotated[Whole, Ge(1), Le(65_535)] | None = field(
        default=None, metadata=about("Port on 127.0.0.1 that the browser comes back to; by default any free one.")
    )


@frozen
class ServerSettings(SettingsGroup):
    """One MCP server: a command to start, or an address."""

    type: Transport | None = field(
        default=None, metadata=about("stdio (a command), http or sse; by default stdio with command, http with url.")
    )
    command: str = field(default="", metadata=about("The program to start."))
    args: tuple[str, ...] = field(default=(), metadata=about("Its arguments."))
    env: dict[str, str] = field(
        default_factory=dict[str, str],
        metadata=about("Its environment variables, beside those that commands get; ${NAME} and ${keyring:NAME} work."),
        repr=False,
    )
    cwd: Path | None = field(default=None, metadata=about("The folder to start it in; by default the project."))
    url: Annotated[str, FieldCheck(server_url)] | None = field(
        default=None, metadata=about("The address of a server that runs already.")
    )
    headers: dict[str, str] = field(
        default_factory=dict[str, str],
        metadata=about("HTTP headers of each request to it, such as Authorization: Bearer ${TOKEN}."),
        repr=False,
    )
    startup_timeout: Seconds = field(default=30, metadata=about("Timeout for connecting, in seconds."))
    timeout: Seconds = field(default=120, metadata=about("Timeout for a call of one of its tools, in seconds."))
    enabled: bool = field(default=True, metadata=about("Whether the server is used."))
    disabled_tools: tuple[str, ...] = field(default=(), metadata=about("Tools of it that are not used."))
    sandbox: bool = field(default=True, metadata=about("Whether its program runs in the sandbox, as commands do."))
    network: bool = field(default=True, metadata=about("Whether its program reaches the network from the sandbox."))
    sampling: bool = field(
        default=False, metadata=about("Whether it may ask your model; each request still asks you first.")
    )
    oauth: OAuthSettings = field(default=OAuthSettings(), metadata=about("How to sign in, where it asks for OAuth."))

    def __post_init__(self) -> None:
        if bool(self.command.strip()) == bool(self.url):
            raise ValueError("expected either a command or a url")
        if self.type is not None and (self.type == "stdio") != bool(self.command):
            raise ValueError(f"type {self.type} goes with {'a command' if self.type == 'stdio' else 'a url'}")

    @property
    def transport(self) -> Transport:
        """Return the transport of the server."""
        return self.type or ("stdio" if self.command else "http")


@frozen
class McpSettings(SettingsGroup):
    """MCP servers, and where else ba looks for them."""

    servers: dict[Annotated[str, FieldCheck(server_name)], ServerSettings] = field(
        default_factory=dict[str, ServerSettings], metadata=about("Your MCP servers, by name (guide: mcp).")
    )
    claude: bool = field(
        default=True, metadata=about("Whether the servers that Claude Code has in ~/.claude.json are used too.")
    )
    config: tuple[str, ...] = field(
        default=(), metadata=about("More files with servers, written as .mcp.json is, or such JSON itself.")
    )
    strict: bool = field(default=False, metadata=about("Whether only the servers in mcp.config are used."))


@frozen
class WebSettings(SettingsGroup):
    """Fetching web pages."""

    allow_private: tuple[str, ...] = field(
        default=(),
        metadata=about(
            "Hosts, *.domains or networks that may be fetched although they are private.",
            Setter("asked", question="to fetch from the private address {value}"),
        ),
    )


@frozen
class WebSearch(SettingsGroup):
    """Searching the web."""

    backend: Literal["", "anthropic", "brave", "duckduckgo", "searxng", "tavily"] = field(
        default="",
        metadata=about(
            "Search service: anthropic, brave, duckduckgo, searxng or tavily; empty for none.",
            Setter("asked", question="to search the web with {value}"),
        ),
    )
    url: str = field(
        default="",
        metadata=about(
            "The address of your own server, for searxng.", Setter("asked", question="to send web searches to {value}")
        ),
    )
    api_key_env: str = field(
        default="",
        metadata=about("The variable with the key; by default ANTHROPIC_API_KEY, BRAVE_API_KEY or TAVILY_API_KEY."),
    )
