"""Facts that servers report of their models: their values, a file that saves them, and well-known servers."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field, replace
from dataclasses import fields as dataclass_fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from ba_tui.core.errors import StorageError
from ba_tui.core.provider import Prices
from ba_tui.core.values import frozen
from ba_tui.providers.credentials import BoundKey
from ba_tui.providers.faults import ModelService, check_key, is_loopback
from ba_tui.providers.shapes import decode, fields, text_of
from ba_tui.resources import exclusive, read_regular, save_whole

ANTHROPIC, OPENAI = "https://api.anthropic.com", "https://api.openai.com/v1"
VERSION = "2023-06-01"


@frozen
class ModelServer:
    """A server of models: wire format, address (empty for the vendor's own), key and the key's variable."""

    kind: Literal["anthropic", "openai"]
    url: str = ""
    key: BoundKey | None = field(default=None, repr=False)
    variable: str = ""

    @property
    def base(self) -> str:
        """Return the address up to ``/v1``."""
        url = (self.url or (ANTHROPIC if self.kind == "anthropic" else OPENAI)).rstrip("/")
        return f"{url}/v1" if self.kind == "anthropic" and not url.endswith("/v1") else url

    @property
    def models(self) -> str:
        """Return the address of its list of models; Anthropic's default page has 20 only."""
        return f"{self.base}/models?limit=1000" if self.kind == "anthropic" else f"{self.base}/models"

    @property
    def root(self) -> str:
        return self.base.removesuffix("/v1")

    @property
    def host(self) -> str:
        return self.service().host

    @property
    def hostname(self) -> str:
        """Return its name without the port; empty for the vendor's own."""
        return (urlsplit(self.url).hostname or "") if self.url else ""

    @property
    def own(self) -> bool:
        """Whether it is on the user's machine or network: only such servers are reached without TLS."""
        return self.base.startswith("http://")

    @property
    def tells(self) -> bool:
        """Whether it reports more than names, which OpenAI itself does not."""
        return self.base != OPENAI

    def service(self, model: str = "") -> ModelService:
        secret = self.key.value if self.key else ""
        return ModelService(ModelService("", "", self.base, "").host, self.variable, self.base, model, secret)

    def headers(self) -> Mapping[str, str]:
        """Return the headers of a request. Raises AuthFailed for a key of another address, or one with a line break."""
        plain = {"accept": "application/json"}
        if not self.key or self.key.withheld:
            return plain
        secret = self.key.sent_to(self.url)
        check_key(secret, self.variable)
        if self.kind == "anthropic":
            return {**plain, "x-api-key": secret, "anthropic-version": VERSION}
        return {**plain, "authorization": f"Bearer {secret}"}


SMALLEST, LARGEST = 256, 100_000_000
"""Limits of a plausible window or answer, in tokens."""
DEAREST = 100_000.0
"""US dollars per million tokens. A higher price has another unit."""
MILLION = 1_000_000


@frozen
class ModelFacts:
    """Facts of one model; None: not reported. ``window`` and ``max_output`` in tokens. ``thinking``: takes an
    effort; ``temperature``: takes one."""

    name: str
    window: int | None = None
    max_output: int | None = None
    prices: Prices | None = None
    vision: bool | None = None
    thinking: bool | None = None
    temperature: bool | None = None
    owner: str = ""
    """The maker of the model or the name of the server, as the server writes it."""


@frozen
class ModelList:
    """The models of a server's answer; ``problems``: one line for each kind of wrong value."""

    models: tuple[ModelFacts, ...] = ()
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> ModelFacts | None:
        """Return the model of that name; Ollama's are also found without their tag ``:latest``."""
        wanted = {name, f"{name}:latest"}
        return next((facts for facts in self.models if facts.name in wanted), None)


def merged(first: ModelFacts, *more: ModelFacts) -> ModelFacts:
    """Return ``first``, completed from the others in their order."""
    for other in more:
        told = {each.name: getattr(other, each.name) for each in dataclass_fields(other)}
        gaps = {name: value for name, value in told.items() if getattr(first, name) in (None, "")}
        first = replace(first, **gaps)
    return first


class Doubts:
    """Collects implausible values by kind, so that 10,000 wrong models are one line."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, object]] = {}
        self._count: dict[str, int] = {}

    def tokens(self, name: str, what: str, *told: object) -> int | None:
        """Return the first reported value of ``told`` as a number of tokens."""
        value = next((each for each in told if each is not None), None)
        number = _whole(value)
        if value is None or (number is not None and SMALLEST <= number <= LARGEST):
            return number
        return self._wrong(what, name, value)

    def prices(self, name: str, told: Sequence[object], unit: float) -> Prices | None:
        """Return prices. ``told``: input, output, cached input, cache writes; ``unit`` converts them to dollars per
        million tokens. Without a reported discount for cached input, none is assumed."""
        numbers = [None if value is None else _amount(value) for value in told]
        first, last, *cached = numbers
        if told[0] is None or told[1] is None or -1 in numbers:
            # -1: the price depends on the provider to which a router sends the request.
            return None
        if first is None or last is None or not all(_fair(each, unit) for each in numbers if each is not None):
            return self._wrong("price", name, next(t for t, n in zip(told, numbers, strict=True) if not _fair(n, unit)))
        read, write = (first if each is None else each for each in cached)
        first, last, read, write = (round(each * unit, 6) for each in (first, last, read, write))
        return Prices(first, last, read, write)

    def lines(self) -> tuple[str, ...]:
        """Return one line for each kind of wrong value."""
        return tuple(self._line(what, *first) for what, first in self._first.items())

    def _wrong(self, what: str, name: str, value: object) -> None:
        self._first.setdefault(what, (name, value))
        self._count[what] = self._count.get(what, 0) + 1

    def _line(self, what: str, name: str, value: object) -> str:
        more = self._count[what] - 1
        others = f", and so do {more:,} more models" if more else ""
        return f"{quoted(name)} has an invalid {what}, {quoted(value)}{others}. ba does not use it."


def quoted(value: object) -> str:
    """Return ``value`` in quotes, short and on one line."""
    text = value if isinstance(value, str) else repr(value)
    return f"“{''.join(letter if letter.isprintable() else '?' for letter in text[:60])}”"


def switch(value: object) -> bool | None:
    """Return True or False where ``value`` is clearly one, else None."""
    return value if isinstance(value, bool) else None


def within(value: object, *wanted: str) -> bool | None:
    """Whether a list of names has one of ``wanted``; None when it is no list of names."""
    if not isinstance(value, list):
        return None
    return any(name in wanted for name in cast("list[Any]", value) if isinstance(name, str))


def _whole(value: Any) -> int | None:
    number = _amount(value)
    return int(number) if number is not None and number == int(number) else None


def _amount(value: object) -> float | None:
    """Return a finite number, also from text."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | str)
        or (isinstance(value, str) and len(value) > 40)
    ):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _fair(number: float | None, unit: float) -> bool:
    return number is not None and 0 <= number * unit <= DEAREST


