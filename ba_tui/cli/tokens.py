"""``ba tokens``: count the tokens of files for a model, by its encoding and margin, or by its provider's count."""

from __future__ import annotations

import codecs
import json
import math
import os
import sys
from collections.abc import Generator, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from ba_tui.cli.config import Cwd, folder_of, load
from ba_tui.cli.streams import open_input, print_line, say
from ba_tui.core.errors import UsageError, run_loop
from ba_tui.core.messages import user
from ba_tui.core.provider import ModelRequest
from ba_tui.core.values import frozen
from ba_tui.permissions.trust.grants import Trust
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import chosen_catalog
from ba_tui.providers.token_counter import EncoderConfig, encoders_of, load_encoders
from ba_tui.providers.token_encodings import Encodings, ExactCounts, TokenEncoding, encoding_of
from ba_tui.resources import places, project_root
from ba_tui.tools.editing.documents import binary_kind, detect

if TYPE_CHECKING:
    from ba_tui.settings import Settings

STDIN = "-"
PART = 1_000_000
LONGEST_PART = 4_000_000
SHOWN_FROM = 20_000_000
"""Smallest file with a progress display, in bytes."""
ASKED = 4_000_000
"""Longest text that providers count in one request, in characters."""
HEAD = 8_192
MESSAGE = 7
"""Default tokens for the frame of a conversation of one message."""
CACHE = "encodings"


@frozen
class FileTokens:
    """The counts of a file, under the keys of ``--json``. ``as_message``: the count with the frame of a message."""

    file: str
    tokens: int
    as_message: int
    family: str
    encoding: str
    margin: float
    exact: bool


def tokens(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE|-", help="Text files; - or nothing reads stdin.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("-m", "--model", metavar="NAME", help="Count for this model instead of yours.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As a JSON list, in the order given.")] = False,
    cwd: Cwd = None,
) -> int:
    """Count the tokens of text files: how many, by which family and margin, whether that is exact, and as a message."""
    named = files or [STDIN]
    if not files and sys.stdin.isatty():
        raise UsageError("No text to count.", "Name a file, or pipe text in: git diff | ba tokens")
    counter = _Counter(model, folder_of(cwd))
    found: list[FileTokens] = []
    for name in named:
        try:
            found.append(counter.count(name))
        except OSError as error:
            say(f"{name} can't be read: {error.strerror or error}.")
        except UsageError as error:
            say(error.with_hint)
    if as_json:
        print_line(json.dumps([asdict(one) for one in found], indent=2))
    else:
        _table(found, counter.model)
    return 0 if len(found) == len(named) else 1


def _table(found: Sequence[FileTokens], model: str) -> None:
    if not found:
        return
    rows = [(f"{one.tokens:,}", "stdin" if one.file == STDIN else one.file) for one in found]
    if len(rows) > 1:
        rows.append((f"{sum(one.tokens for one in found):,}", "together"))
    widest = max(len(number) for number, _ in rows)
    for number, name in rows:
        print_line(f"{number:>{widest}}  {name}")
    first = found[0]
    how = "exact" if all(one.exact for one in found) else "an estimate"
    print_line(f"tokens for {model}: family {first.family}, {first.encoding}, margin {first.margin:g}, {how}")
    if frame := max(one.as_message - one.tokens for one in found):
        print_line(f"sent as a message: {frame} more for each")


