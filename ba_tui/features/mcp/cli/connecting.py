"""``ba mcp test`` and ``login``: what connects to a server from the command line."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ba_tui.cli.config import print_line, say
from ba_tui.core.errors import BaError, run_loop
from ba_tui.core.ports.mcp import McpServers
from ba_tui.core.text.wording import count, one_line

if TYPE_CHECKING:
    from ba_tui.core.ports.mcp import ServerConfig, ServerState
    from ba_tui.features.mcp.cli.known import KnownServers
    from ba_tui.features.mcp.client.logins import Logins

CANCELLED = 130
FAILED = 2
SHOWN = 100
LOOPBACK = "http://127.0.0.1:"


def try_servers(known: KnownServers, configs: Sequence[ServerConfig], *, as_json: bool) -> int:
    """Connect to each of ``configs`` in turn and print what it offers; 2 when one can't be reached."""
    try:
        rows = run_loop(_tested(known, configs, as_json=as_json))
    except KeyboardInterrupt:
        return CANCELLED
    if as_json:
        print_line(json.dumps(rows if len(rows) > 1 else rows[0], indent=2, ensure_ascii=True))
    return 0 if all(row["ok"] for row in rows) else FAILED


async def _tested(known: KnownServers, configs: Sequence[ServerConfig], *, as_json: bool) -> list[dict[str, Any]]:
    from ba_tui.assembly.alone import tools_alone  # noqa: PLC0415 - loads the sandbox and what else commands need

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


def log_in(known: KnownServers, config: ServerConfig) -> int:
    """Log in to ``config``: print the address, open it when the person presses Enter, and wait. Ctrl+C cancels."""
    from ba_tui.features.mcp.setup import logins  # noqa: PLC0415 - --help must not pay for it

    try:
        run_loop(_logged_in(logins(known.where), config))
    except KeyboardInterrupt:
        say("Cancelled: nothing was saved.")
        return CANCELLED
    print_line(f"Logged in to {config.name}.")
    return 0


async def _logged_in(logins: Logins, config: ServerConfig) -> None:
    at_terminal = sys.stdin.isatty()
    loop, page = asyncio.get_running_loop(), Page()
    if at_terminal:
        loop.add_reader(sys.stdin, lambda: page.typed(sys.stdin.readline()))
    try:
        await logins.login(config, lambda address: page.show(config.name, address, at_terminal=at_terminal))
    finally:
        if at_terminal:
            loop.remove_reader(sys.stdin)


class Page:
    """The page of a login, and what the person types meanwhile."""

    def __init__(self) -> None:
        self._address = ""

    def show(self, name: str, address: str, *, at_terminal: bool) -> None:
        """Print where to go; a browser opens only when the person says so."""
        self._address = address
        host = urlsplit(address).hostname or ""
        say(f"Log in to {name} at {host}. Open this address:")
        print_line(address)
        if at_terminal:
            enter = "Enter opens it in your browser. " if can_open() else ""
            say(f"{enter}Browser on another machine? Paste the address it ends at. Ctrl+C cancels.")
        sys.stdout.flush()

    def typed(self, line: str) -> None:
        """Open the page for an empty line; go where a browser elsewhere could not go for an address."""
        text = line.strip()
        if text.startswith(LOOPBACK):
            asyncio.get_running_loop().run_in_executor(None, _visit, text)
        elif not text and line and self._address and can_open():
            asyncio.get_running_loop().run_in_executor(None, webbrowser.open, self._address)


def can_open() -> bool:
    """Whether a browser with a window can be started here."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _visit(address: str) -> None:
    # The listener answers 400 to an address that is not of this login.
    with suppress(OSError, HTTPException):
        parts = urlsplit(address)
        connection = HTTPConnection("127.0.0.1", parts.port, timeout=10)
        connection.request("GET", f"{parts.path}?{parts.query}")
        connection.getresponse().read(1_000)
