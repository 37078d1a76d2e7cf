"""A Chroma server that a team shares: entries of the project are sent there, and those of other members are fetched.

Each machine stores all of them in its own log, so memory works while the server is unreachable. A forgotten entry is
replaced on the server by a mark, so that other members forget it too. Pins and use stay on each machine.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import chromadb
import numpy
from chromadb.api import ServerAPI
from chromadb.api.shared_system_client import SharedSystemClient
from chromadb.config import Settings

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.memory import Entry
from ba_tui.core.text.json_text import read_object
from ba_tui.core.text.wording import one_line
from ba_tui.features.memory.engine.entries import as_record, entry_of, ids_of
from ba_tui.features.memory.engine.log import Log, Mark, mark_in
from ba_tui.features.memory.engine.setup import TeamServer
from ba_tui.features.memory.engine.shelf import Shelf
from ba_tui.features.memory.engine.store_process.chroma_index import collection_name
from ba_tui.features.memory.engine.store_process.mind import Mind
from ba_tui.providers.faults import is_loopback

_SECONDS = 5.0
"""Seconds between exchanges."""
_AGAIN = 30.0
_LATE = 10.0
"""Timeout of a call in seconds."""
_SLACK = 3_600.0
"""Tolerated clock difference of a team in seconds."""
_PAGE = 300
_PRIVATE = frozenset({"project", "origin", "pinned", "used", "last_used", "model", "source", "server"})
"""Fields that are not shared."""


class TeamStore:
    """The exchange of one shelf with ``server``. ``why`` describes a failure for the user."""

    def __init__(self, server: TeamServer, shelf: Shelf, mind: Mind) -> None:
        self._server = server
        self._shelf = shelf
        self._mind = mind
        self._place = collection_name(f"{server.url}\0{server.project}", mind.traits.name)
        host = urlsplit(server.url).netloc.rpartition("@")[2]
        self._origin = one_line(f"{host}, project {server.project}", 200)
        self._path = shelf.folder / f"team-{self._place}.json"
        self._settings = Settings(anonymized_telemetry=False)
        self._collection: Any = None
        self._mark, self._cursor = _loaded(self._path)
        self._failed = ""
        self._since = 0.0
        self._news = threading.Event()

    def wake(self) -> None:
        """Exchange entries now: there are new ones, or a user searches."""
        self._news.set()

    @property
    def why(self) -> str:
        if self._failed or (self._since and time.monotonic() - self._since > _LATE):
            host = urlsplit(self._server.url).netloc.rpartition("@")[2]
            said = f" ({self._failed})" if self._failed else ""
            return f"The Chroma server {host} does not answer{said}. Memory works on; entries are shared later."
        return ""

    def start(self) -> None:
        """Exchange entries in a separate thread, until the process ends."""
        self._shelf.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        threading.Thread(target=self._keep_exchanging, daemon=True, name="team").start()

    def exchange(self) -> None:
        """Send new local entries, then fetch new ones. Raises what chromadb raises."""
        collection = self._connected()
        while self._push(collection):
            pass
        newest, unsent = self._cursor, _Unsent(self._shelf.log, self._mark)
        for metadata, id in self._pulled(collection):
            newest = max(newest, float(metadata["changed"]))
            if id not in unsent:
                self._take(id, metadata)
        # A clock that is ahead must not hide later entries.
        self._cursor = min(newest, time.time())
        self._save()

    def close(self) -> None:
        """Close the connections to the server; the next exchange opens new ones.

        The ``close`` of Chroma's HTTP client (1.5.9) leaves them open, and keeps the client for the whole process.
        """
        self._collection = None
        systems: dict[str, Any] = getattr(SharedSystemClient, "_identifier_to_system", {})
        counts: dict[str, int] = getattr(SharedSystemClient, "_identifier_to_refcount", {})
        for id, system in list(systems.items()):
            if system.settings is self._settings:
                systems.pop(id, None)
                counts.pop(id, None)
                session: Any = getattr(system.instance(ServerAPI), "_session", None)
                if session:
                    session.close()
        self._settings = Settings(anonymized_telemetry=False)

    def _keep_exchanging(self) -> None:
        while True:
            self._since = time.monotonic()
            try:
                self.exchange()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next exchange may work
                self.close()
                text = f"{type(error).__name__}: {error}"
                token = self._server.token
                self._failed = one_line(text.replace(token, "***") if token else text, 200)
            else:
                self._failed = ""
            self._since = 0.0
            self._news.wait(_AGAIN if self._failed else _SECONDS)
            self._news.clear()

    def _connected(self) -> Any:
        if self._collection is None:
            address, token = urlsplit(self._server.url), self._server.token
            if is_loopback(self._server.url):
                # No proxy leads to this machine, whatever the environment says.
                os.environ["NO_PROXY"] = f"{os.environ.get('NO_PROXY', '')},{address.hostname}"
            secure = address.scheme == "https"
            client = chromadb.HttpClient(
                address.hostname or "",
                address.port or (443 if secure else 80),
                secure,
                {"Authorization": f"Bearer {token}", "X-Chroma-Token": token} if token else None,
                self._settings,
            )
            space: Any = {"hnsw": {"space": "cosine"}}
            name = collection_name(self._server.project, self._mind.traits.name)
            self._collection = client.get_or_create_collection(name, embedding_function=None, configuration=space)
        return self._collection

    def _push(self, collection: Any) -> bool:
        """Send some of the log's entries that the server lacks; return False if none are left."""
        if not self._shelf.log.continues(self._mark):
            self._mark = Mark()
        touched: dict[str, None] = {}
        gone: dict[str, None] = {}
        mark, lines = self._mark, 0
        for line, after in self._shelf.log.read(mark):
            record = read_object(line) or {}
            operation = record.get("op")
            if operation in {"add", "change", "forget"}:
                (gone if operation == "forget" else touched).update(dict.fromkeys(ids_of(record)))
            mark, lines = after, lines + 1
            if lines == _PAGE:
                break
        if not lines:
            return False
        entries = self._shelf.found([*touched, *gone])
        self._send(collection, [entry for id, entry in entries.items() if id in touched])
        self._send_forgotten(collection, [id for id in gone if id not in entries])
        self._mark = mark
        self._save()
        return True

    def _send(self, collection: Any, entries: Sequence[Entry]) -> None:
        there = _records(collection, [entry.id for entry in entries])
        new = [entry for entry in entries if there.get(entry.id, {}).get("record") != _shared(entry)]
        new = [entry for entry in new if not there.get(entry.id, {}).get("forgotten")]
        if new:
            vectors = self._mind.vectors([entry.text for entry in new], self._shelf.vectors)
            now = time.time()
            collection.upsert(
                ids=[entry.id for entry in new],
                embeddings=numpy.asarray(vectors, numpy.float32),
                metadatas=[{"record": _shared(entry), "changed": now} for entry in new],
            )

    def _send_forgotten(self, collection: Any, ids: Sequence[str]) -> None:
        there = _records(collection, ids)
        forgotten = [id for id in ids if id in there and not there[id].get("forgotten")]
        if forgotten:
            nothing = numpy.zeros((len(forgotten), self._mind.traits.dimensions), numpy.float32)
            nothing[:, 0] = 1.0
            # Deleting first removes the record completely; an update would keep fields that it does not name.
            collection.delete(ids=forgotten)
            marks = [{"forgotten": True, "changed": time.time()} for _ in forgotten]
            collection.upsert(ids=forgotten, embeddings=nothing, metadatas=marks)

    def _pulled(self, collection: Any) -> Iterator[tuple[Mapping[str, Any], str]]:
        offset = 0
        while True:
            page = collection.get(
                where={"changed": {"$gt": self._cursor - _SLACK}}, include=["metadatas"], limit=_PAGE, offset=offset
            )
            yield from zip(page["metadatas"], page["ids"], strict=True)
            offset += len(page["ids"])
            if len(page["ids"]) < _PAGE:
                return

    def _take(self, id: str, metadata: Mapping[str, Any]) -> None:
        known = self._shelf.found([id]).get(id)
        if metadata.get("forgotten"):
            if known:
                self._shelf.forget([id], [self._mind.traits.name])
            return
        record = read_object(str(metadata.get("record", "")).encode()) or {}
        entry = entry_of({**record, "id": id})
        if entry is None or (known and _shared(known) == _shared(entry)):
            return
        try:
            if known is None:
                # Another member stated it: it is not a statement of this user.
                mine = replace(
                    entry, project=self._shelf.folder.name, origin="import", pinned=False, server=self._origin
                )
                self._shelf.add([mine])
            else:
                ours, theirs = json.loads(_shared(known)), json.loads(_shared(entry))
                fields = {name: getattr(entry, name) for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)}
                # From now on the text is another member's, also of an entry that began here.
                self._shelf.change(id, {**fields, "server": self._origin})
        except UsageError:
            # A text that can't be stored here stays on the server.
            return

    def _save(self) -> None:
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps({"mark": self._mark.packed(), "cursor": self._cursor}), "utf-8")
        temporary.replace(self._path)


