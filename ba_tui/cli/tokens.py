"""``ba tokens``: how many tokens files have for a model, by its encoding and margin, or as its provider counts them.

How a model is counted stands in ``ba_tui.providers``.
"""

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

from ba_tui.cli.config import Cwd, folder_of, load, print_line, say
from ba_tui.cli.streams import open_input
from ba_tui.core.errors import UsageError, run_loop
from ba_tui.core.values import frozen
from ba_tui.resources import places, project_root

if TYPE_CHECKING:
    from ba_tui.providers.access import ProviderAccess
    from ba_tui.providers.tokens.config import EncoderConfig
    from ba_tui.providers.tokens.encodings import TokenEncoding
    from ba_tui.providers.tokens.exact import ExactCounts
    from ba_tui.settings import Settings

STDIN = "-"
PART = 1_000_000
LONGEST_PART = 4_000_000
SHOWN_FROM = 20_000_000
"""Bytes; who waits for more is shown how far it is."""
ASKED = 4_000_000
"""Characters; more than this no provider counts in one request."""
HEAD = 8_192
MESSAGE = 7
"""Tokens around the words of a conversation of one message, where its family says nothing else."""
CACHE = "encodings"


@frozen
class Counted:
    """What is printed of a file, as ``--json`` names it. ``as_message``: what a provider counts when it is sent alone
    as a message, whose frame has tokens as well."""

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
        str | None, typer.Option("-m", "--model", metavar="NAME", help="Count for this model; else for yours.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As a JSON list, in the order given.")] = False,
    cwd: Cwd = None,
) -> int:
    """Count the tokens of text files: how many, by which family and margin, whether that is exact, and as a message."""
    named = files or [STDIN]
    if not files and sys.stdin.isatty():
        raise UsageError("No text to count.", "Name a file, or pipe text in: git diff | ba tokens")
    counter = _Counter(model, folder_of(cwd))
    found: list[Counted] = []
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


def _table(found: Sequence[Counted], model: str) -> None:
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
    """For one model; says on stderr, once each, what is not as it should be."""

    def __init__(self, model: str | None, folder: Path) -> None:
        from ba_tui.permissions.trust.grants import Trust  # noqa: PLC0415 - --help must not wait for it
        from ba_tui.providers.tokens.encodings import Encodings, encoding_of  # noqa: PLC0415
        from ba_tui.providers.tokens.registry import encoders_of, load_encoders  # noqa: PLC0415

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

    def count(self, name: str) -> Counted:
        """Raises OSError, and UsageError for what is no text."""
        config, encoding = self._config, self._encoding
        with _opened(name) as file:
            size = 0 if name == STDIN else os.fstat(file.fileno()).st_size
            parts = _parts(file, name, size)
            if config.exact_counting_api:
                held = list(_until(parts, ASKED))
                if (exact := self._by_provider("".join(held))) is not None:
                    return Counted(name, exact, exact, config.family.value, encoding.name, config.margin, True)
                parts = (part for several in (held, parts) for part in several)
            raw = sum(map(encoding.measure, parts))
        exact = config.exact and config.margin == 1 and encoding.name == config.encoding
        words = math.ceil(raw * config.margin - 1e-9)
        total = words + (_param(config, "frame", 0) if raw else 0)
        message = max(total, words + (_param(config, "message", MESSAGE) if raw else 0))
        return Counted(name, total, message, config.family.value, encoding.name, config.margin, exact)

    def _by_provider(self, text: str) -> int | None:
        """The count of the configured endpoint; None when it can't be had, which is said."""
        if not text.strip() or len(text) >= ASKED or self._config.exact_counting_api is None:
            return None
        from ba_tui.core.messages import user  # noqa: PLC0415 - where a provider is asked
        from ba_tui.core.provider import ModelRequest  # noqa: PLC0415

        if self._exact is None:
            from ba_tui.providers.vendors import exact_counts  # noqa: PLC0415 - loads an HTTP client

            self._exact = exact_counts(self.model, self._config.exact_counting_api, self._access)
        failed = bool(self._exact.trouble)
        found = run_loop(self._exact.count(ModelRequest("", [user(text)], ())))
        if self._exact.trouble and not failed:
            say(f"{self._exact.trouble}; estimated instead.")
        return found

    def _access(self) -> tuple[Settings, ProviderAccess]:
        from ba_tui.providers.access import ProviderAccess  # noqa: PLC0415 - where a provider is asked
        from ba_tui.providers.catalog import chosen_catalog  # noqa: PLC0415

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
    """Parts up to ``limit`` characters; the rest stays in ``parts``."""
    held = 0
    for part in parts:
        yield part
        held += len(part)
        if held >= limit:
            return


def _parts(file: BinaryIO, name: str, size: int) -> Generator[str]:
    """The text in parts that end where no token can lie across. Raises UsageError when it is no text."""
    from ba_tui.tools.editing.documents import binary_kind, detect  # noqa: PLC0415 - --help must not wait for it

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
    """Behind the last line end that a letter or a digit follows: no encoding joins over it. 0 to wait for more."""
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
