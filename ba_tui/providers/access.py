"""Which profile serves a model, whether it has a key, and what to do without one; the slots main, small, reasoning and
fallback; rate limits; keys and servers that the user adds.

No vendor's module is imported here: ``pipeline`` imports them late.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.messages import Usage
from ba_tui.core.ports.settings import SLOTS, FoundServer
from ba_tui.core.provider import ModelInfo
from ba_tui.core.values import frozen
from ba_tui.providers.catalog import KINDS, ModelCatalog, ModelHost
from ba_tui.providers.credentials import CLOUDS, TOKENS, WITHHELD, BoundKey, anthropic_without_key, lacking, plain_name
from ba_tui.providers.faults import is_loopback
from ba_tui.providers.local_files import LOCAL, PREFIX, LocalProcesses, lacking_library, local_model
from ba_tui.providers.model_facts import (
    FILE,
    KNOWN,
    LLAMA_CPP,
    LLAMA_CPP_OWNER,
    KnownFacts,
    ModelServer,
    is_near,
    server_header,
)
from ba_tui.providers.text_calls.detection import Formats
from ba_tui.resources import UserFolders
from ba_tui.settings import LoadedSettings, ModelProfile, Settings, read_key, save_key, set_value, sound_key
from ba_tui.settings.setters import OPENS_FILE

if TYPE_CHECKING:
    from ba_tui.providers.model_facts import ModelFacts
    from ba_tui.providers.servers import ServerSearch


DEMO = "demo"
SCRIPTED = "scripted"


class ProviderAccess:
    """Reads profiles and keys from the loaded settings. A key or server that is added is used from then on."""

    def __init__(self, loaded: LoadedSettings, catalog: ModelCatalog, places: UserFolders) -> None:
        self._settings = loaded.settings
        self._own = loaded.own.providers
        self._chosen = loaded.sources.get("model") not in {"bundled", "default"}
        self._claude = loaded.wanted_model
        self._catalog = catalog
        self._places = places
        self._sources = loaded.sources
        self._added: dict[str, ModelProfile] = {}
        self._infos: dict[str, tuple[tuple[int, int], ModelInfo]] = {}
        self.facts = KnownFacts(places.cache / FILE)
        self.limits = RateLimits()
        self.formats = Formats(places.state / "tool_calls.json")
        self.local = LocalProcesses(places.cache)
        self.slots = Slots(loaded, catalog, self)
        self._llama_cpp: set[str] = set()
        """Addresses at which llama.cpp answered."""

    def default_model(self) -> str:
        """Return the model of the settings, else, if the user did not choose one that is ready, the first that is."""
        model = self._settings.model
        if not self._chosen and (wanted := self._wanted()):
            return wanted
        if self._chosen or not self.missing(model):
            return model
        first: dict[str, str] = {}
        for info in self._catalog.models():
            first.setdefault(info.provider, info.id)
        return next((first[name] for name in self._settings.providers if name in first and self.ready(name)), model)

    def _wanted(self) -> str:
        """Return the model of Claude Code's settings if it can be used, else an empty text."""
        name = self._claude.removesuffix("[1m]")
        if not name:
            return ""
        names = [info.id for info in self._catalog.models() if info.provider == "anthropic"]
        # An alias such as opus means the newest model of the family, which the catalogue lists first.
        full = f"anthropic/{name}" if name.startswith("claude-") else ""
        found = full or next((each for each in names if each.startswith(f"anthropic/claude-{name}-")), "")
        return found if found and not self.missing(found) else ""

    def first_model(self, provider: str) -> str:
        return next((info.id for info in self._catalog.models() if info.provider == provider), "")

    def model(self, name: str) -> ModelInfo:
        """Return the facts of ``name`` from its server or models.yaml. Raises UsageError for no valid model."""
        now = (self.facts.version, self.formats.version)
        version, info = self._infos.get(name, (None, None))
        if info is None or version != now:
            info = self._calling(self._found(name.strip()))
            self._infos[name] = (now, info)
        return info

    def _calling(self, info: ModelInfo) -> ModelInfo:
        """Return ``info`` with how it calls tools, by its provider's settings, the catalogue, or what was learnt."""
        learnt = self.formats.of(info.id)
        said = (self.profile(info).tools, info.tools, learnt.form if learnt else "auto")
        return replace(info, tools=next((each for each in said if each != "auto"), "auto"))

    def _found(self, name: str) -> ModelInfo:
        if name.startswith(PREFIX):
            return local_model(name, self._settings.local)
        provider, slash, rest = name.partition("/")
        profile = self.profiles().get(provider) if slash and rest else None
        if profile and profile.kind == LOCAL:
            return local_model(rest, self._settings.local)
        if profile is None or (profile.kind == provider and provider in KINDS):
            info = self._catalog.find(name)
            if profile := self.profiles().get(info.provider):
                info = self._catalog.find(info.id, self._serving(info, profile))
        elif profile.kind == SCRIPTED:
            info = replace(self._catalog.find(f"{SCRIPTED}:{rest}"), id=name, provider=provider)
        else:
            serving = self._serving(ModelInfo(name, provider, rest), profile)
            found = self._catalog.find(f"{profile.format}/{plain_name(profile.kind, rest)}", serving)
            info = replace(found, id=name, provider=provider, name=rest)
        if info.provider in self.profiles() or info.provider in {DEMO, SCRIPTED}:
            return info
        known = ", ".join(sorted(self.profiles()))
        raise UsageError(f"There is no provider {info.provider!r} for {name!r}.", f"Providers: {known}.")

    def _serving(self, info: ModelInfo, profile: ModelProfile) -> ModelHost:
        if profile.kind in CLOUDS:
            return ModelHost(resold=True)
        server = _server(profile)
        told = self.facts.find(server, info.name)
        # A server of the user's own has its own prices, so none is assumed.
        return ModelHost(server.hostname, server.own, info.provider != profile.kind, told)

    def server(self, info: ModelInfo) -> ModelServer | None:
        """Return the server to ask for facts of a model; None for scripts, files and clouds. Raises StorageError."""
        profile = self.profile(info)
        return None if profile.kind in {SCRIPTED, LOCAL, *CLOUDS} else _server(profile, self.key(info.provider))

    def profile(self, info: ModelInfo) -> ModelProfile:
        if info.provider == LOCAL:
            return ModelProfile(kind="local")
        return self.profiles().get(info.provider) or ModelProfile(kind="scripted")

    def key(self, provider: str) -> BoundKey | None:
        """Return the user's key of ``provider``, bound to the address for which it was given. Raises StorageError."""
        if self._brought(provider):
            return WITHHELD
        own = self._added.get(provider) or self._own.get(provider) or ModelProfile()
        key = read_key(provider, own.api_key_env, self._places)
        return BoundKey(key.value, own.base_url) if key else None

    def _brought(self, provider: str) -> bool:
        """Whether a file of the project defines ``provider``, so that no key of the user's may be sent there."""
        return provider in self._settings.providers and provider not in {*self._own, *self._added}

    def _known_key(self, provider: str) -> str | None:
        key = self.key(provider)
        return key.value if key else None

    def variables(self) -> frozenset[str]:
        """Return the environment variables that hold keys; no child process gets them."""
        memory, search = self._settings.memory, self._settings.web_search
        others = (memory.api_key_env, memory.endpoint.api_key_env, search.api_key_env)
        named = (profile.api_key_env for profile in self.profiles().values())
        return TOKENS.union(name for name in (*named, *others) if name)

    def ready(self, provider: str) -> bool:
        """Whether ``provider`` can be used: it has a key, or its address was set on purpose and needs none."""
        profile = self.profiles().get(provider)
        if profile is None:
            return False
        url = profile.base_url
        if profile.kind in CLOUDS:
            return lacking(profile.kind, url, self._known_key(provider)) is None
        if url and (is_loopback(url) or profile.api_key_env is None):
            return True
        if profile.kind == "anthropic" and anthropic_without_key(url):
            return True
        return self.key(provider) is not None

    def missing(self, model: str, *, in_file: bool = False) -> str:
        """See core.ports.settings.Setup. ``in_file``: the file of an agent, a skill or a command names the model, so it
        can only be a model file that the user's settings name."""
        if in_file and self._names_file(model.strip()):
            return "Only your settings may name a model file: set model or small.model (ba config edit)."
        try:
            info = self.model(model)
        except UsageError as error:
            return error.with_hint
        profile = self.profile(info)
        if profile.kind == "scripted":
            return ""
        if profile.kind == LOCAL:
            return lacking_library()
        if profile.kind in CLOUDS:
            lack = lacking(profile.kind, profile.base_url, self._known_key(info.provider))
            return lack.with_hint if lack else ""
        if self.ready(info.provider):
            return self._silent(info.provider, profile)
        variable = profile.api_key_env
        way = f"Set {variable}, run `/setup`, or try `ba demo`." if variable else "Set its base_url."
        return f"There is no API key for {info.provider} yet. {way}"

    def _names_file(self, model: str) -> bool:
        """Whether llama.cpp would open a file for ``model`` that no setting names."""
        settings, profile = self._settings, self.profiles().get(model.partition("/")[0])
        found = OPENS_FILE.fullmatch(model)
        opens = (found and found[1] == LOCAL) or (profile and profile.kind == LOCAL)
        chosen = {settings.model, settings.small.model, settings.reasoning.model, settings.fallback_model}
        return bool(opens) and model not in chosen

    def _silent(self, provider: str, profile: ModelProfile) -> str:
        """Return how to start a near server that does not answer, else an empty text. Remembers llama.cpp."""
        url = profile.base_url or ""
        if profile.kind != "openai" or not is_near(url):
            return ""
        header = server_header(url)
        if header == LLAMA_CPP:
            self._llama_cpp.add(url)
        if header is not None or provider not in KNOWN:
            return ""
        known = KNOWN[provider]
        return f"{known.title} is not running: nothing answers at {urlsplit(url).netloc}. Start it: {known.start}"

    def tells_progress(self, profile: ModelProfile) -> bool:
        """Whether the server is known to be llama.cpp, which reports its progress with a prompt on request."""
        return profile.base_url in self._llama_cpp

    def named(self) -> frozenset[str]:
        """Return the providers whose address the user chose."""
        chosen = (name for name in self.profiles() if self._sources.get(f"providers.{name}.base_url") != "bundled")
        return frozenset(chosen)

    def add(self, name: str, profile: ModelProfile) -> None:
        """Add a provider for the rest of the process."""
        self._added[name] = profile
        self._infos.clear()

    def served(self, provider: str, facts: ModelFacts) -> ModelInfo:
        """Return a model as its server describes it, completed from the catalogue."""
        profile = self.profiles().get(provider)
        if profile and profile.base_url and facts.owner == LLAMA_CPP_OWNER:
            self._llama_cpp.add(profile.base_url)
        if profile:
            info = self.model(f"{provider}/{facts.name}")
        else:
            # As above: no price is assumed.
            found = self._catalog.find(f"openai/{facts.name}")
            info = replace(found, id=f"{provider}/{facts.name}", provider=provider, prices=None)
        return replace(
            info,
            window=facts.window or info.window,
            max_output=facts.max_output or info.max_output,
            prices=facts.prices or info.prices,
            known=info.known or facts.window is not None,
        )

    def profiles(self) -> Mapping[str, ModelProfile]:
        return {**self._settings.providers, **self._added}


