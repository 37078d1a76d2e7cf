"""The commands of ``ba mcp``: list, add, remove, test and log in to MCP servers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

import typer

from ba_tui.cli.config import Cwd, folder_of, load, print_facts, print_line, say
from ba_tui.core.errors import BaError, UsageError, run_loop
from ba_tui.core.ports.mcp import McpServers, ServerConfig, ServerState
from ba_tui.core.text.json_text import read_jsonc
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, did_you_mean, one_line
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.permissions.trust.grants import Trust
from ba_tui.providers.credentials import TOKENS
from ba_tui.resources import UserFolders, places, project_root, read_regular, save_whole
from ba_tui.settings import printable
from ba_tui.settings.document import read_document
from ba_tui.settings.editing import put_value, unset_value
from ba_tui.settings.environment import holds_key
from ba_tui.settings.keys import TokenStore
from ba_tui.settings.mcp_configured import FoundServers, McpChoices, ServerPlaces, changed, check_entry, found_servers
from ba_tui.settings.mcp_files import MAX_BYTES, PROJECT_FILE, SERVERS, read_entry
from ba_tui.settings.mcp_servers import ConfiguredServer, is_reference
from ba_tui.settings.sections.tools import server_name

if TYPE_CHECKING:
    from ba_tui.settings.layers import LoadedSettings

Name = Annotated[str, typer.Argument(metavar="NAME", help="The server's name, as `ba mcp list` shows it.")]

Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
CANCELLED = 130
FAILED = 2
SHOWN = 100
LOOPBACK = "http://127.0.0.1:"
Scope: TypeAlias = Literal["local", "user", "project"]
SCOPES: tuple[Scope, ...] = ("local", "project", "user")
_ENVIRONMENT_NAME = regex(r"[A-Za-z_]\w*")
_HEADER = regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
app = typer.Typer(no_args_is_help=True)
HIDDEN = "(hidden)"
ScopeOption = Annotated[
    str | None,
    typer.Option(
        "-s", "--scope", metavar="SCOPE", help="local (you, in this project), project (.mcp.json) or user (everywhere)."
    ),
]


class FolderServers:
    """The servers configured for the folder ``cwd``, by default the current one."""

    def __init__(self, cwd: Path | None) -> None:
        self.folder = folder = folder_of(cwd)
        self.where: UserFolders = places()
        self.root = project_root(folder)
        self.loaded: LoadedSettings = load(folder)
        self.trusted = Trust(self.where).trusted(self.root)
        profiles = self.loaded.settings.providers.values()
        withheld = TOKENS.union(each.api_key_env for each in profiles if each.api_key_env)
        at = ServerPlaces(self.where, self.root, self.trusted, withheld)
        self.found: FoundServers = found_servers(self.loaded, at)

    def get(self, name: str) -> ConfiguredServer:
        """Return the server ``name``. Raises UsageError if there is none."""
        if server := self.found.find(name):
            return server
        names = [each.name for each in self.found.servers]
        hint = f"Servers: {', '.join(names)}." if names else "Add one: ba mcp add --help"
        raise UsageError(f"There is no MCP server {name!r}{did_you_mean(name, names) or '.'}", hint)

    def usable(self, name: str) -> ConfiguredServer:
        """Return the server ``name`` if it can be connected to. Raises UsageError."""
        server = self.get(name)
        if not server.config.trusted:
            raise UsageError(f"{name} belongs to this folder, which is not trusted.", "Review it, then run: ba trust")
        if server.config.trouble:
            raise UsageError(f"{name} can't be used: {server.config.trouble}.", f"It is set in {server.config.source}.")
        return server


@app.command()
def add(  # noqa: PLR0913 - typer reads one parameter a flag
    name: Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, - and _.")],
    target: Annotated[
        list[str], typer.Argument(metavar="COMMAND-OR-URL", help="After --, a command may have options.")
    ],
    scope: ScopeOption = None,
    transport: Annotated[
        str | None, typer.Option("-t", "--transport", metavar="KIND", help="stdio, http or sse; by default what fits.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option("-e", "--env", metavar="NAME=VALUE", help="A variable for the program.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("-H", "--header", metavar="NAME: VALUE", help="A header of each request.")
    ] = None,
    client_id: Annotated[str | None, typer.Option(metavar="ID", help="OAuth: the app registered there.")] = None,
    callback_port: Annotated[int | None, typer.Option(metavar="PORT", help="OAuth: the port to come back to.")] = None,
    cwd: Cwd = None,
) -> int:
    """Add a server: a command to start, or the address of one that runs.

    \b
    ba mcp add github -e TOKEN='${GITHUB_TOKEN}' -- npx -y @modelcontextprotocol/server-github
    ba mcp add --transport http linear https://mcp.linear.app/mcp
    """
    if transport not in {None, "stdio", "http", "sse"}:
        raise UsageError(f"There is no transport {transport!r}.", "Use stdio, http or sse.")
    oauth = {"clientId": client_id, "callbackPort": callback_port}
    given = {key: value for key, value in oauth.items() if value is not None}
    _write(name, entry_of(target, transport, env or (), header or (), given), scope, cwd)
    return 0


@app.command("add-json")
def add_json(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, - and _.")],
    text: Annotated[str, typer.Argument(metavar="JSON", help="One server as .mcp.json has it.")],
    scope: ScopeOption = None,
    cwd: Cwd = None,
) -> int:
    """Add a server from JSON such as '{"command": "npx", "args": ["-y", "PACKAGE"]}'."""
    try:
        entry: Any = json.loads(text)
    except ValueError as error:
        raise UsageError(f"That is no valid JSON: {error}.", "Put it into single quotes.") from error
    if not isinstance(entry, dict):
        raise UsageError("That is no JSON object.", 'Such as {"command": "npx", "args": ["-y", "PACKAGE"]}')
    _write(name, entry, scope, cwd)  # pyright: ignore[reportUnknownArgumentType] - what it holds is checked there
    return 0


@app.command("list")
def list_(json_: Json = False, cwd: Cwd = None) -> int:
    """Print every server that is configured here: whether it is used, whose it is, and what it runs."""
    known = FolderServers(cwd)
    servers = known.found.servers
    if json_:
        print_line(json.dumps([_facts(each) for each in servers], indent=2, ensure_ascii=True))
    else:
        _print(known)
    for problem in (*known.found.problems, *known.found.remarks):
        say(problem)
    return 0


@app.command()
def get(name: Name, json_: Json = False, cwd: Cwd = None) -> int:
    """Print all there is to know of one server. Values of variables and headers are hidden."""
    server = FolderServers(cwd).get(name)
    facts = _facts(server) | {
        "env": _discreet(server.written.env),
        "headers": _discreet(server.written.headers),
        "tools_off": sorted(server.config.tools_off),
        "starting_s": server.config.connect_timeout,
        "calling_s": server.config.call_timeout,
        "sandbox": server.config.sandboxed if server.config.transport == "stdio" else None,
    }
    if json_:
        print_line(json.dumps(facts, indent=2, ensure_ascii=True))
        return 0
    print_facts({key: _words(value) for key, value in facts.items() if value not in (None, "", [], {})})
    return 0


@app.command()
def remove(name: Name, scope: ScopeOption = None, cwd: Cwd = None) -> int:
    """Remove a server, and the tokens of its login."""
    known = FolderServers(cwd)
    wanted = (_scope(scope),) if scope else SCOPES
    holding: list[Scope] = [each for each in wanted if name in named(known.where, known.root, each)]
    if not holding:
        server = known.get(name)
        raise UsageError(
            f"{name} is configured in {server.config.source}.", "Remove it there, or switch it off in /mcp."
        )
    if len(holding) > 1:
        raise UsageError(f"{name} is there more than once: {', '.join(holding)}.", "Say which with --scope.")
    server = known.found.find(name)
    trusted = known.trusted
    path = remove_server(known.where, known.root, holding[0], name)
    if server and server.config.url:
        TokenStore(known.where).drop(server.config)
    print_line(f"Removed {name} from {path}")
    _trust_again(known, holding[0], trusted=trusted)
    return 0


@app.command("reset-project-choices")
def reset_project_choices(cwd: Cwd = None) -> int:
    """Forget which servers and tools you switched off in this project.

    Whether its .mcp.json counts is part of trusting the folder: ba trust --revoke takes that back.
    """
    known = FolderServers(cwd)
    done = McpChoices(known.where, known.root).reset()
    print_line("All servers and tools of this project are on again." if done else "Nothing was switched off here.")
    return 0


@app.command("test")
def try_(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="By default every server that is used.")] = None,
    json_: Json = False,
    cwd: Cwd = None,
) -> int:
    """Connect to a server and list what it offers, with the time it took; exit 2 when one fails.

    Servers of --mcp-config count for one start of ba alone, so they are not known here.
    """

    known = FolderServers(cwd)
    chosen = [known.usable(name)] if name else [each for each in known.found.servers if not each.off]
    if not chosen:
        raise UsageError("No MCP server is used here.", "Add one: ba mcp add --help")
    return try_servers(known, [each.config for each in chosen], as_json=json_)


@app.command()
def login(name: Name, cwd: Cwd = None) -> int:
    """Log in to a server that asks for OAuth. The tokens go into the keyring, else into a file only you can read."""

    known = FolderServers(cwd)
    return log_in(known, known.usable(name).config)


@app.command()
def logout(name: Name, cwd: Cwd = None) -> int:
    """Forget the tokens of a server."""
    known = FolderServers(cwd)
    done = TokenStore(known.where).drop(known.get(name).config)
    print_line(f"Logged out of {name}." if done else f"There was no login to {name}.")
    return 0


def _write(name: str, entry: Mapping[str, Any], scope: str | None, cwd: Path | None) -> None:
    known, chosen = FolderServers(cwd), _scope(scope)
    path = write_server(known.where, known.root, chosen, name, entry)
    print_line(f"Added {name} to {path}")
    if names := literal_secrets(entry):
        shared = ", which others may read" if chosen == "project" else ""
        say(f"{path}{shared} now holds {', '.join(names)} as it is; '${{NAME}}' reads an environment variable instead.")
    _trust_again(known, chosen, trusted=known.trusted)
    say(f"Try it: ba mcp test {name}")


def _trust_again(known: FolderServers, scope: Scope, *, trusted: bool) -> None:
    """Trust the folder again: a user who changes the project's servers in a trusted folder approves the change."""
    if scope != "project":
        return

    if trusted:
        trust = Trust(known.where)
        trust.vouch(trust.look(known.root), [known.root / ".mcp.json"])
    else:
        say("The servers of this folder count once you trust it: ba trust")


