"""A Chroma server that a team shares: a real one, started once for this module."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.ports.memory import Draft, Memory
from ba_tui.features.memory.engine.recall import SearchRequest
from ba_tui.features.memory.engine.setup import StoreSetup, TeamServer
from ba_tui.features.memory.engine.shelf import Shelf
from ba_tui.features.memory.engine.store import MemoryStore
from ba_tui.features.memory.engine.store_process.chroma_index import collection_name
from ba_tui.features.memory.engine.store_process.mind import Mind
from ba_tui.features.memory.engine.store_process.team import TeamStore
from ba_tui.features.memory.engine.vectors import VectorFile
from ba_tui.features.memory.tools.names import MemoryNames
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.resources import folder_slug, places
from tests.memory.conftest import until
from tests.memory.entries import entry
from tests.memory.retrieval.shelves import Letters

CHROMA = Path(sys.executable).with_name("chroma")
TOKEN = "chroma-token-77"


class Server:
    """``chroma run`` on a port of its own, over an own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        command = [CHROMA, "run", "--path", self.folder, "--host", "127.0.0.1", "--port", str(self.port)]
        environment = {"PATH": os.defpath, "HOME": str(self.folder), "ANONYMIZED_TELEMETRY": "False"}
        self._process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder
        )
        while not self._answers():
            assert self._process.poll() is None
            time.sleep(0.05)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def collections(self) -> set[str]:
        """The names of all collections."""
        return {each["name"] for each in self._got("tenants/default_tenant/databases/default_database/collections")}

    def _answers(self) -> bool:
        try:
            return bool(self._got("heartbeat"))
        except OSError:
            return False

    def _got(self, path: str) -> Any:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as connection:
            connection.request("GET", f"/api/v2/{path}")
            response = connection.getresponse()
            assert response.status == 200
            return json.load(response)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("chroma"))
    yield made
    made.stop()


def _member(folder: Path, server: Server, letters: StoreSetup, project: str = "shop") -> MemoryStore:
    team = TeamServer(server.url, project, TOKEN)
    return MemoryStore(folder, folder.name, StoreSetup("endpoint", letters.endpoint, team))


async def _texts(store: MemoryStore) -> dict[str, str]:
    # Who searches makes the store exchange entries now, and not after some seconds.
    await store.search(SearchRequest("fiscal year", explicit=True))
    return {each.text: each.origin for each in await store.listed("project")}


@pytest.mark.timeout(55)
async def test_a_team_shares_the_project_and_nothing_else(
    server: Server, tmp_path: Path, letters: StoreSetup, caplog: pytest.LogCaptureFixture
) -> None:
    ines, omar = (_member(tmp_path / name, server, letters) for name in ("ines", "omar"))
    other = _member(tmp_path / "other", server, letters, "another project")
    try:
        fact = entry("The fiscal year starts in April", pinned=True)
        await ines.add([fact, entry("I prefer tabs", project="")])
        for store in (ines, omar, other):
            store.helper.warm()

        async def arrived() -> bool:
            return await _texts(omar) == {fact.text: "import"}

        await until(arrived)
        found = await omar.search(SearchRequest("fiscal year", explicit=True))
        assert (found.hits[0].entry.text, found.hits[0].entry.pinned) == (fact.text, False)

        await omar.change(fact.id, text="The fiscal year starts in July")
        answer = entry("Deploys happen on Thursday")
        await omar.add([answer])

        async def exchanged() -> bool:
            return await _texts(ines) == {"The fiscal year starts in July": "person", answer.text: "import"}

        await until(exchanged)
        changed, theirs = [(await ines.get([each.id]))[each.id] for each in (fact, answer)]
        assert changed.pinned
        origin = f"127.0.0.1:{server.port}, project shop"
        assert (changed.server, theirs.server) == (origin, origin)
        assert (await omar.get([answer.id]))[answer.id].server == ""

        server.stop()
        await ines.forget([fact.id])

        async def gone() -> bool:
            found = await ines.search(SearchRequest("Thursday", explicit=True))
            assert (found.step, found.hits[0].entry.text) == ("vectors", answer.text)
            return "does not answer" in found.why

        await until(gone)
        assert "entries are shared later" in (await ines.state()).why
        assert TOKEN not in caplog.text + (await ines.state()).why
        server.start()
    finally:
        for store in (ines, omar, other):
            await store.close()

    # Who comes later hears of the forgetting, and never of the entry.
    ines, omar = (_member(tmp_path / name, server, letters) for name in ("ines", "omar"))
    try:
        ines.helper.warm()
        omar.helper.warm()

        async def forgotten() -> bool:
            return await _texts(omar) == {answer.text: "person"}

        await until(forgotten)
        assert await _texts(other) == {}
    finally:
        await ines.close()
        await omar.close()


