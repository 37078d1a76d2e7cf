"""The vectors of one shelf in a folder of Chroma, searched by cosine. Only this module and ``team`` import chromadb."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import chromadb
import numpy
from chromadb.config import Settings

from ba_tui.core.errors import BaError
from ba_tui.core.text.wording import one_line

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.embedding import Vectors

T = TypeVar("T")
_LONGEST = 200
_SPACE: Any = {"hnsw": {"space": "cosine", "ef_construction": 64, "ef_search": 200, "max_neighbors": 16}}


class IndexBroken(BaError):
    """The vector index returned an error or an invalid answer."""

    kind = "index_broken"


class ChromaIndex:
    """``folder`` belongs to this process alone. Methods raise IndexBroken. Not thread-safe."""

    def __init__(self, folder: Path, shelf: str, model: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings = Settings(anonymized_telemetry=False, allow_reset=False)
        self._client: Any = _checked(lambda: chromadb.PersistentClient(str(folder), settings))
        name = collection_name(shelf, model)
        try:
            self._collection: Any = _checked(
                lambda: self._client.get_or_create_collection(name, embedding_function=None, configuration=_SPACE)
            )
        except IndexBroken:
            self.close()
            raise

    def close(self) -> None:
        """Close the files. All other methods raise IndexBroken afterwards."""
        with suppress(IndexBroken):
            _checked(self._client.close)

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Add vectors, replacing those of the same ids."""
        if ids:
            _checked(lambda: self._collection.upsert(ids=list(ids), embeddings=numpy.asarray(vectors, numpy.float32)))

    def remove(self, ids: Iterable[str]) -> None:
        if gone := self.known(ids):
            _checked(lambda: self._collection.delete(ids=sorted(gone)))

    def known(self, ids: Iterable[str]) -> set[str]:
        """Return those of the ids that have a vector."""
        wanted = list(dict.fromkeys(ids))
        return set(_checked(lambda: self._collection.get(ids=wanted, include=[])["ids"])) if wanted else set()

    def nearest(self, vector: Vectors, limit: int) -> Mapping[str, float]:
        """Return the ids with the highest cosines, highest first."""
        found = _checked(
            lambda: self._collection.query(query_embeddings=[vector], n_results=limit, include=["distances"])
        )
        return {id: 1.0 - float(distance) for id, distance in zip(found["ids"][0], found["distances"][0], strict=True)}

    def cosines(self, vector: Vectors, ids: Iterable[str]) -> Mapping[str, float]:
        """Return the cosines of those ids that have a vector."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return {}
        found = _checked(lambda: self._collection.get(ids=wanted, include=["embeddings"]))
        cosines = numpy.asarray(found["embeddings"], numpy.float32).reshape(-1, len(vector)) @ vector
        return {id: float(cosine) for id, cosine in zip(found["ids"], cosines, strict=True)}


def collection_name(shelf: str, model: str) -> str:
    """Return the ASCII name of the collection for vectors of ``shelf`` by ``model``."""
    digest = hashlib.blake2b(f"{shelf}\0{model}".encode("utf-8", "replace"), digest_size=16).hexdigest()
    return f"ba-{digest}"


def _checked(call: Callable[[], T]) -> T:
    """Return the result of ``call``. Chroma raises arbitrary exceptions, also panics of its core, which are not
    Exceptions.
    """
    try:
        return call()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        text = one_line(f"{type(error).__name__}: {error}", _LONGEST)
        raise IndexBroken(f"The vector index does not answer ({text}).") from error
