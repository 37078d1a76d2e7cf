"""A world around the app, and a hand on the app that waits for its work instead of sleeping."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Set
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import textual.app
import textual.pilot
from rich.console import RenderableType
from textual._compositor import Compositor
from textual._wait import wait_for_idle
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.screen import Screen

from ba_tui.cli.commands import app_parts
from ba_tui.core.start import Start
from ba_tui.faces.tui.app import BaApp
from ba_tui.faces.tui.screens.chat import ChatScreen
from tests.faces.tui.fakes import World


class Hand:
    """What a person does, and what they see afterwards."""

    def __init__(self, app: BaApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def chat(self) -> ChatScreen:
        assert self.app.chat is not None
        return self.app.chat

    @property
    def text(self) -> str:
        return self.chat.composer.prompt.text

    @property
    def hint(self) -> str:
        return str(self.chat.activity.content).strip()

    @property
    def status(self) -> str:
        return str(self.chat.status.content)

    def said(self) -> list[str]:
        """The text of every record of the conversation that has one, and of every notice."""
        records = [str(getattr(record, "text", "")) for record in self.chat.transcript.records]
        return [*records, *(notice.text for notice in self.chat.notices.kept)]

    async def until(self, true: Callable[[], object]) -> None:
        """Let the app work until ``true``; the test's own time limit ends a wait in vain."""
        await _until(true)
        await self.pilot.pause()

    async def opened(self) -> None:
        await self.until(lambda: self.app.chat is not None and self.app.chat.turns.ready)

    async def press(self, *keys: str) -> None:
        # Not the pilot's: that waits for every widget, as pause does once more; each time takes a fifth of a press.
        await self.app._press_keys(keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        self.chat.composer.prompt.insert(text)
        await self.pilot.pause()

    async def send(self, text: str) -> None:
        await self.type(text)
        await self.press("enter")

    async def idle(self) -> None:
        """The turn is over and nothing waits that could be sent."""
        await self.until(lambda: not self.chat.turns.busy)


async def _until(true: Callable[[], object]) -> None:
    while not true():  # noqa: ASYNC110 - what a person sees has no event to wait for
        await asyncio.sleep(0.005)


@pytest.fixture(scope="session", autouse=True)
def styles_read_once() -> Iterator[None]:
    """Hundreds of apps read the same style sheets: what one of them read with the same colours is not read again."""
    read = Stylesheet._parse_rules
    known: dict[object, list[RuleSet]] = {}

    def rules(self: Stylesheet, *args: Any, **named: Any) -> list[RuleSet]:
        own: Any = (args, tuple(named.items()))
        if own not in self._parse_cache:
            key = (own, frozenset(self._variables.items()))
            if key not in known:
                known[key] = read(self, *args, **named)
            self._parse_cache[own] = known[key]
        return self._parse_cache[own]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Stylesheet, "_parse_rules", rules)
        yield


@pytest.fixture(scope="session", autouse=True)
def rules_found_by_identity() -> Iterator[None]:
    """Hash rules of styles as any object is. Textual hashes all 160 rules for each node that it styles, by a method of
    its own that returns the identity as well."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RuleSet, "__hash__", object.__hash__)
        yield


@pytest.fixture(scope="session", autouse=True)
def drawn_at_rest() -> Iterator[None]:
    """Draw a frame when the test waits for the app, as a slow terminal does; what is dirty until then adds up.

    Hundreds of apps spent a third of their time on frames between two keys that nothing looked at.
    """
    draw, pause = Compositor.render_update, Pilot.pause

    def put_off(
        self: Compositor, full: bool = False, screen_stack: list[Screen[Any]] | None = None, simplify: bool = False
    ) -> RenderableType | None:
        return draw(self, full, screen_stack, simplify) if full else None

    async def pause_and_draw(self: Pilot[Any], delay: float | None = None) -> None:
        await pause(self, delay)
        app = self.app
        draw(app.screen._compositor, screen_stack=app._background_screens)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Compositor, "render_update", put_off)
        patched.setattr(Pilot, "pause", pause_and_draw)
        yield


IDLE_SECONDS = 0.02
"""Textual sleeps as long at each wait; timers that are due by then are waited for here as well."""


def _at_work(before: Set[threading.Thread]) -> bool:
    """Whether a thread may be working that the event loop can't see: one that is none of ``before``, and none of the
    executor's that rest."""
    executor: Any = getattr(asyncio.get_running_loop(), "_default_executor", None)
    others = sum(each not in before for each in threading.enumerate())
    if executor is None:
        return others > 0
    return others > (0 if executor._work_queue.qsize() else executor._idle_semaphore._value)


@pytest.fixture(scope="session", autouse=True)
def waits_end_with_the_work() -> Iterator[None]:
    """Wait until the loop has nothing to do. Textual sleeps 20 ms at least, several times for each key, and asks for
    the time of the process to see whether it did something: more than half of the time of these tests."""
    sleep_until_idle = wait_for_idle
    # Those of pytest's workers among them.
    before = frozenset(threading.enumerate())

    async def idle(min_sleep: float = IDLE_SECONDS, max_sleep: float = 1) -> None:
        loop: Any = asyncio.get_running_loop()
        horizon, end, quiet = loop.time() + IDLE_SECONDS, loop.time() + max_sleep, 0
        while quiet < 2 and loop.time() < end:
            await asyncio.sleep(0)
            if loop._ready:
                quiet = 0
            elif due := [each.when() for each in loop._scheduled if not each.cancelled() and each.when() <= horizon]:
                quiet = 0
                await asyncio.sleep(max(0.0, min(due) - loop.time()))
            elif _at_work(before):
                await sleep_until_idle(min_sleep, max(0.0, end - loop.time()))
                return
            else:
                quiet += 1

    with pytest.MonkeyPatch.context() as patched:
        for module in (textual.app, textual.pilot):
            patched.setattr(module, "wait_for_idle", idle)
        yield


@pytest.fixture
def world(tmp_path: Path) -> World:
    folder = tmp_path / "app"
    folder.mkdir()
    return World(folder)


@pytest.fixture
def services(world: World) -> threading.Event:
    """There is no session before it is set."""
    opened = threading.Event()

    def wait() -> None:
        opened.wait(10)

    world.gate = wait
    return opened


@pytest.fixture
def state(ba_home: Path) -> Path:
    """Where history and drafts are kept."""
    return ba_home


@asynccontextmanager
async def running(
    world: World, start: Start | None = None, *, size: tuple[int, int] = (80, 24), ready: bool = True
) -> AsyncGenerator[Hand]:
    """The app over ``world``, cursor at rest.

    Its chat comes at once: the screen for the first paint, which it replaces, took a third of the time of each test.
    ``test_opening`` has that one too.
    """
    app = BaApp(world.connect, start or Start(), app_parts)
    app.get_default_screen = Screen[None]
    async with app.run_test(size=size) as pilot:
        hand = Hand(app, pilot)
        # Not drawn yet: what is looked at comes with the session.
        await _until(lambda: app.chat is not None and app.chat.is_mounted)
        await textual.pilot.wait_for_idle(0)  # pyright: ignore[reportPrivateImportUsage]
        hand.chat.early = None
        hand.chat.set_focus(hand.chat.composer.prompt)
        hand.chat.composer.prompt.still = True
        await (hand.opened() if ready else pilot.pause())
        yield hand
