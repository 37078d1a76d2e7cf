"""The way to a model: which provider profile serves it, whether there is a key, and what to do when there is none.

Implements core.choices.Setup. No vendor file is imported here; assembly does that, late.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.setup import LocalServer
from ba_tui.core.provider import ModelInfo
from ba_tui.providers import local
from ba_tui.providers.catalog import ModelCatalog
from ba_tui.providers.credentials import TOKENS, anthropic_without_key
from ba_tui.providers.faults import is_loopback
from ba_tui.resources import Places
from ba_tui.settings import Loaded, ModelProfile, read_key, save_key, set_value

DEMO = "demo"
SCRIPTED = "scripted"


class ProviderAccess:
    """Answers for the settings as they were loaded; a key or server that is added now counts from now on."""

    def __init__(self, loaded: Loaded, catalog: ModelCatalog, places: Places) -> None:
        self._settings = loaded.settings
        self._chosen = loaded.sources.get("model") not in {"bundled", "default"}
        self._catalog = catalog
        self._places = places
        self._added: dict[str, ModelProfile] = {}

    def default_model(self) -> str:
        """The model of the settings; when nobody chose it and it has no key, the first of a provider that has one."""
        model = self._settings.model
        if self._chosen or not self.missing(model):
            return model
        for name in self._settings.providers:
            if self.ready(name) and (first := self.first_model(name)):
                return first
        return model

    def first_model(self, provider: str) -> str:
        return next((info.id for info in self._catalog.models() if info.provider == provider), "")

    def model(self, name: str) -> ModelInfo:
        """Facts of ``name``. Raises UsageError when it can't be a model, or no such provider is set up."""
        provider, slash, rest = name.strip().partition("/")
        profile = self._profiles().get(provider) if slash and rest else None
        if profile is None or profile.kind == provider:
            info = self._catalog.find(name)
        elif profile.kind == SCRIPTED:
            info = replace(self._catalog.find(f"{SCRIPTED}:{rest}"), id=name, provider=provider)
        else:
            # What a server of the person's own asks for a model is its own affair, so no price is assumed.
            facts = self._catalog.find(f"{profile.kind}/{rest}")
            info = replace(facts, id=name, provider=provider, prices=None)
        if info.provider in self._profiles() or info.provider in {DEMO, SCRIPTED}:
            return info
        known = ", ".join(sorted(self._profiles()))
        raise UsageError(f"There is no provider {info.provider!r} for {name!r}.", f"Providers: {known}.")

    def profile(self, info: ModelInfo) -> ModelProfile:
        return self._profiles().get(info.provider) or ModelProfile(kind="scripted")

    def key(self, provider: str, profile: ModelProfile) -> str | None:
        """Raises StorageError when the key file is there and can't be understood."""
        key = read_key(provider, profile.api_key_env, self._places)
        return key.value if key else None

    def variables(self) -> frozenset[str]:
        """The environment variables that hold keys; no child process gets them."""
        named = (profile.api_key_env for profile in self._profiles().values() if profile.api_key_env)
        return TOKENS.union(named)

    def ready(self, provider: str) -> bool:
        """Whether ``provider`` can be asked: it has a key, or an address that was set on purpose needs none."""
        profile = self._profiles().get(provider)
        if profile is None:
            return False
        url = profile.base_url
        if url and (is_loopback(url) or profile.api_key_env is None):
            return True
        if profile.kind == "anthropic" and anthropic_without_key(url):
            return True
        return self.key(provider, profile) is not None

    def missing(self, model: str) -> str:
        """See core.choices.Setup."""
        try:
            info = self.model(model)
        except UsageError as error:
            return error.with_hint
        profile = self.profile(info)
        if profile.kind == "scripted" or self.ready(info.provider):
            return ""
        variable = profile.api_key_env
        way = f"Set {variable}, paste a key in ba, or take the tour: ba demo." if variable else "Set its base_url."
        return f"There is no API key for {info.provider} yet. {way}"

    async def local_servers(self) -> Sequence[LocalServer]:
        return await local.local_servers()

    def save_key(self, provider: str, key: str) -> str:
        return save_key(provider, key, self._places)

    def use_server(self, server: LocalServer, model: str) -> str:
        """Keep ``server`` as a provider and ``model`` as the default; returns the model's id."""
        name = re.sub(r"[^a-z0-9]+", "-", server.name.lower()).strip("-")
        set_value(self._places, f"providers.{name}.kind", "openai")
        set_value(self._places, f"providers.{name}.base_url", server.base_url)
        self._added[name] = ModelProfile(kind="openai", base_url=server.base_url)
        chosen = f"{name}/{model.partition('/')[2] or model}"
        set_value(self._places, "model", chosen)
        return chosen

    def remember(self, key: str, value: str) -> None:
        set_value(self._places, key, value)

    def _profiles(self) -> dict[str, ModelProfile]:
        return {**self._settings.providers, **self._added}
