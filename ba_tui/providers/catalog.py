"""The catalogue of models: facts from models.yaml files, in layers of which later ones win."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import date, datetime
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.provider import LOCAL_OUTPUT, LOCAL_WINDOW, ModelInfo, Prices, ToolCalling
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import nearest, similar
from ba_tui.core.values import frozen
from ba_tui.providers.model_facts import ModelFacts
from ba_tui.resources import UserFolders, bundled, there

if TYPE_CHECKING:
    from ba_tui.providers.marked_yaml import YamlNode

ABILITIES = ("vision", "thinking", "temperature", "tools")
KEYS = ("match", "provider", "host", "family", "window", "output", "prices", *ABILITIES)
KINDS = ("anthropic", "openai")
SCRIPTED = "scripted:"
_WILD = regex(r"[*?\[]")
RATES = ("input", "output", "cache_read", "cache_write")


@frozen
class ModelEntry:
    """The facts that one entry of a file states for the models that it matches; None: not stated."""

    patterns: tuple[str, ...]
    provider: str | None = None
    host: str | None = None
    family: str | None = None
    window: int | None = None
    output: int | None = None
    prices: Prices | None = None
    vision: bool | None = None
    thinking: bool | None = None
    temperature: bool | None = None
    tools: ToolCalling | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(pattern for pattern in self.patterns if not set(pattern) & set("*?["))


@frozen
class NamePattern:
    """A pattern of ``entry`` and the letters before its first wildcard, by which nearly all fail uncompiled."""

    start: str
    text: str
    entry: ModelEntry

    def fit(self, name: str) -> int:
        """Return how closely it matches ``name``: its length, more for the exact name; -1 without a match."""
        if not name.startswith(self.start) or not fnmatch.fnmatchcase(name, self.text):
            return -1
        return len(name) + 1 if self.text == name else len(self.text) - 1


@frozen
class CatalogLayer:
    """One file: its entries, and the small model of each vendor."""

    entries: tuple[ModelEntry, ...] = ()
    small: Mapping[str, str] = field(default_factory=dict[str, str])
    patterns: tuple[NamePattern, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        found = ((entry, _plain(text)) for entry in self.entries for text in entry.patterns)
        patterns = tuple(NamePattern(_WILD.split(text, maxsplit=1)[0], text, entry) for entry, text in found)
        object.__setattr__(self, "patterns", patterns)

    def fitting(self, name: str) -> list[ModelEntry]:
        """Return the entries that match ``name``, the closest first; equally close ones in the order of the file."""
        closest: dict[int, tuple[int, ModelEntry]] = {}
        for pattern in self.patterns:
            closeness = pattern.fit(name)
            if closeness > closest.get(id(pattern.entry), (-1, pattern.entry))[0]:
                closest[id(pattern.entry)] = closeness, pattern.entry
        return [entry for _, entry in sorted(closest.values(), key=itemgetter(0), reverse=True)]


@frozen
class ModelHost:
    """The server of a model: ``host``, unless it is the provider's own; ``local``: on the user's machine or network;
    ``resold``: with prices of its own; ``told``: the facts it reported."""

    host: str = ""
    local: bool = False
    resold: bool = False
    told: ModelFacts | None = None


VENDOR = ModelHost()
HOSTED = ModelInfo("", "", "")
LOCAL = ModelInfo("", "", "", window=LOCAL_WINDOW, max_output=LOCAL_OUTPUT)
"""Assumed facts of a model without any."""


class ModelCatalog:
    """Finds models in ``layers``, the most specific first. Facts of a server override the last, which ships with ba."""

    def __init__(self, layers: Sequence[CatalogLayer]) -> None:
        self._layers = layers
        self._known: dict[str, list[list[ModelEntry]]] = {}

    def models(self) -> tuple[ModelInfo, ...]:
        """Return all models that have an exact name."""
        return tuple(self.find(name) for name in self._names())

    def small(self, provider: str) -> str:
        """Return the id of the vendor's small model; empty when none is named."""
        name = next((layer.small[provider] for layer in self._layers if provider in layer.small), "")
        return f"{provider}/{name}" if name else ""

    def _names(self) -> Sequence[str]:
        return list(dict.fromkeys(name for layer in self._layers for entry in layer.entries for name in entry.names))

    def find(self, name: str, serving: ModelHost = VENDOR) -> ModelInfo:
        """Return the facts of ``provider/model``, a bare name, ``demo`` or ``scripted:FILE``. Raises UsageError."""
        given = name.strip()
        if given == "demo" or (given.startswith(SCRIPTED) and len(given) > len(SCRIPTED)):
            provider, _, model = given.partition(":")
            return ModelInfo(given, provider, model or given, family="scripted", vision=True, thinking=True, known=True)
        provider, slash, model = given.partition("/")
        if provider in KINDS and model:
            return self._info(provider, model, serving)
        given = given if slash else self._newest(given) or given
        owner = (
            None if slash else next((entry.provider for entry in _merged(self._fitting(given)) if entry.provider), None)
        )
        if owner is None:
            raise self._unknown(given)
        return self._info(owner, given, serving)

    def _newest(self, word: str) -> str | None:
        """Return the model of one of Claude Code's short names: ``sonnet`` is the newest, which is listed first."""
        return next(
            (name for name in self._names() if word.isalpha() and name.startswith(f"claude-{word.lower()}-")), None
        )

    def _info(self, provider: str, model: str, serving: ModelHost) -> ModelInfo:
        layers = self._fitting(model)
        listed = _merged(layers)
        owner = next((entry.provider for entry in listed if entry.provider), provider)
        vendor = next((entry.host for entry in listed if entry.host), "")
        # A reseller has its own prices: the vendor's apply to the vendor's own name and host only.
        own = "/" not in model and (serving.host == vendor if vendor else owner == provider and not serving.resold)
        *theirs, ours = layers
        told = [_entry_of(serving.told)] if serving.told else []
        entries = [*_merged(theirs), *told, *ours]
        assumed = LOCAL if serving.local and not any(entry.window for entry in entries) else HOSTED
        ways: list[ToolCalling] = [entry.tools for entry in entries if entry.tools is not None]
        priced = [*(layer[0] for layer in theirs if layer), *told, *(ours[:1] if own else ())]
        return ModelInfo(
            f"{provider}/{model}",
            provider,
            model,
            family=next((entry.family for entry in entries if entry.family), assumed.family),
            window=next((entry.window for entry in entries if entry.window), assumed.window),
            max_output=next((entry.output for entry in entries if entry.output), assumed.max_output),
            prices=next((entry.prices for entry in priced if entry.prices), None),
            # Vision is assumed unless an entry denies it: pictures are sent rather than withheld. The same goes for the
            # others.
            vision=next((entry.vision for entry in entries if entry.vision is not None), bool(listed)),
            thinking=next((entry.thinking for entry in entries if entry.thinking is not None), not listed),
            temperature=next((entry.temperature for entry in entries if entry.temperature is not None), True),
            tools=ways[0] if ways else "auto",
            known=any(entry.window for entry in entries),
        )

    def _fitting(self, model: str) -> list[list[ModelEntry]]:
        """Return the matching entries of each layer, the closest first."""
        name = _plain(model.rpartition("/")[2].partition(":")[0])
        if name not in self._known:
            self._known[name] = [layer.fitting(name) for layer in self._layers]
        return self._known[name]

    def _unknown(self, given: str) -> UsageError:
        provider, slash, model = given.partition("/")
        if slash and provider == "demo":
            return UsageError(f"{given!r} runs in the demo only.", "Start it: ba demo.")
        if slash and provider not in KINDS:
            near = nearest(provider, KINDS)
            hint = f"Did you mean “{near}/{model}”?" if near else "See ba guide models."
            return UsageError(f"There is no provider {provider!r}.", hint)
        close = similar(_plain(given), self._names(), 2)
        meant = f"Did you mean {' or '.join(close)}? " if close else ""
        return UsageError(
            f"There is no model {given!r}.", f"{meant}Name any other model with its provider: openai/MODEL."
        )