def _scope(text: str | None) -> Scope:
    for scope in SCOPES:
        if scope == (text or "local"):
            return scope
    raise UsageError(f"There is no scope {text!r}.", f"Use {', '.join(SCOPES)}.")


def _print(known: FolderServers) -> None:
    servers = known.found.servers
    if not servers:
        sys.stderr.write(f"No MCP servers. Add one: ba mcp add --help (or see mcp in {places().settings})\n")
        return
    names, states = max(len(each.name) for each in servers), max(len(_state(each)) for each in servers)
    for each in servers:
        row = f"{each.name:<{names}}  {_state(each):<{states}}  {each.config.scope:<7}  {each.config.transport:<5}"
        print_line(printable(f"{row}  {one_line(_target(each), 200)}"))


def _state(server: ConfiguredServer) -> str:
    if not server.config.enabled:
        return "off"
    return "not trusted" if not server.config.trusted else "broken" if server.config.trouble else "on"


def _target(server: ConfiguredServer) -> str:
    return redact(server.target)


def _facts(server: ConfiguredServer) -> dict[str, Any]:
    config = server.config
    return {
        "name": server.name,
        "state": _state(server),
        "scope": config.scope,
        "source": config.source,
        "transport": config.transport,
        "target": _target(server),
        "why": config.trouble or server.off,
        "hides": list(server.hides),
    }