def _server(profile: ModelProfile, key: BoundKey | None = None) -> ModelServer:
    kind = "anthropic" if profile.kind == "anthropic" else "openai"
    return ModelServer(kind, profile.base_url or "", key, profile.api_key_env or "the key of this provider")


class ProviderSetup:
    """core.ports.settings.Setup: adds keys, servers and the model of later starts. ``access`` uses them then."""

    def __init__(self, access: ProviderAccess, places: UserFolders) -> None:
        self._access = access
        self._places = places

    def missing(self, model: str) -> str:
        return self._access.missing(model)

    def first_model(self, provider: str) -> str:
        return self._access.first_model(provider)

    async def servers(self) -> Sequence[FoundServer]:
        return await (await self._search()).answering()

    async def find_server(self, address: str, key: str = "") -> FoundServer:
        return await (await self._search()).at(address, sound_key(key) if key else "")

    async def check_key(self, provider: str, key: str) -> None:
        self._check_own(provider)
        await (await self._search()).takes_key(provider, sound_key(key))

    def save_key(self, provider: str, key: str) -> str:
        self._check_own(provider)
        where = save_key(provider, key, self._places)
        profile = self._access.profiles().get(provider)
        used = read_key(provider, profile.api_key_env if profile else None, self._places)
        if used is None or used.value == key.strip():
            return where
        return f"{where}, but {used.source} holds another key and comes first"

    def use_server(self, server: FoundServer, model: str, key: str = "") -> str:
        name = server.provider
        if key:
            save_key(name, key, self._places)
        if name not in self._access.profiles() or self._withheld(name):
            set_value(self._places, f"providers.{name}.kind", "openai")
            set_value(self._places, f"providers.{name}.base_url", server.base_url)
            self._access.add(name, ModelProfile(kind="openai", base_url=server.base_url))
        set_value(self._places, "model", model)
        return model

    def use_file(self, path: str) -> str:
        if lack := lacking_library():
            raise UsageError(lack)
        model = self._access.model(f"{PREFIX}{path.strip().removeprefix(PREFIX)}").id
        set_value(self._places, "model", model)
        return model

    def in_slot(self, slot: str, main: str) -> str:
        info, slots = self._access.model(main), self._access.slots
        return slots.small(info).id if slot == SMALL else slots.named(slot) or info.id

    def remember(self, key: str, value: str) -> None:
        slot = key.removesuffix(".model")
        if slot in SLOTS:
            value = self._access.model(value).id if value else ""
        set_value(self._places, key, value)
        if slot in SLOTS:
            self._access.slots.choose(slot, value)

    async def _search(self) -> ServerSearch:
        """Return a search of servers. Loads the HTTP client and reads keys: call it off the event loop."""

        def load() -> ServerSearch:
            from ba_tui.providers.servers import ServerSearch  # noqa: PLC0415 - most starts look for no server

            profiles = self._access.profiles()
            keys = {name: self._saved_key(name) for name in profiles}
            return ServerSearch(profiles, self._access.named(), keys, self._access.served)

        return await asyncio.to_thread(load)

    def _check_own(self, provider: str) -> None:
        """Raise UsageError for a provider that a project defines: no key of the user's may be sent there."""
        if self._withheld(provider):
            raise UsageError(
                f"This project defines {provider}, so ba sends no key there.",
                "Type its address in /setup to make it your own.",
            )

    def _withheld(self, provider: str) -> bool:
        key = self._saved_key(provider)
        return key is not None and key.withheld

    def _saved_key(self, name: str) -> BoundKey | None:
        try:
            return self._access.key(name)
        except StorageError:
            # The doctor reports the broken file.
            return None