class _Unsent:
    """Ids in the log after ``mark``. Entries changed or forgotten here since the last sending are newer than the
    server's, and are sent next.
    """

    def __init__(self, log: Log, mark: Mark) -> None:
        self._log = log
        self._mark = mark
        self._ids: set[str] = set()

    def __contains__(self, id: str) -> bool:
        for line, after in self._log.read(self._mark):
            self._ids.update(ids_of(read_object(line) or {}))
            self._mark = after
        return id in self._ids


def _shared(entry: Entry) -> str:
    """Return the server's form of ``entry`` as JSON; equal fields give equal texts."""
    return json.dumps(as_record(entry, without=_PRIVATE), ensure_ascii=False, sort_keys=True)


def _records(collection: Any, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    if not ids:
        return {}
    found = collection.get(ids=list(dict.fromkeys(ids)), include=["metadatas"])
    return dict(zip(found["ids"], found["metadatas"], strict=True))


def _loaded(path: Path) -> tuple[Mark, float]:
    """Return how far the log was sent, and until when entries were fetched."""
    try:
        given = cast("Mapping[str, Any]", json.loads(path.read_bytes()))
        return mark_in(given["mark"]), float(given["cursor"])
    except (OSError, ValueError, KeyError, TypeError):
        return Mark(), 0.0