def _discreet(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the values with references as written; every other value is hidden, because it may be a secret."""
    return {name: value if is_reference(value) else HIDDEN for name, value in pairs.items()}


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())  # pyright: ignore[reportUnknownVariableType]
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)  # pyright: ignore[reportUnknownArgumentType]


def entry_of(
    target: Sequence[str], transport: str | None, env: Sequence[str], headers: Sequence[str], oauth: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of ``ba mcp add`` as an entry of ``.mcp.json``. Raises UsageError."""
    first, *args = target
    address = re.match(r"https?://", first) is not None
    kind = transport or ("http" if address else "stdio")
    if kind == "stdio":
        if address:
            raise UsageError(f"{first} is an address.", "Use --transport http or sse, or leave it out.")
        if headers or oauth:
            raise UsageError("Headers and logins are for servers with an address.", "Use --env for a program.")
        entry: dict[str, Any] = {"type": "stdio", "command": first, "args": args}
        return entry | ({"env": _pairs("--env", env, "=", _ENVIRONMENT_NAME)} if env else {})
    if not address:
        raise UsageError(f"{first} is no address for transport {kind}.", "It begins with http:// or https://.")
    if args or env:
        what = f"argument {args[0]}" if args else "--env"
        raise UsageError(f"A server with an address takes no {what}.", "Use --header, or put -- before a command.")
    entry = {"type": kind, "url": first}
    if headers:
        entry["headers"] = _pairs("--header", headers, ":", _HEADER)
    return entry | ({"oauth": dict(oauth)} if oauth else {})


def _pairs(option: str, texts: Sequence[str], sign: str, name: re.Pattern[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        key, found, value = text.partition(sign)
        if not found or not name.fullmatch(key.strip()):
            # The value may be a secret, so it is not shown.
            raise UsageError(f"{option} takes NAME{sign}VALUE.", f"Such as {option} TOKEN{sign}'${{TOKEN}}'")
        pairs[key.strip()] = value.strip() if sign == ":" else value
    return pairs


def literal_secrets(entry: Mapping[str, Any]) -> list[str]:
    """Return the names of variables and headers in ``entry`` whose value is a key in plain text."""
    groups = (entry.get("env"), entry.get("headers"))
    pairs = [pair for group in groups if isinstance(group, dict) for pair in cast("dict[str, Any]", group).items()]
    secret = (name for name, value in pairs if "${" not in str(value) and (holds_key(name) or _is_header(name)))
    return list(secret)


def _is_header(name: str) -> bool:
    return name.lower() in {"authorization", "x-api-key", "api-key", "cookie"}


def write_server(where: UserFolders, root: Path, scope: Scope, name: str, entry: Mapping[str, Any]) -> Path:
    """Add a server; return the file it was written to.

    Raises:
        UsageError: the entry is unusable, the name exists already, or the file is broken. StorageError.
    """
    try:
        server_name(name)
    except ValueError as error:
        raise UsageError(f"{name!r} can't be a server's name: {error}.") from error
    check_entry(entry)
    if name in named(where, root, scope):
        raise UsageError(f"There is a server {name} already (scope {scope}).", f"ba mcp remove {name} -s {scope}")
    if scope == "local":
        choices = McpChoices(where, root)
        choices.add(name, entry)
        return choices.path
    if scope == "user":
        settings = read_entry(dict(entry)).settings
        return put_value(where, f"mcp.servers.{name}", changed(settings) if settings else {})
    path = root / PROJECT_FILE
    data = _project(path)
    data.setdefault(SERVERS, {})[name] = dict(entry)
    save_whole(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    return path


def remove_server(where: UserFolders, root: Path, scope: Scope, name: str) -> Path:
    """Remove an existing server; return the file that had it. Raises UsageError, StorageError."""
    if scope == "local":
        choices = McpChoices(where, root)
        choices.remove(name)
        return choices.path
    if scope == "user":
        unset_value(where, f"mcp.servers.{name}")
        return where.settings
    path = root / PROJECT_FILE
    data = _project(path)
    del data[SERVERS][name]
    save_whole(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    return path


def named(where: UserFolders, root: Path, scope: Scope) -> list[str]:
    """Return the names of the servers of one scope as stored by ``ba mcp``. Raises UsageError for a broken file."""
    if scope == "local":
        return [each.name for each in McpChoices(where, root).servers().entries]
    if scope == "user":
        document = read_document(where.settings)
        group: Any = document.data.get("mcp") if document else None
        servers: Any = cast("dict[str, Any]", group).get("servers") if isinstance(group, dict) else None
        return list(cast("dict[str, Any]", servers)) if isinstance(servers, dict) else []
    return list(_project(root / PROJECT_FILE).get(SERVERS, {}))


def _project(path: Path) -> dict[str, Any]:
    """Return the content of ``.mcp.json``. Raises UsageError if it can't be rewritten without loss."""
    try:
        text = read_regular(path, MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read.", "Check the file.") from error
    try:
        data: Any = json.loads(text)
    except ValueError as error:
        try:
            read_jsonc(text)
        except ValueError:
            raise UsageError(f"{path} is no valid JSON: {error}.", "Correct the file first.") from error
        raise UsageError(f"{path} has comments, which would be lost.", "Edit the file by hand.") from error
    servers: Any = cast("dict[str, Any]", data).get(SERVERS, {}) if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        raise UsageError(f'{path} has no {{"{SERVERS}": {{…}}}}.', "Correct the file first.")
    return cast("dict[str, Any]", data)


def try_servers(known: FolderServers, configs: Sequence[ServerConfig], *, as_json: bool) -> int:
    """Connect to each of ``configs`` in turn and print what it offers; return 2 if a server can't be reached."""
    try:
        rows = run_loop(_tested(known, configs, as_json=as_json))
    except KeyboardInterrupt:
        return CANCELLED
    if as_json:
        print_line(json.dumps(rows if len(rows) > 1 else rows[0], indent=2, ensure_ascii=True))
    return 0 if all(row["ok"] for row in rows) else FAILED


async def _tested(known: FolderServers, configs: Sequence[ServerConfig], *, as_json: bool) -> list[dict[str, Any]]:
    from ba_tui.assembly import tools_alone  # noqa: PLC0415 - loads the sandbox and what else commands need

    tools = await asyncio.to_thread(tools_alone, known.folder, {})
    servers = tools.guarded.context.offered(McpServers)
    rows: list[dict[str, Any]] = []
    try:
        for config in configs:
            started = time.monotonic()
            try:
                state = await servers.connect(config.name)
            except BaError as error:
                rows.append({"name": config.name, "ok": False, "error": str(error), "hint": error.hint})
                if not as_json:
                    print_line(f"{config.name}: {one_line(error.with_hint, 400)}")
                continue
            seconds = time.monotonic() - started
            rows.append(_row(state, seconds))
            if not as_json:
                _show(state, seconds)
    finally:
        await tools.close()
    return rows


def _row(state: ServerState, seconds: float) -> dict[str, Any]:
    return {
        "name": state.name,
        "ok": True,
        "seconds": round(seconds, 3),
        "server": state.title,
        "protocol": state.protocol,
        "tools": [
            {
                "name": tool.full_name,
                "standing": tool.standing,
                "description": tool.description,
                "trouble": tool.trouble,
            }
            for tool in state.tools
        ],
        "resources": [resource.uri for resource in state.resources],
        "prompts": [prompt.name for prompt in state.prompts],
        "notes": list(state.notes),
    }


def _show(state: ServerState, seconds: float) -> None:
    version = f", protocol {state.protocol}" if state.protocol else ""
    print_line(f"{state.name}: connected in {seconds:.2f} s ({state.title or 'no title'}{version})")
    groups = (
        ("tool", [(tool.name, tool.trouble or tool.description) for tool in state.tools]),
        ("resource", [(each.uri, each.description or each.name) for each in state.resources]),
        ("prompt", [(each.name, each.description) for each in state.prompts]),
    )
    for noun, items in groups:
        if not items:
            continue
        print_line(f"  {count(len(items), noun)}")
        widest = min(max(len(name) for name, _ in items), 40)
        for name, text in items[:SHOWN]:
            print_line(f"    {name:<{widest}}  {one_line(text, 100)}".rstrip())
        if len(items) > SHOWN:
            print_line(f"    … and {len(items) - SHOWN} more")
    for note in state.notes:
        print_line(f"  note: {note}")


def log_in(known: FolderServers, config: ServerConfig) -> int:
    """Log in to ``config``: print the address, open it when the user presses Enter, and wait. Ctrl+C cancels."""
    try:
        run_loop(_logged_in(TokenStore(known.where), config))
    except KeyboardInterrupt:
        say("Cancelled: nothing was saved.")
        return CANCELLED
    print_line(f"Logged in to {config.name}.")
    return 0


async def _logged_in(tokens: TokenStore, config: ServerConfig) -> None:
    from ba_tui.features.mcp.client.host import oauth  # noqa: PLC0415 - only a login needs it

    logins = await oauth(tokens)
    at_terminal = sys.stdin.isatty()
    loop, page = asyncio.get_running_loop(), LoginConsole()
    if at_terminal:
        loop.add_reader(sys.stdin, lambda: page.typed(sys.stdin.readline()))
    try:
        await logins.login(config, lambda address: page.show(config.name, address, at_terminal=at_terminal))
    finally:
        if at_terminal:
            loop.remove_reader(sys.stdin)


class LoginConsole:
    """The console of a login: shows the address and reads what the user types."""

    def __init__(self) -> None:
        self._address = ""

    def show(self, name: str, address: str, *, at_terminal: bool) -> None:
        """Print the address; a browser opens only on request."""
        self._address = address
        host = urlsplit(address).hostname or ""
        say(f"Log in to {name} at {host}. Open this address:")
        print_line(address)
        if at_terminal:
            enter = "Enter opens it in your browser. " if can_open() else ""
            say(f"{enter}Browser on another machine? Paste the address it ends at. Ctrl+C cancels.")
        sys.stdout.flush()

    def typed(self, line: str) -> None:
        """Open the address for an empty line; pass on a pasted address that a browser elsewhere could not reach."""
        text = line.strip()
        if text.startswith(LOOPBACK):
            asyncio.get_running_loop().run_in_executor(None, _visit, text)
        elif not text and line and self._address and can_open():
            asyncio.get_running_loop().run_in_executor(None, webbrowser.open, self._address)


def can_open() -> bool:
    """Return whether a graphical browser can be started here."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _visit(address: str) -> None:
    # The listener answers 400 to an address of another login.
    with suppress(OSError, HTTPException):
        parts = urlsplit(address)
        connection = HTTPConnection("127.0.0.1", parts.port, timeout=10)
        connection.request("GET", f"{parts.path}?{parts.query}")
        connection.getresponse().read(1_000)
