"""The browser of MCP servers, the tools of one, a page and a login, as people use them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.mcp import McpError, McpServers, RemoteTool, ServerConfig, ServerState
from ba_tui.features.mcp.tui import LoginPage, McpPage, ServerBrowser, ServerTools
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World
from tests.faces.tui.sheets import keys, lines

ADD = RemoteTool("add", "mcp__sums__add", description="Adds [two] numbers", schema={"type": "object"}, read_only=True)
DROP = RemoteTool("drop", "mcp__sums__drop", standing="changed", trouble="its definition changed")
SUMS = ServerConfig("sums", command=("node", "sums.js"), scope="project", source="/srv/.mcp.json")
WEB = ServerConfig("web", "http", url="https://x.org/mcp", scope="user", source="config.yaml")


@dataclass
class Held:
    """Servers that a test moves."""

    states: dict[str, ServerState] = field(
        default_factory=lambda: {
            "sums": ServerState(SUMS, "ready", title="sums 1.0", tools=(ADD, DROP), instructions="Add with care."),
            "web": ServerState(WEB, "login", "It asks for a login.", "Press Ctrl+G."),
        }
    )
    listeners: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    done: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    came_back: asyncio.Event = field(default_factory=asyncio.Event)

    def listed(self) -> Sequence[ServerState]:
        return list(self.states.values())

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        self.listeners.append(changed)
        return lambda: self.listeners.remove(changed)

    def begin(self) -> None:
        return

    async def connect(self, name: str) -> ServerState:
        return self.states[name]

    async def reconnect(self, name: str) -> ServerState:
        if name == "web":
            raise McpError("web did not answer.", "Try again.")
        self.done.append(("reconnect", name))
        return self.states[name]

    async def enable(self, name: str, tool: str = "", *, on: bool) -> None:
        self.done.append(("enable", name, tool, str(on)))
        state = self.states[name]
        if tool:
            standing = "on" if on else "off"
            tools = tuple(changed(each, standing=standing) if each.name == tool else each for each in state.tools)
            self.states[name] = changed(state, tools=tools)
        else:
            config = changed(state.config, enabled=on)
            self.states[name] = changed(state, config=config, phase="idle" if on else "off")
        for listener in self.listeners:
            listener()

    async def approve(self, name: str, tool: str) -> None:
        self.done.append(("approve", name, tool))

    def difference(self, name: str, tool: str) -> tuple[str, str]:
        return "reads\n", "drops everything\n"

    def logs(self, name: str) -> Sequence[str]:
        return ["listening on stdio"]

    async def login(self, name: str, show: Callable[[str], None]) -> None:
        if name == "sums":
            raise UsageError("The MCP server sums takes no login.")
        show("https://login.x.org/authorize?client_id=1")
        await self.came_back.wait()

    async def logout(self, name: str) -> None:
        return


@pytest.fixture
def held(world: World) -> Held:
    servers = Held()
    world.brain.inventory = changed(world.brain.inventory, features={McpServers: servers})
    return servers


async def browse(hand: Hand) -> None:
    await hand.send("/mcp")
    await hand.until(lambda: isinstance(hand.app.screen, ServerBrowser) and "sums" in lines(hand))


async def test_the_list_tells_how_servers_stand_and_follows_them(world: World, held: Held) -> None:
    async with running(world, size=(80, 24)) as hand:
        await browse(hand)
        for words in ("connected", "2 tools", "stdio", "project", "node sums.js", "needs a login", "! It asks for a"):
            assert words in lines(hand)
        await hand.press("ctrl+s")
        await hand.until(lambda: "sums is off in this project." in keys(hand))
        assert held.done == [("enable", "sums", "", "False")]
        await hand.press("down", "ctrl+r")
        await hand.until(lambda: "web did not answer. Try again." in keys(hand))
        await hand.press("escape")
        assert held.listeners == []


async def test_tools_are_switched_one_by_one_and_a_change_is_approved(world: World, held: Held) -> None:
    async with running(world, size=(80, 30)) as hand:
        await browse(hand)
        await hand.press("enter")
        await hand.until(lambda: isinstance(hand.app.screen, ServerTools) and "Adds [two] numbers" in lines(hand))
        assert "! its definition changed" in lines(hand)
        await hand.press("ctrl+s")
        await hand.until(lambda: "add is off in this project." in keys(hand))
        await hand.press("down", "enter")
        await hand.until(lambda: isinstance(hand.app.screen, McpPage))
        await hand.press("a")
        await hand.until(lambda: "The change is approved." in keys(hand))
        assert held.done == [("enable", "sums", "add", "False"), ("approve", "sums", "drop")]
        await hand.press("ctrl+o")
        await hand.until(lambda: isinstance(hand.app.screen, McpPage))


async def test_a_login_shows_the_address_and_esc_cancels_it(world: World, held: Held) -> None:
    async with running(world, size=(80, 24)) as hand:
        await browse(hand)
        await hand.press("down", "ctrl+g")
        await hand.until(lambda: isinstance(hand.app.screen, LoginPage) and "o open" in keys(hand))
        await hand.press("escape")
        await hand.until(lambda: isinstance(hand.app.screen, ServerBrowser))
        await hand.press("ctrl+g")
        await hand.until(lambda: isinstance(hand.app.screen, LoginPage) and "o open" in keys(hand))
        held.came_back.set()
        await hand.until(lambda: "You are logged in to web." in keys(hand))
        await hand.press("up", "ctrl+g")
        await hand.until(lambda: "takes no login" in keys(hand))
