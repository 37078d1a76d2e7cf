"""A process that searches by meaning, shared by the tests of a module: its start takes seconds."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import pytest_asyncio

from ba_tui.features.memory.engine.setup import Endpoint, StoreSetup
from ba_tui.features.memory.engine.store import MemoryStore
from tests.memory.entries import PROJECT


class _Embeddings(BaseHTTPRequestHandler):
    """An embeddings endpoint whose vectors count letters. It wants a key."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != f"Bearer {KEY}" or self.path != "/v1/embeddings":
            self._reply(401, {"error": {"message": f"wrong key {self.headers['Authorization']}"}})
            return
        rows = [[1.0 + text.lower().count(letter) for letter in "abcdefghijklmnop"] for text in body["input"]]
        self._reply(200, {"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]})

    def _reply(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


KEY = "sk-secret-key-1"


@pytest.fixture(scope="session")
def embeddings() -> Iterator[str]:
    """The address of an OpenAI-compatible embeddings endpoint."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Embeddings)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def letters(embeddings: str) -> StoreSetup:
    """A store whose model is that endpoint: it starts faster than with a real one."""
    return StoreSetup("endpoint", Endpoint(embeddings, "letters", KEY))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def warm(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MemoryStore]:
    """A store whose helper runs. Tests add entries of their own."""
    store = MemoryStore(tmp_path_factory.mktemp("warm") / "memory", PROJECT)
    yield store
    await store.close()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until ``condition`` holds; the test's own time limit ends it."""
    while not await condition():  # noqa: ASYNC110 - other processes have no event
        await asyncio.sleep(0.05)
