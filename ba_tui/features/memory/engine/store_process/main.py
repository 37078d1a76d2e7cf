"""Answers the requests of ``helper_process``; between requests it reads the logs and fills the vector indexes."""

from __future__ import annotations

import importlib
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ba_tui.core.errors import BaError
from ba_tui.features.memory.engine import recall
from ba_tui.features.memory.engine.embedding import EMBEDDERS, Embedder, NoEmbedder
from ba_tui.features.memory.engine.helper_process import (
    CATCH_UP,
    FORGET,
    LOOK,
    OPEN,
    REBUILD,
    SEARCH,
    HelperState,
    ask_of,
    setup_from,
    told,
)
from ba_tui.features.memory.engine.recall import Recall, RecallResult, SearchRequest
from ba_tui.features.memory.engine.setup import StoreSetup
from ba_tui.features.memory.engine.store_process.mind import asking
from ba_tui.features.memory.engine.vectors import VectorFile
from ba_tui.processes.serving import Handler, HandlerFailed, WorkerChannel, WorkerRequest

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.store_process.desk import Desk
    from ba_tui.features.memory.engine.store_process.mind import Mind
    from ba_tui.features.memory.engine.store_process.team import TeamStore

_IDLE_SECONDS = 900.0
_LOOK_SECONDS = 1.0
"""Seconds between two reads of the logs, which other processes write too."""
_AGAIN_SECONDS = 30.0
"""Seconds until the next attempt after embedding failed."""
_FRESH = 100
"""Maximum new lines of the log that a search indexes before it runs."""
_FIRST_SECONDS = 2.0
"""Maximum seconds that background work waits for the first search."""


class MemoryHandlers:
    """The handlers of requests: one method each."""

    def __init__(self, idle: float = _IDLE_SECONDS) -> None:
        self._idle = idle
        self._desks: dict[str, Desk] = {}
        self._mind: Mind | None = None
        self._team: TeamStore | None = None
        self._failed = ""
        self._asked = time.monotonic()
        self._serving: set[WorkerRequest] = set()
        self._news = threading.Event()
        self._answered = threading.Event()
        self._following = threading.Lock()

    def open(self, request: WorkerRequest) -> object:
        """Load the model and open the indexes; ``why`` of the reply names unusable ones."""
        given = cast("Mapping[str, Any]", request.payload)
        setup = setup_from(given)
        folders = [Path(each) for each in given["folders"]]
        # numpy is imported here, so that a missing package is reported in a reply.
        try:
            from ba_tui.features.memory.engine.store_process.desk import Desk  # noqa: PLC0415
            from ba_tui.features.memory.engine.store_process.mind import Mind  # noqa: PLC0415
        except ImportError as error:
            raise HandlerFailed(NoEmbedder.kind, f"The package numpy cannot be used: {error}.") from error
        embedder = _embedder(setup)
        if not embedder.traits.dimensions:
            # The first vector of a server tells the number of dimensions.
            embedder.question("-")
        mind = Mind(embedder, VectorFile(folders[0].parent.parent / "words.vectors.sqlite"))
        desks = {str(folder): Desk(folder, mind) for folder in folders}
        with ThreadPoolExecutor(1) as beside:
            opening = beside.submit(_open, list(desks.values()))
            # Loads the model.
            embedder.question("-")
            opening.result()
        self._mind, self._desks = mind, desks
        if setup.server:
            from ba_tui.features.memory.engine.store_process.team import TeamStore  # noqa: PLC0415

            self._team = TeamStore(setup.server, desks[str(folders[0])].shelf, mind)
            self._team.start()
        threading.Thread(target=self._follow, daemon=True, name="follow").start()
        return {"why": self._why(), "model": mind.traits.name}

    def search(self, request: WorkerRequest) -> object:
        ask = ask_of(cast("Mapping[str, Any]", request.payload))
        with asking():
            found = self._found(ask)
        self._answered.set()
        self._news.set()
        if self._team and ask.explicit:
            self._team.wake()
        return told(replace(found, why=found.why or self._why()))

    def _found(self, ask: SearchRequest) -> RecallResult:
        desks = [desk for desk in self._desks.values() if desk.shelf.fresh(_FRESH)]
        shelves = [recall.SearchShelf(desk.shelf.lookup, desk) for desk in desks]
        return Recall(shelves, self._mind).search(ask)

    def forget(self, request: WorkerRequest) -> object:
        """Remove vectors from an index; return the ids that a query still finds."""
        given = cast("Mapping[str, Any]", request.payload)
        return self._desks[given["folder"]].forget(given["ids"])

    def catch_up(self, request: WorkerRequest) -> object:
        """Bring the words indexes up to date."""
        for desk in self._desks.values():
            if desk.shelf.exists:
                desk.shelf.index.update(_heard(request))
        return None

    def rebuild(self, request: WorkerRequest) -> object:
        """Rebuild all indexes, and fill them with vectors."""
        desks = [desk for desk in self._desks.values() if desk.shelf.exists]
        for desk in desks:
            desk.open()
            desk.shelf.index.rebuild()
            desk.renew()
        total = sum(desk.shelf.lookup.total() for desk in desks)
        for desk in desks:
            while self._step(desk):
                request.progress([sum(each.done for each in desks), total])
            desk.check()
        # The follower thread may have indexed the last lines.
        request.progress([total, total])
        return None

    def look(self, request: WorkerRequest) -> object:
        """Return the helper's state as the fields of ``HelperState``."""
        desks = [desk for desk in self._desks.values() if desk.shelf.exists]
        totals = [desk.shelf.lookup.total() for desk in desks]
        done = [total if desk.full else min(desk.done, total) for desk, total in zip(desks, totals, strict=True)]
        model = self._mind.traits.name if self._mind else ""
        return asdict(HelperState(sum(done), sum(totals), self._why(), model, _memory()))

    def timed(self, handler: Handler) -> Handler:
        """Return ``handler`` wrapped: it records the time of each request, and BaErrors become one line."""

        def run(request: WorkerRequest) -> object:
            self._serving.add(request)
            try:
                return handler(request)
            except BaError as error:
                raise HandlerFailed(error.kind, error.with_hint) from error
            finally:
                self._asked = time.monotonic()
                self._serving.discard(request)

        return run

    def _follow(self) -> None:
        """Keep the indexes up to date until the process ends."""
        desks = list(self._desks.values())
        self._answered.wait(_FIRST_SECONDS)
        for desk in desks:
            desk.check()
        while True:
            pause = self._round(desks)
            self._news.wait(pause)
            self._news.clear()
            if not self._serving and time.monotonic() - self._asked > self._idle:
                os._exit(0)

    def _round(self, desks: Sequence[Desk]) -> float:
        """Index new lines of all logs; return the seconds until the next round."""
        try:
            for desk in desks:
                desk.take_over()
                if self._catch_up(desk):
                    if self._team:
                        self._team.wake()
                    self._learn(desk)
        except Exception as error:  # noqa: BLE001 - any failure is tried again
            text = str(error) if isinstance(error, BaError) else f"{type(error).__name__}: {error}"
            if text != self._failed:
                sys.stderr.write(f"memory: {text}\n")
            self._failed = text
            for desk in desks:
                desk.check()
            return _AGAIN_SECONDS
        self._failed = ""
        return _LOOK_SECONDS

    def _catch_up(self, desk: Desk) -> bool:
        """Index all new lines of a shelf; return whether there were any."""
        found = False
        while self._step(desk):
            found = True
        return found

    def _step(self, desk: Desk) -> bool:
        # A rebuild and the follower thread must not index the same lines.
        with self._following:
            return desk.follow()

    def _learn(self, desk: Desk) -> None:
        if self._mind and desk.shelf.exists:
            self._mind.learn(self._mind.unlearned(desk.shelf.lookup), desk.shelf.lookup)

    def _why(self) -> str:
        whys = [self._failed, *(desk.why for desk in self._desks.values()), self._team.why if self._team else ""]
        return next(filter(None, whys), "")


