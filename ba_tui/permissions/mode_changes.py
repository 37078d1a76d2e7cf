"""Tells those who wait that another mode was chosen, once it has stood for a moment.

Which modes there are, and what each allows, is decided in ``policy``.
"""

from __future__ import annotations

import asyncio


class ModeChanges:
    """``quiet``: seconds in which no further change may come, so that a mode which is only passed by on the way to
    another one answers nothing."""

    def __init__(self, quiet: float) -> None:
        self._quiet = quiet
        self._waiting: set[asyncio.Future[None]] = set()

    def tell(self) -> None:
        """Wake all who wait. Call it on their loop."""
        waiting, self._waiting = self._waiting, set()
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def settled(self) -> None:
        """Return when the mode was changed and has stood for the quiet moment."""
        await self._next()
        while True:
            try:
                async with asyncio.timeout(self._quiet):
                    await self._next()
            except TimeoutError:
                return

    async def _next(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)
