"""How servers are started, reached and logged in to: sandboxed like commands, with a minimal environment, through the
user's proxies.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import getproxies_environment

from ba_tui.core.effects import WORKING
from ba_tui.core.errors import BaError, StorageError
from ba_tui.core.ports.mcp import McpError, ServerConfig
from ba_tui.core.results import CommandText
from ba_tui.core.tool import Call
from ba_tui.features.mcp.client.values import Sample
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.sandbox.protected_watch import WatchedRun
from ba_tui.permissions.verdicts import Allow, JudgedCall
from ba_tui.processes.values import Program
from ba_tui.settings.keys import TokenStore
from ba_tui.tools.command_runner import REACHING, CommandRunner

if TYPE_CHECKING:
    import httpx2

    from ba_tui.features.mcp.client.oauth import OAuth
    from ba_tui.tools.addresses import WebAddress
    from ba_tui.tools.egress_proxy import HostDecisions, NetworkAccess

INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM", "TMPDIR")
MARKS = ("package.json", "node_modules", "pyvenv.cfg", "pyproject.toml")
"""Files that mark the folder of a package."""
LOGIN_SECONDS = 30.0
ALONE = "no call of this MCP server is running that could ask you; add the host to commands.domains"


class ServerHost:
    """What the servers of a session run with. ``environment`` is that of commands; ``sample`` asks a model for a
    server. ``store``: the folder of approved definitions; None stores nothing. ``keep`` saves a switch (server, tool,
    on) for later sessions; it blocks."""

    def __init__(
        self,
        policy: Policy,
        runner: CommandRunner,
        environment: Mapping[str, str],
        *,
        store: Path | None = None,
        tokens: TokenStore | None = None,
        sample: Sample | None = None,
        keep: Callable[[str, str, bool], None] | None = None,
    ) -> None:
        self._root, self._environment, self._runner, self._policy = policy.workspace.root, environment, runner, policy
        self.store, self.tokens, self.sample, self.keep = store, tokens, sample, keep

    def roots(self) -> list[Path]:
        """Return the folders of the session."""
        workspace = self._policy.workspace
        return [Path(os.path.realpath(root)) for root in (workspace.root, *workspace.extra)]

    async def program(self, config: ServerConfig, current: Callable[[], Call | None]) -> Program:
        """Return the program to start for ``config``. ``current`` returns the server's running call, through which the
        user can be asked. Raises McpError."""
        environment = {**self._inherited(), **config.environment}
        folder = Path(os.path.expanduser(config.folder)) if config.folder else self._root  # noqa: PTH111 - must not raise
        folder = folder if folder.is_absolute() else self._root / folder
        if not config.command:
            raise McpError(f"The MCP server {config.name} names no program.", "Correct the file that names it.")
        found = await asyncio.to_thread(_found, config.command[0], environment.get("PATH", os.defpath), folder)
        if found is None:
            text = f"The program {config.command[0]!r} of the MCP server {config.name} was not found."
            raise McpError(text, "Install it, or write its whole path.")
        if not await asyncio.to_thread(folder.is_dir):
            raise McpError(f"The folder {folder} of the MCP server {config.name} does not exist.", "Correct it.")
        readable = await asyncio.to_thread(_installed, (found, *config.command[1:]))
        program = Program((found, *config.command[1:]), folder, environment, readable=readable)
        try:
            name = f"the MCP server {config.name}"
            await asyncio.to_thread(partial(self._runner.record, name, held=config.sandboxed))
        except StorageError as error:
            text = f"The MCP server {config.name} was not started: ba can't record which files it writes ({error})."
            raise McpError(text, error.hint) from error
        return await self._confined(program, config, current) if config.sandboxed else program

    async def http(self, config: ServerConfig) -> httpx2.AsyncBaseTransport:
        """Return the HTTP transport for ``config``, with proxies and certificates. Raises McpError."""
        import httpx2  # noqa: PLC0415 - loaded by the package mcp anyway

        from ba_tui.tools.addresses import proxy_of, read_address, system_tls  # noqa: PLC0415

        try:
            address = read_address(config.url)
        except BaError as error:
            raise McpError(str(error), f"Correct the address of {config.name}.") from error
        tls = await asyncio.to_thread(system_tls)
        try:
            return httpx2.AsyncHTTPTransport(verify=tls, proxy=proxy_of(address, getproxies_environment()) or None)
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            text = "The proxy set in the environment can't be used."
            raise McpError(text, "Check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY.") from error

    async def auth(self, config: ServerConfig) -> httpx2.Auth | None:
        """Return the authentication that adds and refreshes the stored tokens; None if none is stored. Its flow raises
        LoginNeeded when only the user can continue. Raises StorageError."""
        kept = await asyncio.to_thread(self.tokens.read, config) if self.tokens else {}
        return await (await oauth(self.tokens)).auth(config) if self.tokens and kept.get("tokens") else None

    def _inherited(self) -> dict[str, str]:
        seen = self._environment
        return {name: seen[name] for name in seen if name in INHERITED or name.startswith("LC_")}

    async def _confined(self, program: Program, config: ServerConfig, current: Callable[[], Call | None]) -> Program:
        try:
            held = await self._runner.confine(program, replace(WORKING, network=config.network))
        except BaError as error:
            raise McpError(str(error), error.hint) from error
        if self._runner.watch:
            run = WatchedRun(f"the MCP server {config.name}", WORKING, running=lambda: True)
            await asyncio.to_thread(self._runner.watch.begin, run)
        walled = getattr(held.confinement, "walled", False)
        if self._runner.network is None or not walled or config.network:
            return held
        from ba_tui.tools.egress_proxy import EgressProxy  # noqa: PLC0415 - few servers need it

        command = CommandText(config.address, str(program.folder))
        egress = EgressProxy(ServerHosts(self._runner.network(), self._judged, current, command))
        environment = {**held.environment, **egress.environment, "NODE_USE_ENV_PROXY": "1"}
        return replace(held, environment=environment, egress=egress)

    def _judged(self, address: WebAddress) -> bool:
        """Return whether a rule lets every command reach ``address``."""
        verdict = self._policy.judge(JudgedCall(REACHING, {"url": f"{address.origin}/"}, self._root))
        return isinstance(verdict, Allow) and bool(verdict.by)


async def oauth(tokens: TokenStore) -> OAuth:
    """Return the logins whose tokens are stored there; the SDK is loaded for them alone, because most servers need
    none."""

    def load() -> OAuth:
        from ba_tui.features.mcp.client.oauth import OAuth  # noqa: PLC0415 - the SDK takes half a second

        return OAuth(tokens, _login_client)

    return await asyncio.to_thread(load)


async def _login_client(_: ServerConfig, auth: httpx2.Auth | None) -> httpx2.AsyncClient:
    """Return a client with the system's certificates and the environment's proxies."""
    import httpx2  # noqa: PLC0415 - the package mcp loads it anyway

    from ba_tui.tools.addresses import system_tls  # noqa: PLC0415

    return httpx2.AsyncClient(auth=auth, verify=await asyncio.to_thread(system_tls), timeout=LOGIN_SECONDS)


class ServerHosts:
    """The hosts that a server may reach: those allowed by rules, and those that the user allows while a call of it
    runs. tools.egress_proxy uses it like the decisions about a command."""

    def __init__(
        self,
        network: NetworkAccess,
        judged: Callable[[WebAddress], bool],
        current: Callable[[], Call | None],
        command: CommandText,
    ) -> None:
        self.network = network
        self.refused: dict[str, str] = {}
        self._judged, self._current, self._command = judged, current, command
        self._decisions: dict[str, HostDecisions] = {}

    @property
    def waited(self) -> float:
        """Return the seconds spent waiting for the user."""
        return sum(each.waited for each in self._decisions.values())

    async def refusal(self, address: WebAddress) -> str:
        """Return why ``address`` is refused; empty if it is allowed."""
        if await asyncio.to_thread(self._judged, address):
            return ""
        call = self._current()
        if call is None:
            self.refused[address.place] = ALONE
            return ALONE
        return await self._of(call).refusal(address)

    def _of(self, call: Call) -> HostDecisions:
        from ba_tui.tools.egress_proxy import HostDecisions  # noqa: PLC0415 - loaded with the proxy

        if call.id not in self._decisions:
            self._decisions = {call.id: HostDecisions(self.network, call, self._command, attended=True)}
        return self._decisions[call.id]


def _installed(words: Sequence[str]) -> tuple[Path, ...]:
    """Return the installation folders of the program and of the files among ``words``, which it must read. Blocks."""
    places: dict[Path, None] = {}
    for word in words:
        for path in (Path(word), Path(os.path.realpath(word))):
            if path.is_absolute() and path.is_file():
                places[_package(path)] = None
    return tuple(places)


def _package(path: Path) -> Path:
    """Return the outermost package folder of a file; its own folder without a package."""
    home = Path.home()
    above = [folder for folder in path.parents if folder != home and folder not in home.parents]
    whole = [folder for folder in above if any((folder / mark).exists() for mark in MARKS)]
    return whole[-1] if whole else path.parent


def _found(name: str, path: str, folder: Path) -> str | None:
    """Return the path of a program: as given, relative to ``folder``, or found in ``path``."""
    if "/" in name:
        place = Path(os.path.expanduser(name))  # noqa: PTH111 - must not raise
        place = place if place.is_absolute() else folder / place
        return str(place) if os.access(place, os.X_OK) and place.is_file() else None
    return shutil.which(name, path=path)