SlotName: TypeAlias = Literal["main", "small", "reasoning"]
SMALL: SlotName = "small"
REASONING: SlotName = "reasoning"
PLAN = "plan"
"""The mode in which the model of the slot reasoning answers."""


class Slots:
    """The slots of the settings, until the user chooses otherwise."""

    def __init__(self, loaded: LoadedSettings, catalog: ModelCatalog, access: ProviderAccess) -> None:
        self._loaded = loaded
        self._catalog = catalog
        self._access = access
        self._chosen: dict[str, str] = {}

    def choose(self, slot: str, model: str) -> None:
        """Set the model of a slot until the process ends."""
        self._chosen[slot] = model

    def small(self, main: ModelInfo) -> ModelInfo:
        """Return the set small model, else the cheap one of the vendor of ``main``, or ``main``. Raises UsageError."""
        return self._set(SMALL) or self._cheap(main) or main

    def reasoning(self) -> ModelInfo:
        """Return the model of plan mode. Raises UsageError when none is set, or as ``small``."""
        if found := self._set(REASONING):
            return found
        raise UsageError("No model is set for reasoning.", "Set one: /model reasoning PROVIDER/MODEL.")

    def fallback(self) -> str:
        """Return the id of the fallback model; empty when none is set, or no valid one."""
        try:
            found = self._found("fallback_model", self._loaded.settings.fallback_model)
        except UsageError:
            return ""
        return found.id if found else ""

    def problems(self, *, strict: bool) -> Sequence[Notice]:
        """Return settings with invalid models, with their place. Raises the first when ``strict``."""
        found: list[UsageError] = []
        named = {f"{slot}.model": self.named(slot) for slot in SLOTS}
        for key, name in {**named, "fallback_model": self._loaded.settings.fallback_model}.items():
            try:
                self._found(key, name)
            except UsageError as error:
                found.append(error)
        if strict and found:
            raise found[0]
        return [Notice(str(error), "warning", error.hint) for error in found]

    def named(self, slot: str) -> str:
        """Return the model that is set for ``slot``, empty without one."""
        if slot in self._chosen:
            return self._chosen[slot]
        settings = self._loaded.settings
        return (settings.small if slot == SMALL else settings.reasoning).model

    def settings(self, slot: SlotName) -> Settings:
        """Return the settings with those of ``slot`` in place of main's."""
        settings = self._loaded.settings
        if slot == "main":
            return settings
        own = settings.small if slot == SMALL else settings.reasoning
        return replace(settings, temperature=own.temperature, effort=own.effort, max_output_tokens=own.max_tokens)

    def _cheap(self, main: ModelInfo) -> ModelInfo | None:
        """Return the cheap model of the vendor of ``main``, if the vendor serves ``main`` and it is no cheaper."""
        name, profile = self._catalog.small(main.provider), self._access.profile(main)
        if not name or profile.kind != main.provider or profile.base_url or not (main.known and main.prices):
            return None
        small = self._access.model(name)
        return small if small.prices and small.prices.input <= main.prices.input else None

    def _set(self, slot: SlotName) -> ModelInfo | None:
        return self._found(f"{slot}.model", self.named(slot))

    def _found(self, key: str, name: str) -> ModelInfo | None:
        try:
            return self._access.model(name) if name else None
        except UsageError as error:
            place = self._loaded.sources.get(key, "")
            raise UsageError(f"{place}: {key}: {error}", error.hint) from error


