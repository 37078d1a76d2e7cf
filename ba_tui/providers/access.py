"""The way to a model: which provider profile serves it, whether there is a key, and what to do when there is none.

No vendor file is imported here; assembly does that, late. What a person adds is the business of ``setup``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ba_tui.core.errors import UsageError
from ba_tui.core.provider import ModelInfo
from ba_tui.providers.catalog import KINDS, ModelCatalog, Serving
from ba_tui.providers.clouds.needs import CLOUDS, lacking, plain_name
from ba_tui.providers.credentials import TOKENS, WITHHELD, BoundKey, anthropic_without_key
from ba_tui.providers.facts.known import FILE, KnownFacts
from ba_tui.providers.facts.servers import ModelServer
from ba_tui.providers.faults import is_loopback
from ba_tui.providers.known_servers import KNOWN, LLAMA_CPP, LLAMA_CPP_OWNER, is_near, server_header
from ba_tui.providers.local.model_files import LOCAL, PREFIX, lacking_library, local_model
from ba_tui.providers.local.processes import LocalProcesses
from ba_tui.providers.rate_limits import RateLimits
from ba_tui.providers.slots import Slots
from ba_tui.providers.text_calls.formats import Formats
from ba_tui.resources import Places
from ba_tui.settings import Loaded, ModelProfile, read_key
from ba_tui.settings.setters import OPENS_FILE

if TYPE_CHECKING:
    from ba_tui.providers.facts.values import ModelFacts

DEMO = "demo"
SCRIPTED = "scripted"


class ProviderAccess:
    """Answers for the settings as they were loaded; a key or server that is added now counts from now on."""

    def __init__(self, loaded: Loaded, catalog: ModelCatalog, places: Places) -> None:
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
        self.slots = Slots(loaded, catalog, self.model, self.profile)
        self._llama_cpp: set[str] = set()
        """Addresses where llama.cpp answered."""

    def default_model(self) -> str:
        """The model of the settings; when nobody chose it and it has no key, the first of a provider that has one."""
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
        """The model that Claude Code's settings ask for, where it can be asked; empty otherwise."""
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
        """Facts of ``name``: what its server told, else what models.yaml says.

        Raises:
            UsageError: it can't be a model, or no such provider is set up.
        """
        now = (self.facts.version, self.formats.version)
        version, info = self._infos.get(name, (None, None))
        if info is None or version != now:
            info = self._calling(self._found(name.strip()))
            self._infos[name] = (now, info)
        return info

    def _calling(self, info: ModelInfo) -> ModelInfo:
        """With how it calls tools: as its provider's settings say, else the catalogue, else what was learnt of it."""
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

    def _serving(self, info: ModelInfo, profile: ModelProfile) -> Serving:
        if profile.kind in CLOUDS:
            return Serving(resold=True)
        server = _server(profile)
        told = self.facts.find(server, info.name)
        # What a server of the person's own asks for a model is its own affair, so no price is assumed.
        return Serving(server.hostname, server.own, info.provider != profile.kind, told)

    def server(self, info: ModelInfo) -> ModelServer | None:
        """Whom to ask for facts of a model. None for scripts, files and clouds, which tell nothing.

        Raises StorageError."""
        profile = self.profile(info)
        return None if profile.kind in {SCRIPTED, LOCAL, *CLOUDS} else _server(profile, self.key(info.provider))

    def profile(self, info: ModelInfo) -> ModelProfile:
        if info.provider == LOCAL:
            return ModelProfile(kind="local")
        return self.profiles().get(info.provider) or ModelProfile(kind="scripted")

    def key(self, provider: str) -> BoundKey | None:
        """The user's key of ``provider``, for the address that the user gave it.

        Raises:
            StorageError: the key file is there and can't be understood.
        """
        if self._brought(provider):
            return WITHHELD
        own = self._added.get(provider) or self._own.get(provider) or ModelProfile()
        key = read_key(provider, own.api_key_env, self._places)
        return BoundKey(key.value, own.base_url) if key else None

    def _brought(self, provider: str) -> bool:
        """Whether a file of the project defines ``provider``, so that no key of the user's may go there."""
        return provider in self._settings.providers and provider not in {*self._own, *self._added}

    def _known_key(self, provider: str) -> str | None:
        key = self.key(provider)
        return key.value if key else None

    def variables(self) -> frozenset[str]:
        """The environment variables that hold keys; no child process gets them."""
        memory, search = self._settings.memory, self._settings.web_search
        others = (memory.api_key_env, memory.endpoint.api_key_env, search.api_key_env)
        named = (profile.api_key_env for profile in self.profiles().values())
        return TOKENS.union(name for name in (*named, *others) if name)

    def ready(self, provider: str) -> bool:
        """Whether ``provider`` can be asked: it has a key, or an address that was set on purpose needs none."""
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
        """See core.ports.setup.Setup. ``in_file``: the file of an agent, a skill or a command names the model, so it
        can be no model file that the user's settings do not name."""
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
        """How to start a server on this machine that does not answer; what it is, is learned on the way."""
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
        """Whether the server is known to be llama.cpp, which tells how far it has read a prompt when it is asked to."""
        return profile.base_url in self._llama_cpp

    def named(self) -> frozenset[str]:
        """The providers whose address the person chose."""
        chosen = (name for name in self.profiles() if self._sources.get(f"providers.{name}.base_url") != "bundled")
        return frozenset(chosen)

    def add(self, name: str, profile: ModelProfile) -> None:
        """A provider that counts from now on."""
        self._added[name] = profile
        self._infos.clear()

    def served(self, provider: str, facts: ModelFacts) -> ModelInfo:
        """A model as its server tells of it, and as the catalogue does where the server is silent."""
        profile = self.profiles().get(provider)
        if profile and profile.base_url and facts.owner == LLAMA_CPP_OWNER:
            self._llama_cpp.add(profile.base_url)
        if profile:
            info = self.model(f"{provider}/{facts.name}")
        else:
            # What a server of the person's own asks for a model is its own affair, so no price is assumed.
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
        """All providers by name."""
        return {**self._settings.providers, **self._added}


def _server(profile: ModelProfile, key: BoundKey | None = None) -> ModelServer:
    kind = "anthropic" if profile.kind == "anthropic" else "openai"
    return ModelServer(kind, profile.base_url or "", key, profile.api_key_env or "the key of this provider")
