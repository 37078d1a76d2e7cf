"""Which MCP servers count in a project: those of all files, the stronger of two with one name, and what is off."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.mcp import ServerConfig
from ba_tui.core.values import frozen
from ba_tui.ingress import within
from ba_tui.resources import Places, user_home
from ba_tui.settings.claude.files import claude_paths, read_claude_file
from ba_tui.settings.environment import variables
from ba_tui.settings.keys import read_key
from ba_tui.settings.layers import Loaded
from ba_tui.settings.mcp.choices import McpChoices
from ba_tui.settings.mcp.entries import tool_safe
from ba_tui.settings.mcp.expansion import Values, no_keyring
from ba_tui.settings.mcp.files import (
    PROJECT_FILE,
    ClaudeState,
    ServersFile,
    parse_servers,
    read_claude_state,
    read_servers,
)
from ba_tui.settings.mcp.servers import SCOPES, ConfiguredServer, Origin, configured
from ba_tui.settings.sections.mcp import ServerSettings

FLAG = "--mcp-config"
UNTRUSTED = "this folder is not trusted"


@frozen
class FoundServers:
    """``servers``: one of each name, the strongest, by scope and name. One line each: ``problems``, and ``remarks``
    on keys that have no effect."""

    servers: tuple[ConfiguredServer, ...] = ()
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def configs(self) -> tuple[ServerConfig, ...]:
        return tuple(each.config for each in self.servers)

    def find(self, name: str) -> ConfiguredServer | None:
        return next((each for each in self.servers if each.name in {name, tool_safe(name)}), None)


@frozen
class ServerPlaces:
    """Where to look: the person's folders and the project at ``root``, which may be ``trusted``.

    ``withheld``: variables that no server of the project may have.
    """

    where: Places
    root: Path
    trusted: bool
    withheld: frozenset[str] = frozenset()


def found_servers(loaded: Loaded, at: ServerPlaces) -> FoundServers:
    """Return the servers of the project, also those that are off or not trusted. Reads files; raises nothing."""
    return _Search(loaded, at).found()


def check_files(texts: Iterable[str]) -> None:
    """Raises UsageError when one of ``texts``, given with --mcp-config, can't be read, or has a server that can't be
    used: who names a file wants all of it."""
    for text in texts:
        file = _named(text)
        for problem in file.problems:
            if file.problem or any(each.entry.problem for each in file.entries):
                raise UsageError(f"{problem}.", f"Check {FLAG}.")


def _named(text: str) -> ServersFile:
    """The servers of a file that a flag names, or of the JSON that stands there itself."""
    if text.lstrip().startswith("{"):
        return parse_servers(FLAG, text)
    path = Path(text).expanduser()
    return read_servers(path) or ServersFile(str(path), problem="there is no such file")


class _Search:
    """One look through all files."""

    def __init__(self, loaded: Loaded, at: ServerPlaces) -> None:
        self._loaded, self._at = loaded, at
        self._settings = loaded.settings.mcp
        self._choices = McpChoices(at.where, at.root)
        self._variables: dict[str, str] | None = None
        self._problems: list[str] = []
        self._remarks: list[str] = []

    def found(self) -> FoundServers:
        claude = None if self._settings.strict or not self._settings.claude else self._claude()
        every = list(self._every(claude))
        first: dict[str, ConfiguredServer] = {}
        for each in every:
            stronger = first.get(each.name)
            if stronger is None:
                first[each.name] = each
                continue
            first[each.name] = replace(stronger, hides=(*stronger.hides, each.config.source))
            taken = each.config.scope == "project" and stronger.config.scope == "user"
            if taken and self._at.trusted and each.written != stronger.written:
                self._problems.append(_name_taken(each, stronger))
        off = {project: self._off(claude, project=project) for project in (True, False)}
        tools = self._choices.tools_off()
        scopes = list(SCOPES)
        servers = sorted(first.values(), key=lambda each: (scopes.index(each.config.scope), each.name))
        made = tuple(
            _switched(each, off[each.config.scope == "project"], tools.get(each.name, frozenset())) for each in servers
        )
        problems = [
            f"{each.name}: {each.config.trouble} ({each.config.source})" for each in made if each.config.trouble
        ]
        return FoundServers(made, (*self._problems, *problems), tuple(self._remarks))

    def _every(self, claude: ClaudeState | None) -> Iterator[ConfiguredServer]:
        """All servers, the strongest first."""
        for text in self._settings.config:
            yield from self._of(_named(text), "flag")
        if self._settings.strict:
            return
        yield from self._of(self._choices.servers(), "local")
        if claude:
            yield from self._of(claude.local, "local")
        for name, settings in self._settings.servers.items():
            source = self._loaded.sources.get(
                f"mcp.servers.{name}.{'url' if settings.url else 'command'}", "config.yaml"
            )
            yield self._made(name, settings, Origin("user", source))
        if claude:
            yield from self._of(claude.user, "user")
        # Last: the user's permission rules name servers, so no server of a project takes the name of the user's.
        if file := read_servers(self._at.root / PROJECT_FILE, within(self._at.root)):
            yield from self._of(file, "project")

    def _of(self, file: ServersFile, scope: str) -> Iterator[ConfiguredServer]:
        self._problems += file.problems
        self._remarks += file.remarks
        for each in file.entries:
            if each.entry.settings is not None:
                trusted = scope != "project" or self._at.trusted
                origin = Origin(next(known for known in SCOPES if known == scope), file.source, trusted)
                yield self._made(each.name, each.entry.settings, origin)

    def _made(self, name: str, settings: ServerSettings, origin: Origin) -> ConfiguredServer:
        project = origin.scope == "project"
        given = self._given() | {"CLAUDE_PROJECT_DIR": str(self._at.root), "BA_PROJECT_DIR": str(self._at.root)}
        withheld = self._at.withheld if project else frozenset[str]()
        # What the person keeps in their keyring is for servers that they wrote down themselves.
        values = Values(given, no_keyring, withheld) if project else Values(given, self._entry)
        return configured(name, settings, origin, values)

    def _given(self) -> dict[str, str]:
        if self._variables is None:
            self._variables = variables(self._at.where, os.environ)
        return self._variables

    def _entry(self, name: str) -> str:
        key = read_key(name, None, self._at.where, {})
        return key.value if key else ""

    def _claude(self) -> ClaudeState | None:
        return read_claude_state(user_home(), self._at.root)

    def _off(self, claude: ClaudeState | None, *, project: bool) -> dict[str, str]:
        """By server, why it is off. ``project``: of those in .mcp.json, which settings of Claude Code may turn off;
        that counts wherever it stands, also in a project that is not trusted."""
        found = dict.fromkeys(claude.off, f"it is off in {claude.file}") if claude else dict[str, str]()
        for path, of_project in claude_paths(self._at.root) if project else ():
            file = read_claude_file(path, self._at.root if of_project else None)
            given: Any = file.data.get("disabledMcpjsonServers") if file else None
            names = cast("list[Any]", given) if isinstance(given, list) else []
            found |= {tool_safe(str(each)): f"it is off in {path}" for each in names}
        return found | dict.fromkeys(self._choices.off(), "you switched it off in this project")


def _name_taken(server: ConfiguredServer, stronger: ConfiguredServer) -> str:
    """Why a server of the project is not used, and what to do."""
    name, yours = server.name, stronger.config.source
    return f"{name} in {server.config.source} is not used: your own server {name} ({yours}) counts. Rename one of them"


def _switched(server: ConfiguredServer, off: Mapping[str, str], tools: frozenset[str]) -> ConfiguredServer:
    """``server`` with what is off of it."""
    config = server.config
    why = server.off or off.get(server.name, "") or ("" if config.trusted else UNTRUSTED)
    enabled = config.enabled and server.name not in off
    return replace(server, config=replace(config, enabled=enabled, tools_off=config.tools_off | tools), off=why)