def check_options(info: ModelInfo, settings: Settings, format: str) -> None:
    """Raise UsageError for an effort or a temperature that ``info`` does not take."""
    temperature, cure = settings.temperature, "Take it out of the settings, or choose another model with /model."
    if settings.effort and not info.thinking:
        raise UsageError(f"{info.id} takes no effort, and {settings.effort} is set.", cure)
    if temperature is None:
        return
    if not info.temperature:
        raise UsageError(f"{info.id} takes no temperature, and {temperature:g} is set.", cure)
    if format == "anthropic" and temperature > 1:
        raise UsageError(f"{info.id} takes a temperature from 0 to 1, and {temperature:g} is set.", "Set a lower one.")


MINUTE = 60.0


class Bucket:
    """A token bucket: ``size`` may be taken a minute. It may be overdrawn: the next request waits for the debt."""

    def __init__(self, size: int, clock: Callable[[], float]) -> None:
        self._size = size
        self._clock = clock
        self._left = float(size)
        self._at = clock()

    def wait(self, least: float) -> float:
        """Return the seconds until ``least`` is left."""
        now = self._clock()
        self._left = min(self._size, self._left + (now - self._at) * self._size / MINUTE)
        self._at = now
        return max(0.0, (least - self._left) * MINUTE / self._size)

    def take(self, amount: float) -> None:
        self._left -= amount


