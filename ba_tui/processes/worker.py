"""The client of a long-lived worker process: requests, progress, streams, notices, cancel, timeout and restart.

What runs in the process is named by an entry of the room that uses it; its side is serving.py. One running process is
worker_link.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from ba_tui.processes.worker_link import CLOSED, Link
from ba_tui.processes.worker_values import (
    ProgressListener,
    WorkerCrashed,
    WorkerEntry,
    WorkerFailed,
    WorkerSettings,
    WorkerTimeout,
)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class Worker:
    """One worker process. It starts at the first request, and again at the one after a crash. It ends with ``close``,
    when it is forgotten, and when ba is gone, also by kill -9; each time with all that it started.

    A second crash in a row, and each further one, makes the next start wait: 1 s, 2 s, 4 s, at most 60 s. Until then
    requests raise WorkerCrashed at once. Confined, it ends with the thread that starts it, one of the loop's executor.

    Requests from one event loop at a time; any number of them may be under way.
    """

    def __init__(
        self, entry: WorkerEntry, settings: WorkerSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._entry = entry
        self._settings = settings
        self._clock = clock
        self._link: Link | None = None
        self._last: Link | None = None
        self._starting = asyncio.Lock()
        self._crashes = 0
        self._not_before = float("-inf")
        self._closed = False

    async def request(
        self,
        method: str,
        payload: object = None,
        *,
        timeout: float | None = None,
        on_progress: ProgressListener | None = None,
    ) -> object:
        """Return the worker's reply: a JSON value, or a ``Packet`` when it sends bytes too, as ``payload`` may be.

        Cancelling tells the worker, and returns at once. ``timeout`` in seconds, from the moment that it runs.

        Raises:
            WorkerFailed: the worker says that it failed. WorkerTimeout: it took too long. WorkerCrashed: the process
            ended or sent nonsense. OSError: it could not be started. BaError: it may not run unconfined.
        """
        link = await self._running()
        try:
            async with asyncio.timeout(timeout):
                reply = await link.request(method, payload, on_progress)
        except TimeoutError as error:
            raise self._late(method, timeout) from error
        except WorkerCrashed:
            self._note_crash(link)
            raise
        except WorkerFailed:
            self._crashes = 0
            raise
        self._crashes = 0
        return reply

    async def stream(
        self, method: str, payload: object = None, *, timeout: float | None = None
    ) -> AsyncGenerator[object]:
        """The parts of a streamed reply. The worker waits while nobody takes them. Close it (``aclosing``) to cancel.

        Raises as ``request`` does; ``timeout`` is for all of it.
        """
        link = await self._running()
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        try:
            async with aclosing(link.stream(method, payload)) as parts:
                while True:
                    async with asyncio.timeout_at(until):
                        part = await anext(parts)
                    yield part
        except StopAsyncIteration:
            self._crashes = 0
        except WorkerFailed:
            self._crashes = 0
            raise
        except TimeoutError as error:
            raise self._late(method, timeout) from error
        except WorkerCrashed:
            self._note_crash(link)
            raise

    async def _running(self) -> Link:
        """The connection to the process, which is started when it does not run. Raises as ``request`` does."""
        async with self._starting:
            if self._closed:
                raise WorkerCrashed(CLOSED)
            if self._link is None or not self._link.alive():
                await self._gone()
                if (left := self._not_before - self._clock()) > 0:
                    raise WorkerCrashed(f"it crashed {self._crashes} times in a row; it starts again in {left:.0f} s")
                self._link = await asyncio.to_thread(Link, self._entry, self._settings)
                if self._closed:
                    self._drop()
                    raise WorkerCrashed(CLOSED)
            return self._link

    def alive(self) -> bool:
        """Whether the process runs and said nothing that nobody asked for."""
        return self._link is not None and self._link.alive()

    def end(self) -> None:
        """End the process and all it started, behind our back; requests under way raise WorkerCrashed."""
        self._closed = True
        self._drop()

    async def close(self) -> None:
        """As ``end``, and wait until they are gone: what they had locked is free then."""
        self.end()
        await self._gone()

    async def _gone(self) -> None:
        """End the process, and wait until it and the one before it are gone."""
        self._drop()
        if last := self._last:
            await asyncio.to_thread(last.wait)
            self._last = None

    def _drop(self) -> None:
        if self._link:
            self._link.end()
            self._last, self._link = self._link, None

    def _note_crash(self, link: Link) -> None:
        if link is not self._link:
            # Another request has seen it before.
            return
        self._drop()
        self._crashes += 1
        if self._crashes > 1:
            self._not_before = self._clock() + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._crashes - 2, 16))

    def _late(self, method: str, timeout: float | None) -> WorkerTimeout:
        return WorkerTimeout(f"{method} took longer than {timeout:g} s.")
