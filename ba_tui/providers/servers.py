"""Model servers: which ones are asked what they offer, and what an address means that a person typed.

How they are asked and their answers are read is the business of ``facts``; what is kept of them, of ``access``.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from ba_tui.core.errors import (
    AuthFailed,
    BadRequest,
    ConnectionLost,
    ModelNotFound,
    ProviderError,
    RateLimited,
    UsageError,
)
from ba_tui.core.ports.setup import FoundServer
from ba_tui.core.provider import ModelInfo
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.clouds.needs import CLOUDS
from ba_tui.providers.credentials import BoundKey
from ba_tui.providers.facts.asking import ask_models
from ba_tui.providers.facts.servers import ModelServer
from ba_tui.providers.facts.values import Listed, ModelFacts
from ba_tui.providers.faults import is_loopback
from ba_tui.providers.known_servers import KNOWN, SHORT
from ba_tui.settings import ModelProfile

LONG, PATIENT = 3.0, 9.0
"""Seconds that a server of the settings has to answer, and one that the person is waiting for."""
HOME_NETS = frozenset({"local", "lan", "internal", "home"})
"""Last labels of names that say nothing about the host."""
ADDRESS = "Type HOST:PORT or a URL such as http://127.0.0.1:8080/v1."
_NAMED = regex(r"([a-z][a-z0-9_-]{0,30})[ \t]+(\S+)")
_VERSION = regex(r".*/v\d+(?:beta|alpha)?\d*")


@frozen
class TypedAddress:
    """``urls``: what the person may have meant, the likeliest first."""

    name: str
    urls: tuple[str, ...]


def typed_address(text: str) -> TypedAddress:
    """Read ``[NAME] ADDRESS``. Without a scheme it is http on this machine, https elsewhere; ``/v1`` may be left out.

    Raises:
        UsageError: it is no address.
    """
    text = text.strip()
    named = _NAMED.fullmatch(text)
    name, address = (named[1], named[2]) if named else ("", text)
    try:
        if not address.isprintable() or " " in address:
            raise ValueError
        if "://" not in address:
            address = f"{'http' if is_loopback(f'http://{address}') else 'https'}://{address}"
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise UsageError("This is not the address of a server.", ADDRESS) from None
    if parts.scheme not in {"http", "https"} or not host or port == 0 or parts.query or parts.fragment:
        raise UsageError("This is not the address of a server.", ADDRESS)
    if parts.username or parts.password:
        raise UsageError("The address contains a password.", "Leave it out; ba asks for a key where one is needed.")
    url = address.rstrip("/").removesuffix("/models").removesuffix("/chat/completions")
    return TypedAddress(name or _name_of(url, host, port), (url,) if _VERSION.fullmatch(url) else (f"{url}/v1", url))


def _name_of(url: str, host: str, port: int | None) -> str:
    """A short name for the server at ``host``: ``openrouter`` for openrouter.ai, ``gpubox`` for gpubox.local."""
    try:
        if is_loopback(url):
            return f"local-{port or 80}"
        ipaddress.ip_address(host)
        labels = [f"server-{host}"]
    except ValueError:
        labels = host.split(".")
    place = -2 if len(labels) > 2 and labels[-1] not in HOME_NETS else 0
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in labels[place])


class ServerSearch:
    """Asks the servers of ``profiles``, or others, for their models. Those of ``named`` were named by the person."""

    def __init__(
        self,
        profiles: Mapping[str, ModelProfile],
        named: Collection[str],
        keys: Mapping[str, BoundKey | None],
        facts: Callable[[str, ModelFacts], ModelInfo],
    ) -> None:
        self._profiles = profiles
        self._named = named
        self._keys = keys
        self._facts = facts

    async def answering(self) -> list[FoundServer]:
        """Those that serve models, all asked at once, and those that the person named, with why they do not.

        Of two names for one address the person's own counts.
        """
        asked: dict[str, str] = {}
        for name, profile in self._profiles.items():
            url = (profile.base_url or "").rstrip("/")
            if url and profile.kind == "openai" and (name in self._named or url not in asked):
                asked[url] = name
        found = await asyncio.gather(*(self._answer(name, url) for url, name in asked.items()))
        return [server for server in found if server]

    async def at(self, address: str, key: str) -> FoundServer:
        """The server at an address that was typed.

        Raises:
            AuthFailed: it wants a key, or another one. UsageError, ProviderError: it is none, or its name is taken.
        """
        typed = typed_address(address)
        url, listed = await self._first(typed, key)
        same = (name for name, profile in self._profiles.items() if (profile.base_url or "").rstrip("/") == url)
        name = next(same, typed.name)
        taken = self._profiles.get(name)
        if taken and (taken.base_url or "").rstrip("/") != url:
            what = f"The name {name} already stands for {taken.base_url or 'the vendor itself'}."
            raise UsageError(what, f"Type another name before the address: {name}2 {url}")
        return await self._found(FoundServer(name, _title(name), url), listed)

    async def takes_key(self, provider: str, key: str) -> None:
        """Ask ``provider`` once, for its list of models.

        Raises:
            AuthFailed: it refuses the key. ProviderError: that could not be found out.
        """
        profile = self._profiles.get(provider) or ModelProfile()
        if profile.kind in CLOUDS:
            # Clouds have no list of models to ask for; the first answer tells.
            return
        kind = "anthropic" if profile.kind == "anthropic" else "openai"
        server = ModelServer(kind, profile.base_url or "", BoundKey(key, profile.base_url))
        try:
            await ask_models(server, PATIENT)
        except AuthFailed as error:
            raise AuthFailed(f"{server.host} refuses this key.", "Paste another one.") from error
        except (ModelNotFound, RateLimited):
            # The key was read: only the list is not to be had.
            return

    async def _first(self, typed: TypedAddress, key: str) -> tuple[str, Listed]:
        first: ProviderError | None = None
        for url in typed.urls:
            try:
                return url, await _listed(ModelServer("openai", url, BoundKey(key, url) if key else None), PATIENT)
            except AuthFailed as error:
                raise AuthFailed(f"{urlsplit(url).netloc} {'refuses this' if key else 'wants an API'} key.") from error
            except ConnectionLost as error:
                raise ConnectionLost(str(error), "Start the server, or correct the address.") from error
            except ProviderError as error:
                first = first or error
        assert first is not None
        raise first

    async def _answer(self, name: str, url: str) -> FoundServer | None:
        plain, named = FoundServer(name, _title(name), url), name in self._named
        server = ModelServer("openai", url, self._keys.get(name), self._profiles[name].api_key_env or "the key")
        try:
            listed = await _listed(server, LONG if named else SHORT)
        except AuthFailed:
            return replace(plain, troubles=(f"{server.host} wants an API key: type its address in /setup.",))
        except (ProviderError, UsageError) as error:
            return replace(plain, troubles=(error.with_hint,)) if named else None
        return await self._found(plain, listed)

    async def _found(self, server: FoundServer, listed: Listed) -> FoundServer:
        # The catalogue is asked about each of maybe thousands.
        models = await asyncio.to_thread(lambda: tuple(self._facts(server.provider, each) for each in listed.models))
        return replace(server, models=models, troubles=listed.problems)


async def _listed(server: ModelServer, timeout: float) -> Listed:
    try:
        return await ask_models(server, timeout)
    except ModelNotFound as error:
        raise BadRequest(f"{server.host} has no list of models at {server.models}.", "Check the address.") from error


def _title(name: str) -> str:
    return KNOWN[name].title if name in KNOWN else name