class _Interrupted(TeamStore):
    """Something happens on this machine while it takes entries from the server."""

    between: Callable[[], object] = staticmethod(lambda: None)

    def _pulled(self, collection: Any) -> Iterator[tuple[Mapping[str, Any], str]]:
        found = list(super()._pulled(collection))
        self.between()
        yield from found


def test_what_is_changed_or_forgotten_during_an_exchange_is_newer_than_the_server(
    server: Server, tmp_path: Path
) -> None:
    def machine(name: str) -> tuple[Shelf, _Interrupted]:
        shelf = Shelf(tmp_path / name / "projects" / "shop")
        mind = Mind(Letters(), VectorFile(tmp_path / f"{name}.words"))
        return shelf, _Interrupted(TeamServer(server.url, "exchange", TOKEN), shelf, mind)

    def text(shelf: Shelf) -> str:
        found = shelf.found([fact.id]).get(fact.id)
        return found.text if found else ""

    (ines, hers), (omar, his) = machine("ines"), machine("omar")
    fact = entry("The fiscal year starts in April")
    ines.add([fact])
    hers.exchange()
    omar.folder.mkdir(parents=True)
    his.exchange()
    assert text(omar) == fact.text

    his.between = lambda: omar.change(fact.id, {"text": "The fiscal year starts in July"})
    his.exchange()
    his.between = lambda: None
    his.exchange()
    hers.exchange()
    assert text(omar) == text(ines) == "The fiscal year starts in July"

    his.between = lambda: omar.forget([fact.id], ["letters"])
    his.exchange()
    his.between = lambda: None
    his.exchange()
    hers.exchange()
    assert text(omar) == text(ines) == ""
    his.close()
    hers.close()


@pytest.mark.timeout(55)
async def test_memory_goes_to_a_name_that_a_project_proposes_only_after_the_user_bound_it(
    server: Server, tmp_path: Path, ba_home: Path, letters: StoreSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a real server: the collections there are all that was opened."""
    assert letters.endpoint
    monkeypatch.setenv("LETTERS_KEY", letters.endpoint.key)
    shared: dict[str, Any] = {"url": server.url, "embedder": "endpoint"}
    shared["endpoint"] = {"url": letters.endpoint.url, "model": "letters", "api_key_env": "LETTERS_KEY"}
    (ba_home / "config.yaml").write_text(json.dumps({"memory": shared}))
    root = tmp_path / "evil"
    (root / ".ba").mkdir(parents=True)
    (root / ".ba" / "config.yaml").write_text("memory: {project: finance-of-others}\n")
    trust_folder(root)

    async def shared_as(name: str) -> set[str]:
        """What the server holds once a session shared its memory under ``name``."""
        talk = connect({"model": "demo"}, root).library.create()
        memory = talk.inventory.feature(Memory)
        assert memory
        await memory.remember(Draft(f"The fiscal year of {name} starts in April"))

        async def arrived() -> bool:
            await memory.find("fiscal year")
            return collection_name(name, "letters") in server.collections()

        await until(arrived)
        await talk.close()
        return server.collections()

    assert collection_name("finance-of-others", "letters") not in await shared_as(folder_slug(root))
    MemoryNames(places()).bind(root, "finance-of-others")
    await shared_as("finance-of-others")