@frozen
class Wait:
    """``seconds`` to wait, and the limit that is the reason."""

    seconds: float
    reason: str


class RateLimit:
    """The limits of one provider on requests and tokens a minute; without limits no request waits."""

    def __init__(self, name: str, profile: ModelProfile, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._profile = profile
        self._requests = Bucket(profile.requests_per_minute, clock) if profile.requests_per_minute else None
        self._tokens = Bucket(profile.tokens_per_minute, clock) if profile.tokens_per_minute else None

    def next(self) -> Wait | None:
        """Return how long the next request has to wait; None when it may be sent, which takes it from the limit."""
        requests = self._requests.wait(1) if self._requests else 0.0
        tokens = self._tokens.wait(1) if self._tokens else 0.0
        if wait := max(requests, tokens):
            most, what = self._profile.tokens_per_minute, "tokens"
            if requests >= tokens:
                most, what = self._profile.requests_per_minute, "requests"
            return Wait(wait, f"{self._name} is limited to {most:,} {what} a minute in the settings.")
        if self._requests:
            self._requests.take(1)
        return None

    def used(self, usage: Usage | None) -> None:
        """Take the tokens of an answer from the limit."""
        if usage and self._tokens:
            self._tokens.take(usage.prompt + usage.output)


class RateLimits:
    """One limit for each provider, shared by all its connections in this process."""

    def __init__(self) -> None:
        self._limits: dict[str, RateLimit] = {}

    def of(self, name: str, profile: ModelProfile) -> RateLimit:
        if name not in self._limits:
            self._limits[name] = RateLimit(name, profile)
        return self._limits[name]
