"""The MCP servers of a project from all files: which one of a name is used, which are off, and the doctor's check.

What the user configures or turns off in one project is saved in the user's config folder, never in the project, and
only readable by the user: it may contain keys.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import yaml

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.contributions import CheckResult
from ba_tui.core.ports.mcp import ServerConfig
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.ingress import within
from ba_tui.resources import UserFolders, exclusive, save_whole, user_home
from ba_tui.settings.claude_files import claude_paths, read_claude_file
from ba_tui.settings.document import load_mapping, read_document
from ba_tui.settings.environment import variables
from ba_tui.settings.keys import read_key
from ba_tui.settings.layers import LoadedSettings, as_data
from ba_tui.settings.mcp_files import (
    PROJECT_FILE,
    ClaudeState,
    ServerEntry,
    ServersFile,
    parse_servers,
    read_claude_state,
    read_entry,
    read_servers,
    tool_safe,
)
from ba_tui.settings.mcp_servers import SCOPES, ConfiguredServer, Origin, Values, configured, no_keyring
from ba_tui.settings.sections.tools import ServerSettings

FLAG = "--mcp-config"
UNTRUSTED = "this folder is not trusted"


@frozen
class FoundServers:
    """``servers``: the strongest of each name, sorted by scope and name. ``problems``, and ``remarks`` on keys without
    effect, have one line each."""

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
    """The user's folders and the project at ``root``, which may be ``trusted``.

    ``withheld``: variables that servers of the project must not receive.
    """

    where: UserFolders
    root: Path
    trusted: bool
    withheld: frozenset[str] = frozenset()


def found_servers(loaded: LoadedSettings, at: ServerPlaces) -> FoundServers:
    """Return the servers of the project, also those that are off or not trusted. Reads files; raises nothing."""
    return _Search(loaded, at).found()


def check_files(texts: Iterable[str]) -> None:
    """Raise UsageError when one of ``texts``, the values of --mcp-config, can't be read or has an unusable server."""
    for text in texts:
        file = _named(text)
        for problem in file.problems:
            if file.problem or any(each.entry.problem for each in file.entries):
                raise UsageError(f"{problem}.", f"Check {FLAG}.")


def _named(text: str) -> ServersFile:
    """Return the servers of a flag's value, which is a path or JSON."""
    if text.lstrip().startswith("{"):
        return parse_servers(FLAG, text)
    path = Path(text).expanduser()
    return read_servers(path) or ServersFile(str(path), problem="there is no such file")


class _Search:
    """A search through all files."""

    def __init__(self, loaded: LoadedSettings, at: ServerPlaces) -> None:
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
        """Yield all servers, the strongest first."""
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
        # Last: the user's permission rules name servers, so a project's server must not take the name of the user's.
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
        # Keyring entries are only for servers that the user configured.
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
        """Return why each server is off. ``project``: those in .mcp.json, which Claude Code's settings may turn off,
        even in an untrusted project."""
        found = dict.fromkeys(claude.off, f"it is off in {claude.file}") if claude else dict[str, str]()
        for path, of_project in claude_paths(self._at.root) if project else ():
            file = read_claude_file(path, self._at.root if of_project else None)
            given: Any = file.data.get("disabledMcpjsonServers") if file else None
            names = cast("list[Any]", given) if isinstance(given, list) else []
            found |= {tool_safe(str(each)): f"it is off in {path}" for each in names}
        return found | dict.fromkeys(self._choices.off(), "you switched it off in this project")


def _name_taken(server: ConfiguredServer, stronger: ConfiguredServer) -> str:
    """Return why a server of the project is not used, with advice."""
    name, yours = server.name, stronger.config.source
    return f"{name} in {server.config.source} is not used: your own server {name} ({yours}) counts. Rename one of them"


def _switched(server: ConfiguredServer, off: Mapping[str, str], tools: frozenset[str]) -> ConfiguredServer:
    """Return ``server`` with its state on or off, and its tools that are off."""
    config = server.config
    why = server.off or off.get(server.name, "") or ("" if config.trusted else UNTRUSTED)
    enabled = config.enabled and server.name not in off
    return replace(server, config=replace(config, enabled=enabled, tools_off=config.tools_off | tools), off=why)


def changed(settings: ServerSettings) -> dict[str, Any]:
    """Return ``settings`` as data for config.yaml, without default values."""
    plain = ServerSettings(command="x") if settings.command else ServerSettings(url="http://x")
    known, found = as_data(plain), as_data(settings)
    rest = {key: value for key, value in found.items() if value != known[key] and key != "oauth"}
    oauth = {key: value for key, value in found["oauth"].items() if value not in ("", [], None)}
    return rest | ({"oauth": oauth} if oauth else {})


NAME = "MCP servers"


LeftOut: TypeAlias = Callable[[ServerConfig], Sequence[str]]
"""Returns a line for each tool, prompt or resource that a server last offered and ba can't use."""


