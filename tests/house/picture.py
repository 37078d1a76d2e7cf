"""Makes the moving picture of the README from the real app: ``python -m tests.house.picture``. It takes half a minute.

The session is the first chapter of the tour.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from textual.pilot import Pilot

from ba_tui.assembly import connect
from ba_tui.cli.commands import app_parts
from ba_tui.core.services import Services
from ba_tui.faces.tui.app import BaApp
from tests.house.film import Film
from tests.house.touring import opened

TARGET = Path("config") / "guide" / "session.svg"
SIZE = (100, 30)
TICK = 0.25
"""Seconds between two frames."""
LETTERS = 4
"""How many are typed between two frames."""
LOOK = 2.0
"""Seconds for which a question is seen before it is answered."""
SEEN = 0.7
END = 4.0
ANSWERS = 4
"""Questions that are answered with yes; the next one is refused."""
WHY = "keep them for the audit"
TITLE = "ba in a terminal: it finds two wrong lines in a table, asks before it corrects them, and adds up again"


class Camera:
    """Takes a frame each TICK of the film. ``pace``: real seconds for one of the film; 0 waits for nothing."""

    def __init__(self, app: BaApp, pilot: Pilot[None], pace: float) -> None:
        self.film = Film(SIZE)
        self._app = app
        self._pilot = pilot
        self._pace = pace

    async def tick(self, seconds: float = TICK) -> None:
        await self._pilot.pause(max(TICK * self._pace, 0.01))
        self.film.add(self._app.export_screenshot(), seconds)

    async def type(self, text: str) -> None:
        assert self._app.chat
        for start in range(0, len(text), LETTERS):
            # Not key by key: so fast, they would count as a paste.
            self._app.chat.composer.prompt.insert(text[start : start + LETTERS])
            await self.tick()

    async def asked(self) -> None:
        """Until a question can be answered."""
        chat = self._app.chat
        while not (chat and chat.ask and chat.ask.waiting):
            await self.tick()

    async def ended(self) -> None:
        while self._app.chat is None or self._app.chat.turns.busy:
            await self.tick()

    async def answer(self, key: str) -> None:
        """Until the question is gone."""
        # No key is taken as an answer before the user can have seen the question.
        await self._pilot.pause(SEEN)
        await self._pilot.press(key)
        await self._gone()

    async def refuse(self, why: str) -> None:
        await self._pilot.pause(SEEN)
        await self._pilot.press("tab")
        for letter in why:
            await self._pilot.press(letter)
            if letter == " ":
                await self.tick()
        await self.tick()
        await self._pilot.press("enter")
        await self._gone()

    async def _gone(self) -> None:
        while self._app.chat and self._app.chat.ask and self._app.chat.ask.waiting:
            await self._pilot.pause(0.01)


async def shoot(pace: float = 1.0, *, whole: bool = True) -> Film:
    """The film of the session, or only of its beginning: up to the first answer."""
    with opened("first", slow=pace > 0) as chapter:

        def services() -> Services:
            return connect({"model": chapter.model}, chapter.folder)

        app = BaApp(services, replace(chapter.start, prompt=""), app_parts)
        async with app.run_test(size=SIZE) as pilot:
            camera = Camera(app, pilot, pace)
            while not (app.chat and app.chat.turns.ready):
                await pilot.pause(0.01)
            app.chat.composer.prompt.still = True
            await camera.tick(1.0)
            await camera.type(chapter.start.prompt)
            await pilot.press("enter")
            await play(camera, ANSWERS if whole else 1)
            if whole:
                await camera.asked()
                await camera.tick(LOOK)
                await camera.refuse(WHY)
                await camera.ended()
                await camera.tick(END)
            await app.chat.close_session()
            return camera.film


async def play(camera: Camera, answers: int) -> None:
    """Look at each question, and say yes. The first one is the still frame."""
    for number in range(answers):
        await camera.asked()
        await camera.tick(LOOK)
        if number == 0:
            camera.film.still = len(camera.film.frames) - 1
        await camera.answer("y")


def main() -> None:
    film = asyncio.run(shoot())
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(film.svg(TITLE), "utf-8")
    size = TARGET.stat().st_size
    sys.stdout.write(f"{TARGET}: {len(film.frames)} frames, {film.seconds:.0f} s, {size:,} bytes\n")


if __name__ == "__main__":
    main()