class _Counter:
    """Count tokens for one model; print each kind of problem to stderr once."""

    def __init__(self, model: str | None, folder: Path) -> None:
        self._folder = folder
        where, root = places(), project_root(folder)
        self.model = model or load(folder).settings.model
        registry = load_encoders(encoders_of(where, root, lambda: Trust(where).trusted(root)))
        for problem in registry.problems:
            say(problem)
        self._config: EncoderConfig = registry.find(self.model)
        self._encoding: TokenEncoding = encoding_of(self._config, registry, Encodings(where.cache / CACHE))
        if self._encoding.warning:
            say(self._encoding.warning)
        self._exact: ExactCounts | None = None

    def count(self, name: str) -> FileTokens:
        """Count the file ``name``. Raises OSError, or UsageError when it is not text."""
        config, encoding = self._config, self._encoding
        with _opened(name) as file:
            size = 0 if name == STDIN else os.fstat(file.fileno()).st_size
            parts = _parts(file, name, size)
            if config.exact_counting_api:
                held = list(_until(parts, ASKED))
                if (exact := self._by_provider("".join(held))) is not None:
                    return FileTokens(name, exact, exact, config.family.value, encoding.name, config.margin, True)
                parts = (part for several in (held, parts) for part in several)
            raw = sum(map(encoding.measure, parts))
        exact = config.exact and config.margin == 1 and encoding.name == config.encoding
        words = math.ceil(raw * config.margin - 1e-9)
        total = words + (_param(config, "frame", 0) if raw else 0)
        message = max(total, words + (_param(config, "message", MESSAGE) if raw else 0))
        return FileTokens(name, total, message, config.family.value, encoding.name, config.margin, exact)

    def _by_provider(self, text: str) -> int | None:
        """Return the count of the configured endpoint; None, with a message, when it fails."""
        if not text.strip() or len(text) >= ASKED or self._config.exact_counting_api is None:
            return None

        if self._exact is None:
            from ba_tui.providers.pipeline import exact_counts  # noqa: PLC0415 - loads an HTTP client

            self._exact = exact_counts(self.model, self._config.exact_counting_api, self._access)
        failed = bool(self._exact.trouble)
        found = run_loop(self._exact.count(ModelRequest("", [user(text)], ())))
        if self._exact.trouble and not failed:
            say(f"{self._exact.trouble}; estimated instead.")
        return found

    def _access(self) -> tuple[Settings, ProviderAccess]:
        loaded, where = load(self._folder), places()
        return loaded.settings, ProviderAccess(loaded, chosen_catalog(where, strict=True)[0], where)


def _param(config: EncoderConfig, name: str, usual: int) -> int:
    value = config.params.get(name)
    return value if isinstance(value, int) else usual


def _opened(name: str) -> BinaryIO:
    if name == STDIN:
        return open_input()
    if Path(name).is_dir():
        raise UsageError(f"{name} is a folder.", "Name the files in it.")
    return open(name, "rb")


def _until(parts: Iterable[str], limit: int) -> Generator[str]:
    """Yield parts up to ``limit`` characters in total; the rest remains in ``parts``."""
    held = 0
    for part in parts:
        yield part
        held += len(part)
        if held >= limit:
            return


def _parts(file: BinaryIO, name: str, size: int) -> Generator[str]:
    """Yield the text in parts that no token crosses. Raises UsageError when the file is not text."""
    head = file.read(HEAD)
    if kind := binary_kind(head):
        shown = "stdin" if name == STDIN else name
        raise UsageError(f"{shown} is {kind}: it has no tokens as text.", "Convert it to text first.")
    found = detect(head, whole=len(head) < HEAD)
    decoder = codecs.getincrementaldecoder(found.codec)("replace")
    held, read = decoder.decode(head[len(found.mark) :]), len(head)
    while data := file.read(PART):
        read += len(data)
        held += decoder.decode(data)
        _progress(read, size)
        if cut := _cut(held):
            yield held[:cut]
            held = held[cut:]
    held += decoder.decode(b"", final=True)
    if held:
        yield held
    _progress(read, size, done=True)


def _cut(text: str) -> int:
    """Return the index after the last newline before a letter or digit; no token crosses it. 0 when there is none."""
    place = text.rfind("\n", 0, -1)
    while place > 0 and not text[place + 1].isalnum():
        place = text.rfind("\n", 0, place)
    if place > 0:
        return place + 1
    return len(text) if len(text) > LONGEST_PART else 0


def _progress(read: int, size: int, *, done: bool = False) -> None:
    if max(read, size) < SHOWN_FROM or not sys.stderr.isatty():
        return
    whole = f" of {size // 1_000_000:,}" if size else ""
    sys.stderr.write("\r\x1b[K" if done else f"\r{read // 1_000_000:,}{whole} MB counted")
    sys.stderr.flush()
