"""The commands of ``ba mcp``. Those that connect to a server are in ``connecting``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ba_tui.cli.config import Cwd, print_facts, print_line, say
from ba_tui.core.errors import UsageError
from ba_tui.core.text.wording import one_line
from ba_tui.features.mcp.cli.known import Json, KnownServers, Name
from ba_tui.resources import places

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ba_tui.features.mcp.cli.adding import Scope
    from ba_tui.settings.mcp.servers import ConfiguredServer

app = typer.Typer(no_args_is_help=True)
HIDDEN = "(hidden)"
ScopeOption = Annotated[
    str | None,
    typer.Option(
        "-s", "--scope", metavar="SCOPE", help="local (you, in this project), project (.mcp.json) or user (everywhere)."
    ),
]


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
    from ba_tui.features.mcp.cli.adding import entry_of  # noqa: PLC0415 - --help must not pay for the settings

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
    known = KnownServers(cwd)
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
    server = KnownServers(cwd).get(name)
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
    from ba_tui.features.mcp.cli.adding import SCOPES, named, remove_server  # noqa: PLC0415 - see add
    from ba_tui.settings.mcp.tokens import TokenStore  # noqa: PLC0415

    known = KnownServers(cwd)
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
    from ba_tui.settings.mcp.choices import McpChoices  # noqa: PLC0415 - see add

    known = KnownServers(cwd)
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
    from ba_tui.features.mcp.cli.connecting import try_servers  # noqa: PLC0415 - see add

    known = KnownServers(cwd)
    chosen = [known.usable(name)] if name else [each for each in known.found.servers if not each.off]
    if not chosen:
        raise UsageError("No MCP server is used here.", "Add one: ba mcp add --help")
    return try_servers(known, [each.config for each in chosen], as_json=json_)


@app.command()
def login(name: Name, cwd: Cwd = None) -> int:
    """Log in to a server that asks for OAuth. The tokens go into the keyring, else into a file only you can read."""
    from ba_tui.features.mcp.cli.connecting import log_in  # noqa: PLC0415 - see add

    known = KnownServers(cwd)
    return log_in(known, known.usable(name).config)


@app.command()
def logout(name: Name, cwd: Cwd = None) -> int:
    """Forget the tokens of a server."""
    from ba_tui.settings.mcp.tokens import TokenStore  # noqa: PLC0415 - see add

    known = KnownServers(cwd)
    done = TokenStore(known.where).drop(known.get(name).config)
    print_line(f"Logged out of {name}." if done else f"There was no login to {name}.")
    return 0


def _write(name: str, entry: Mapping[str, Any], scope: str | None, cwd: Path | None) -> None:
    from ba_tui.features.mcp.cli.adding import literal_secrets, write_server  # noqa: PLC0415 - see add

    known, chosen = KnownServers(cwd), _scope(scope)
    path = write_server(known.where, known.root, chosen, name, entry)
    print_line(f"Added {name} to {path}")
    if names := literal_secrets(entry):
        shared = ", which others may read" if chosen == "project" else ""
        say(f"{path}{shared} now holds {', '.join(names)} as it is; '${{NAME}}' reads an environment variable instead.")
    _trust_again(known, chosen, trusted=known.trusted)
    say(f"Try it: ba mcp test {name}")


def _trust_again(known: KnownServers, scope: Scope, *, trusted: bool) -> None:
    """A person who changes the project's servers in a folder that they trust vouches for the change."""
    if scope != "project":
        return
    from ba_tui.permissions.trust.grants import Trust  # noqa: PLC0415 - see add

    if trusted:
        trust = Trust(known.where)
        trust.vouch(trust.look(known.root), [known.root / ".mcp.json"])
    else:
        say("The servers of this folder count once you trust it: ba trust")


def _scope(text: str | None) -> Scope:
    from ba_tui.features.mcp.cli.adding import SCOPES  # noqa: PLC0415 - see add

    for scope in SCOPES:
        if scope == (text or "local"):
            return scope
    raise UsageError(f"There is no scope {text!r}.", f"Use {', '.join(SCOPES)}.")


def _print(known: KnownServers) -> None:
    from ba_tui.settings import printable  # noqa: PLC0415 - see add

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
    from ba_tui.permissions.secrets.scanner import redact  # noqa: PLC0415 - see add

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
    """References as they are written; every other value may be a secret."""
    from ba_tui.settings.mcp.expansion import is_reference  # noqa: PLC0415 - see add

    return {name: value if is_reference(value) else HIDDEN for name, value in pairs.items()}


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())  # pyright: ignore[reportUnknownVariableType]
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)  # pyright: ignore[reportUnknownArgumentType]