FILE = "model-facts.json"
"""In ba's cache folder."""
KEPT = 300
"""Models whose facts are saved, the latest first."""
LONGEST = 500_000
"""Bytes of the file that are read."""
DAY = 86_400.0
FRESH = DAY
"""Seconds after which a vendor is asked again. A server of the user's own is asked once at each start: its window may
have changed."""
OLDEST = 90 * DAY


@frozen
class ToldFacts:
    """Reported facts; ``at``: when, in seconds since 1970."""

    facts: ModelFacts
    at: float


class KnownFacts:
    """Saves facts by server and model in ``file``, so that the next start has them before any request. It is only a
    cache: facts that can't be read are asked for again, others are lost with the process."""

    def __init__(self, file: Path, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._told: dict[str, ToldFacts] | None = None
        self._asked: set[str] = set()
        self.version = 0
        """Changes with each new fact."""

    def find(self, server: ModelServer, name: str) -> ModelFacts | None:
        """Return the facts that ``server`` reported of the model ``name``, its prices with the day of the report."""
        told = self._known().get(_key(server, name))
        if told is None:
            return None
        prices = told.facts.prices
        day = datetime.fromtimestamp(told.at, UTC).date().isoformat()
        return replace(told.facts, prices=replace(prices, date=day)) if prices else told.facts

    def wanted(self, server: ModelServer, name: str) -> bool:
        """Whether ``server`` has to be asked now; True once a start."""
        key = _key(server, name)
        told = self._known().get(key)
        fresh = told is not None and not server.own and 0 <= self._clock() - told.at < FRESH
        if not server.tells or fresh or key in self._asked:
            return False
        self._asked.add(key)
        return True

    def learn(self, server: ModelServer, facts: ModelFacts) -> None:
        """Save ``facts`` together with those that other processes saved. Blocks for the disk; never raises."""
        told = ToldFacts(facts, self._clock())
        self._known()[_key(server, facts.name)] = told
        self.version += 1
        with suppress(StorageError, OSError), exclusive(self._file.parent):
            kept = {**_read(self._file, self._clock()), _key(server, facts.name): told}
            latest = sorted(kept.items(), key=lambda item: item[1].at)[-KEPT:]
            text = json.dumps({key: _encoded(one) for key, one in latest}, ensure_ascii=False, indent=1)
            save_whole(self._file, text + "\n", mode=0o600)

    def _known(self) -> dict[str, ToldFacts]:
        if self._told is None:
            self._told = _read(self._file, self._clock())
        return self._told


def _key(server: ModelServer, name: str) -> str:
    return f"{server.base} {name}"


def _encoded(told: ToldFacts) -> dict[str, Any]:
    said = {key: value for key, value in asdict(told.facts).items() if value not in (None, "")}
    if prices := told.facts.prices:
        said["prices"] = [prices.input, prices.output, prices.cache_read, prices.cache_write]
    return {**said, "at": int(told.at)}


def _read(file: Path, now: float) -> dict[str, ToldFacts]:
    with suppress(OSError, ValueError):
        pairs = fields(decode(read_regular(file, LONGEST)))
        told = ((key, _decoded(fields(value))) for key, value in pairs.items())
        return {key: one for key, one in told if one and 0 <= now - one.at < OLDEST}
    return {}


def _decoded(value: dict[str, Any]) -> ToldFacts | None:
    at, name = value.get("at"), text_of(value.get("name"))
    if not name or not isinstance(at, int | float):
        return None

    def tokens(key: str) -> int | None:
        number = value.get(key)
        return number if isinstance(number, int) and SMALLEST <= number <= LARGEST else None

    able = (switch(value.get(key)) for key in ("vision", "thinking", "temperature"))
    prices, owner = _prices(value.get("prices")), text_of(value.get("owner"))
    return ToldFacts(ModelFacts(name, tokens("window"), tokens("max_output"), prices, *able, owner=owner), float(at))


def _prices(value: Any) -> Prices | None:
    match value:
        case [int() | float() as first, int() | float() as second, int() | float() as third, int() | float() as fourth]:
            return Prices(first, second, third, fourth) if min(first, second, third, fourth) >= 0 else None
        case _:
            return None


SHORT = 0.5
"""Seconds that a usual port has to answer."""
LLAMA_CPP, LLAMA_CPP_OWNER = "llama.cpp", "llamacpp"
"""The name of llama.cpp in the header ``Server``, and in its list of models."""


@frozen
class KnownServer:
    """A program that serves models at an address of config/default.yaml; ``start`` is its command."""

    title: str
    start: str


KNOWN: Mapping[str, KnownServer] = {
    "ollama": KnownServer("Ollama", "ollama serve"),
    "lmstudio": KnownServer("LM Studio", "lms server start"),
    "llamacpp": KnownServer("llama.cpp", "llama-server --jinja -m MODEL.gguf"),
    "vllm": KnownServer("vLLM", "vllm serve MODEL"),
}


def is_near(url: str) -> bool:
    """Whether ``url`` is a plain address of this machine or its network, so that a request takes no time."""
    from ipaddress import ip_address  # noqa: PLC0415 - most starts ask a vendor

    parts = urlsplit(url)
    try:
        near = is_loopback(url) or ip_address(parts.hostname or "").is_private
    except ValueError:
        near = False
    return near and parts.scheme == "http"


def server_header(url: str) -> str | None:
    """Return the header ``Server``, empty without one, None without an answer. Two steps of at most SHORT seconds."""
    from http.client import HTTPConnection, HTTPException  # noqa: PLC0415 - most starts ask a vendor

    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=SHORT)
    try:
        connection.connect()
    except OSError:
        return None
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/models")
        return connection.getresponse().getheader("Server", "")
    except (OSError, HTTPException):
        return ""
    finally:
        connection.close()
