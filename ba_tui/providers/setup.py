"""What a person adds on the way to a first answer: keys, servers, the model of later starts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.ports.setup import SLOTS, FoundServer
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.local.model_files import PREFIX, lacking_library
from ba_tui.providers.slots import SMALL
from ba_tui.resources import Places
from ba_tui.settings import ModelProfile, read_key, save_key, set_value, sound_key

if TYPE_CHECKING:
    from ba_tui.providers.credentials import BoundKey
    from ba_tui.providers.servers import ServerSearch


class ProviderSetup:
    """core.ports.setup.Setup: what is added counts for ``access`` at once, and is kept for later starts."""

    def __init__(self, access: ProviderAccess, places: Places) -> None:
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
        """Loads the HTTP client and reads keys, off the loop."""

        def load() -> ServerSearch:
            from ba_tui.providers.servers import ServerSearch  # noqa: PLC0415 - most starts look for no server

            profiles = self._access.profiles()
            keys = {name: self._saved_key(name) for name in profiles}
            return ServerSearch(profiles, self._access.named(), keys, self._access.served)

        return await asyncio.to_thread(load)

    def _check_own(self, provider: str) -> None:
        """Raises UsageError: no key of the user's may go to a provider that a project defines."""
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
            # The doctor tells of the broken file.
            return None