def _merged(layers: Iterable[Sequence[ModelEntry]]) -> list[ModelEntry]:
    return [entry for layer in layers for entry in layer]


def _entry_of(told: ModelFacts) -> ModelEntry:
    return ModelEntry(
        (told.name,),
        window=told.window,
        output=told.max_output,
        prices=told.prices,
        vision=told.vision,
        thinking=told.thinking,
        temperature=told.temperature,
    )


def _plain(name: str) -> str:
    """Return ``name`` with dashes for dots: vendors and resellers write the same version in both ways."""
    return name.lower().replace(".", "-")


def load_catalog(paths: Iterable[Path]) -> ModelCatalog:
    """Read files, the most general first: later ones win. Raises UsageError naming file, line, key and expectation."""
    return ModelCatalog([_read(path) for path in paths][::-1])


def chosen_catalog(where: UserFolders, *, strict: bool) -> tuple[ModelCatalog, list[Notice]]:
    """Return the models of the user's file over those that ship with ba. A broken file is reported as a notice, or if
    ``strict`` raises UsageError."""
    ours, theirs = bundled("config") / "models.yaml", where.config / "models.yaml"
    try:
        return ModelCatalog([*([_read(theirs)] if there(theirs) else []), _shipped(ours)]), []
    except UsageError as error:
        if strict:
            raise
        return ModelCatalog([_shipped(ours)]), [Notice(str(error), "warning", error.hint)]