def _embedder(setup: StoreSetup) -> Embedder:
    if setup.endpoint and setup.embedder == "endpoint":
        from ba_tui.features.memory.engine.store_process.endpoint import EndpointEmbedder  # noqa: PLC0415 - it loads an HTTP client

        return EndpointEmbedder(setup.endpoint)
    make = EMBEDDERS.get(setup.embedder)
    if make is None:
        raise NoEmbedder(f"memory.embedder is {setup.embedder}, but memory.endpoint.url is not set.")
    return make()


def _open(desks: Sequence[Desk]) -> None:
    """Import chromadb, also before the first entry, and load the indexes, while the model loads in another thread."""
    try:
        importlib.import_module("ba_tui.features.memory.engine.store_process.chroma_index")
    except Exception as error:  # noqa: BLE001 - a desk reports the failure when it opens an index
        sys.stderr.write(f"memory: chromadb cannot be imported: {error}\n")
    for desk in desks:
        desk.open()
        desk.load()


def _heard(request: WorkerRequest) -> Callable[[int, int], None]:
    return lambda done, total: request.progress([done, total])


def _memory() -> int:
    """Return the peak memory of this process in bytes."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def main(channel: WorkerChannel, idle: str = "") -> None:
    """Serve until the client closes. ``idle``: seconds without a request after which the process ends."""
    # Chroma's files contain the users' words.
    os.umask(0o077)
    handlers = MemoryHandlers(float(idle) if idle else _IDLE_SECONDS)
    methods: Mapping[str, Handler] = {
        OPEN: handlers.open,
        SEARCH: handlers.search,
        FORGET: handlers.forget,
        CATCH_UP: handlers.catch_up,
        REBUILD: handlers.rebuild,
        LOOK: handlers.look,
    }
    # Several threads, so that a search does not wait for a rebuild.
    channel.serve({name: handlers.timed(handler) for name, handler in methods.items()}, threads=3)