def server_checks(
    loaded: LoadedSettings, where: UserFolders, root: Path, trusted: Callable[[Path], bool], left_out: LeftOut
) -> Iterator[CheckResult]:
    """Check the configuration and the saved offers of servers; unlike ``ba mcp test`` it does not connect."""
    found = found_servers(loaded, ServerPlaces(where, root, trusted(root)))
    used = [each for each in found.servers if not each.off]
    missing = [
        f"{each.name}: there is no program {each.config.command[0]!r}"
        for each in used
        if each.config.command and not each.config.trouble and shutil.which(each.config.command[0]) is None
        if "/" not in each.config.command[0]
    ]
    wrong = [*found.problems, *missing]
    text = f"{count(len(found.servers), 'server')} configured, {len(used)} used" if found.servers else "none"
    if wrong:
        lines = "\n".join([*wrong, *found.remarks])
        yield CheckResult(NAME, "warn", f"{text}; {len(wrong)} can't be used", "Correct them: ba mcp list", lines)
    else:
        yield CheckResult(NAME, "ok", text, detail="\n".join(found.remarks))
    for each in used:
        if lines := left_out(each.config):
            said = f"{each.name}: {count(len(lines), 'thing')} that it offers can't be used"
            fix = f"Report it to the maker of the server; see ba mcp test {each.name}"
            yield CheckResult(NAME, "warn", said, fix, "\n".join(lines))
    for path in where.secrets[1:]:
        if path.is_file() and path.stat().st_mode & 0o077:
            yield CheckResult(NAME, "fail", f"{path} can be read by other users", f"chmod 600 {path}")


FILE = "mcp.yaml"
HEADER = """\
# Your MCP servers for single projects, and what you switched off there. `ba mcp` and /mcp write this file.
# Servers for every project are under mcp.servers in config.yaml.
"""
_SERVERS, _OFF, _TOOLS = "servers", "off", "tools_off"


class McpChoices:
    """The choices for the project at ``root``. Reading never raises. All methods use a file: call them off the loop."""

    def __init__(self, where: UserFolders, root: Path) -> None:
        self.path = where.config / FILE
        self._root = str(root)

    def servers(self) -> ServersFile:
        """Return the servers for this project only."""
        document = read_document(self.path)
        if document is None:
            return ServersFile(str(self.path))
        if document.broken:
            return ServersFile(str(self.path), problem=document.problems[0].text, line=document.problems[0].line)
        given = _group(_group(document.data.get(self._root)).get(_SERVERS))
        entries = (
            ServerEntry(name, read_entry(raw), document.line((self._root, _SERVERS, name)))
            for name, raw in given.items()
        )
        return ServersFile(str(self.path), tuple(entries))

    def off(self) -> frozenset[str]:
        """Return the names of servers that are turned off here."""
        return frozenset(_texts(self._read().get(_OFF)))

    def tools_off(self) -> Mapping[str, frozenset[str]]:
        """Return the tools that are turned off here, by server and under the server's own names."""
        return {name: frozenset(_texts(tools)) for name, tools in _group(self._read().get(_TOOLS)).items()}

    def add(self, name: str, entry: Mapping[str, Any]) -> None:
        """Save a server for this project. Raises StorageError."""
        self._change(lambda mine: mine.setdefault(_SERVERS, {}).update({name: dict(entry)}))

    def remove(self, name: str) -> bool:
        """Remove a server of this project; return False when there is none. Raises StorageError."""
        found: list[bool] = []
        self._change(lambda mine: found.append(mine.get(_SERVERS, {}).pop(name, None) is not None))
        return found[0]

    def switch(self, name: str, tool: str = "", *, on: bool) -> None:
        """Turn a server, or one of its tools, on or off in this project. Raises StorageError."""

        def change(mine: dict[str, Any]) -> None:
            holder = mine if not tool else mine.setdefault(_TOOLS, {})
            key, item = (_OFF, name) if not tool else (name, tool)
            kept = [each for each in _texts(holder.get(key)) if each != item]
            holder[key] = kept if on else [*kept, item]

        self._change(change)

    def reset(self) -> bool:
        """Turn everything on in this project; return False when nothing was off. Raises StorageError."""
        found: list[bool] = []
        self._change(lambda mine: found.append(any([mine.pop(_OFF, None), mine.pop(_TOOLS, None)])))
        return found[0]

    def _read(self) -> dict[str, Any]:
        document = read_document(self.path)
        return _group(document.data.get(self._root)) if document else {}

    def _change(self, change: Callable[[dict[str, Any]], object]) -> None:
        with exclusive(self.path.parent):
            kept = load_mapping(self.path)
            mine = deepcopy(_group(kept.get(self._root)))
            change(mine)
            left = {key: value for key, value in mine.items() if value}
            rest = {root: value for root, value in kept.items() if root != self._root}
            whole = {**rest, self._root: left} if left else rest
            if whole != kept:
                text = yaml.safe_dump(whole, allow_unicode=True, sort_keys=False) if whole else ""
                save_whole(self.path, HEADER + text, mode=0o600)


def check_entry(entry: Mapping[str, Any]) -> None:
    """Raise UsageError when ``entry`` does not describe a server, or has unknown keys."""
    read = read_entry(dict(entry))
    if wrong := read.problem or next(iter(read.remarks), ""):
        raise UsageError(f"The server can't be added: {wrong}.", "See ba mcp add --help.")


def _group(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def _texts(value: Any) -> list[str]:
    return [str(each) for each in cast("list[Any]", value)] if isinstance(value, list) else []