class ModelChoices:
    """core.ports.settings.ModelCatalogue: the models of ``catalog`` whose providers the settings name."""

    def __init__(self, catalog: ModelCatalog, providers: Collection[str]) -> None:
        self._catalog = catalog
        self._providers = frozenset(providers)

    def models(self) -> Sequence[ModelInfo]:
        return [info for info in self._catalog.models() if info.provider in self._providers]


def _read(path: Path) -> CatalogLayer:
    from ba_tui.providers.marked_yaml import read_yaml  # noqa: PLC0415 - loads yaml

    top = read_yaml(path)
    if top is None:
        return CatalogLayer()
    found = top.mapping(("models", "small"))
    entries = tuple(_entry(node) for node in found["models"].sequence()) if "models" in found else ()
    small = {name: node.text() for name, node in found["small"].mapping(KINDS).items()} if "small" in found else {}
    return CatalogLayer(entries, small)


@lru_cache(maxsize=1)
def _shipped(path: Path) -> CatalogLayer:
    """Return the layer of the file that ships with ba; it does not change while ba runs. Raises as ``load_catalog``."""
    return _read(path)


def _entry(node: YamlNode) -> ModelEntry:
    found = node.mapping(KEYS)
    if "match" not in found:
        raise node.wrong("a model with “match”, a list of names")
    provider = found["provider"].text() if "provider" in found else None
    if provider not in {None, *KINDS}:
        raise found["provider"].wrong("anthropic or openai")
    return ModelEntry(
        tuple(pattern.text() for pattern in found["match"].sequence()),
        provider,
        found["host"].text() if "host" in found else None,
        found["family"].text() if "family" in found else None,
        _tokens(found["window"]) if "window" in found else None,
        _tokens(found["output"]) if "output" in found else None,
        _prices(found["prices"]) if "prices" in found else None,
        found["vision"].flag() if "vision" in found else None,
        found["thinking"].flag() if "thinking" in found else None,
        found["temperature"].flag() if "temperature" in found else None,
        _calling(found["tools"]) if "tools" in found else None,
    )


def _calling(node: YamlNode) -> ToolCalling:
    ways: tuple[ToolCalling, ...] = get_args(ToolCalling)
    if node.text() not in ways:
        raise node.wrong(f"one of {', '.join(ways)}")
    return cast("ToolCalling", node.text())


def _tokens(node: YamlNode) -> int:
    number = node.whole()
    if number == 0:
        raise node.wrong("a number of tokens, 1 or more")
    return number


def _prices(node: YamlNode) -> Prices:
    found = node.mapping((*RATES, "date", "above"))
    rates = _rates(node, found)
    above = found["above"].mapping(("tokens", *RATES)) if "above" in found else None
    if above is not None and "tokens" not in above:
        raise found["above"].wrong("prices for prompts of more than so many “tokens”")
    return Prices(
        *rates,
        date=_date(found["date"]) if "date" in found else "",
        above=_tokens(above["tokens"]) if above else 0,
        long=Prices(*_rates(found["above"], above)) if above else None,
    )


def _rates(node: YamlNode, found: Mapping[str, YamlNode]) -> tuple[float, float, float, float]:
    if any(key not in found for key in RATES):
        raise node.wrong(f"US dollars per million tokens for each of {', '.join(RATES)}")
    first, second, third, fourth = (found[key].number() for key in RATES)
    return first, second, third, fourth


def _date(node: YamlNode) -> str:
    if not isinstance(node.value, date) or isinstance(node.value, datetime):
        raise node.wrong("a day, such as 2026-10-26")
    return node.value.isoformat()
