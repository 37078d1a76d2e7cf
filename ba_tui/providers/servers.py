"""Model servers: which models they list, what they report of one, and which server an address of the user means.
Requests have size limits and time-outs and follow no redirects."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote, urlsplit

import httpx2

from ba_tui.core.errors import (
    AuthFailed,
    BadRequest,
    ConnectionLost,
    ModelNotFound,
    ProviderError,
    RateLimited,
    UsageError,
)
from ba_tui.core.messages import clean_text
from ba_tui.core.ports.settings import FoundServer
from ba_tui.core.provider import ModelInfo
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.providers.credentials import CLOUDS, BoundKey
from ba_tui.providers.faults import check_url, from_network, from_response, is_loopback
from ba_tui.providers.model_facts import (
    KNOWN,
    MILLION,
    SHORT,
    Doubts,
    ModelFacts,
    ModelList,
    ModelServer,
    merged,
    switch,
    within,
)
from ba_tui.providers.shapes import decode, fields, items, text_of
from ba_tui.settings import ModelProfile

# Answers become facts by the field names of the vendors' documentation. None of these functions raises.

MOST = 2_000
"""Models of one server that are read."""
LONGEST_NAME = 200
IMAGE, THINKING = ("image", "vision"), ("reasoning", "thinking", "reasoning_effort")


def model_list(answer: object, host: str, name: str = "") -> ModelList:
    """Read ``GET /v1/models`` of OpenAI-compatible servers and Anthropic's, or LM Studio's ``/api/v0/models``; of
    ``name`` only if given."""
    found = _entries(answer)
    if found is None:
        return ModelList(problems=(f"{host} did not answer with a list of models.",))
    doubts, named = Doubts(), [(_name(each), each) for each in found]
    wanted = [(id, each) for id, each in named if id and (not name or id in {name, f"{name}:latest"})]
    facts = tuple(_listed_facts(id, fields(each), doubts) for id, each in wanted[:MOST])
    problems = [f"{host}: {line}" for line in doubts.lines()]
    if nameless := sum(not id for id, _ in named):
        problems.append(f"{host} lists {nameless:,} models without a usable name. ba ignores them.")
    if len(wanted) > MOST:
        problems.append(
            f"{host} lists {len(wanted):,} models; ba shows the first {MOST:,}. Any other can be typed: /model NAME."
        )
    return ModelList(facts, tuple(problems))


def single_model(answer: object, host: str, name: str) -> ModelList:
    """Read ``GET /v1/models/NAME``: one entry of the list."""
    entry = fields(answer)
    return model_list({"data": [entry]} if _name(entry) else answer, host, name)


def llama_props(answer: object, host: str, name: str) -> ModelList:
    """Read ``GET /props`` of llama.cpp: the window of one slot, as it was started."""
    doubts, props = Doubts(), fields(answer)
    window = doubts.tokens(name, "window", fields(props.get("default_generation_settings")).get("n_ctx"))
    vision = switch(fields(props.get("modalities")).get("vision"))
    return _one(ModelFacts(name, window, vision=vision), doubts, host)


def ollama_show(answer: object, host: str, name: str, loaded: object = None) -> ModelList:
    """Read ``POST /api/show`` of Ollama; ``loaded`` is the answer to ``GET /api/ps``.

    The model may support a far larger window than the server gives it: the window is that of the loaded model, else
    ``num_ctx`` of its Modelfile. Without both it is unknown before the first request.
    """
    doubts, told = Doubts(), fields(answer)
    info = fields(told.get("model_info"))
    trained = next((info[key] for key in info if key.endswith(".context_length")), None)
    set_to = _parameter(text_of(told.get("parameters")), "num_ctx")
    running = fields(next((each for each in items(fields(loaded).get("models")) if _same(fields(each), name)), None))
    window = doubts.tokens(name, "window", running.get("context_length"), set_to)
    most = doubts.tokens(name, "window", trained)
    able = told.get("capabilities")
    window = min(window, most) if window and most else window
    facts = ModelFacts(name, window, vision=within(able, "vision"), thinking=within(able, "thinking"))
    return _one(facts, doubts, host)


def _one(facts: ModelFacts, doubts: Doubts, host: str) -> ModelList:
    return ModelList((facts,), tuple(f"{host}: {line}" for line in doubts.lines()))


def _listed_facts(name: str, entry: dict[str, Any], doubts: Doubts) -> ModelFacts:
    """Return the facts of one entry. Servers name the same fact differently; no name has two meanings.

    vLLM: ``max_model_len``. OpenRouter: ``context_length``, ``pricing`` (dollars for a token, as text),
    ``top_provider``, ``architecture``, ``supported_parameters``. Anthropic: ``max_input_tokens``, ``max_tokens``,
    ``capabilities`` by name. LM Studio: ``loaded_context_length``, ``max_context_length``, ``type``, ``capabilities``
    as a list. Mistral: ``max_context_length``, ``capabilities`` as switches. Groq: ``context_window``,
    ``max_completion_tokens``. Together: ``pricing`` (dollars for a million tokens, as numbers).
    """
    top, able = fields(entry.get("top_provider")), entry.get("capabilities")
    window = doubts.tokens(
        name,
        "window",
        entry.get("max_model_len"),
        entry.get("loaded_context_length"),
        top.get("context_length"),
        entry.get("context_length"),
        entry.get("max_context_length"),
        entry.get("context_window"),
        entry.get("max_input_tokens"),
    )
    output = doubts.tokens(
        name,
        "output limit",
        top.get("max_completion_tokens"),
        entry.get("max_completion_tokens"),
        entry.get("max_tokens"),
    )
    takes = entry.get("supported_parameters")
    seen = (
        within(fields(entry.get("architecture")).get("input_modalities"), *IMAGE),
        _able(able, "vision", "image_input"),
        True if entry.get("type") == "vlm" else None,
    )
    return ModelFacts(
        name,
        window,
        output,
        _prices(name, entry.get("pricing"), doubts),
        _first(*seen),
        _first(within(takes, *THINKING), _able(able, "effort", *THINKING)),
        within(takes, "temperature"),
        clean_text(text_of(entry.get("owned_by")))[:LONGEST_NAME],
    )


def _prices(name: str, told: object, doubts: Doubts) -> Any:
    pricing = fields(told)
    if "prompt" in pricing or "completion" in pricing:
        keys = ("prompt", "completion", "input_cache_read", "input_cache_write")
        return doubts.prices(name, [pricing.get(key) for key in keys], MILLION)
    keys = ("input", "output", "cached_input", "cache_write")
    return doubts.prices(name, [pricing.get(key) for key in keys], 1)


def _able(told: object, *names: str) -> bool | None:
    """Whether a list of names, switches by name or Anthropic's ``{"supported": …}`` has one of ``names``."""
    if within(told, *names):
        return True
    by_name = fields(told)
    said = (by_name.get(name) for name in names)
    return _first(*(_first(switch(each), switch(fields(each).get("supported"))) for each in said))


def _first(*told: bool | None) -> bool | None:
    return next((each for each in told if each is not None), None)


def _entries(answer: object) -> list[Any] | None:
    """Return the entries of a list; Together's has no envelope."""
    for found in (answer, fields(answer).get("data")):
        if isinstance(found, list):
            return items(cast("list[Any]", found))
    return None


def _name(entry: object) -> str:
    """Return its name; empty for one that can't be typed or shown."""
    name = text_of(fields(entry).get("id"))
    return name if 0 < len(name) <= LONGEST_NAME and name.isprintable() and not name.isspace() else ""


def _same(entry: dict[str, Any], name: str) -> bool:
    return text_of(entry.get("name")) in {name, f"{name}:latest"} or text_of(entry.get("model")) == name


def _parameter(lines: str, name: str) -> str | None:
    """Return a parameter of a Modelfile, which has one on each line."""
    pairs = (line.split(None, 1) for line in lines[:20_000].splitlines())
    return next((pair[1].strip().strip('"') for pair in pairs if len(pair) == 2 and pair[0] == name), None)


TIMEOUT = 10.0
"""Seconds for all requests to one server."""
MB = 2**20
LARGEST = 8 * MB
"""Bytes of one answer, decompressed. The longest known list has 2 MB."""
NOT_FOUND = 404
CURE = "Check base_url: it must be the address of the API, not of a web page."


async def ask_models(server: ModelServer, timeout: float = TIMEOUT) -> ModelList:
    """Return all models that ``server`` lists. Raises ProviderError: no list in ``timeout`` seconds, UsageError."""
    async with _questions(server, timeout) as questions:
        found = model_list(await questions.get(server.models), server.host)
    if not found.models and found.problems:
        raise BadRequest(found.problems[0], CURE)
    return found


async def ask_facts(server: ModelServer, name: str, timeout: float = TIMEOUT) -> ModelList:
    """Return all that ``server`` reports of the model ``name``; no model when it reports nothing.

    Servers of the user's own are also asked in their own dialects: for the window with which they were started.

    Raises:
        ProviderError: no answer in ``timeout`` seconds, or it is no JSON. UsageError: a wrong address.
    """
    async with _questions(server, timeout) as questions:
        if server.kind == "anthropic":
            try:
                entry = await questions.get(f"{server.base}/models/{quote(name, safe='')}")
            except ModelNotFound:
                return ModelList()
            return single_model(entry, server.host, name)
        found = model_list(await questions.get(server.models), server.host, name)
        told = found.find(name)
        if not server.own or (told and told.window):
            return found
        more = await questions.own(name)
    known = [each for listed in (found, *more) if (each := listed.find(name))]
    problems = tuple(line for listed in (found, *more) for line in listed.problems)
    return ModelList((merged(ModelFacts(name), *known),) if known else (), problems)


@contextlib.asynccontextmanager
async def _questions(server: ModelServer, timeout: float) -> AsyncGenerator[_ServerClient]:
    check_url(server.base)
    headers = server.headers()

    def client() -> httpx2.AsyncClient:
        # No certificates are loaded for an address without TLS, since redirects are not followed. This machine is never
        # reached by a proxy, whatever the environment says.
        proxied = not is_loopback(server.base)
        return httpx2.AsyncClient(
            follow_redirects=False, timeout=timeout, verify=not server.own, headers=headers, trust_env=proxied
        )

    try:
        # Loading the certificates would block the event loop for too long.
        async with asyncio.timeout(timeout), await asyncio.to_thread(client) as made:
            yield _ServerClient(server, made)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise from_network(server.service(), error) from error


class _ServerClient:
    def __init__(self, server: ModelServer, client: httpx2.AsyncClient) -> None:
        self._server = server
        self._client = client

    async def get(self, url: str) -> Any:
        """Return decoded JSON. Raises ProviderError, httpx2.HTTPError."""
        return await self._ask("GET", url)

    async def own(self, name: str) -> list[ModelList]:
        """Return the facts at addresses that only llama.cpp, Ollama and LM Studio have; others answer with an error."""
        root, host = self._server.root, self._server.host
        show, running, props, listed = await asyncio.gather(
            _or_nothing(self._ask("POST", f"{root}/api/show", {"model": name})),
            _or_nothing(self.get(f"{root}/api/ps")),
            _or_nothing(self.get(f"{root}/props")),
            _or_nothing(self.get(f"{root}/api/v0/models")),
        )
        return [
            *([model_list(listed, host, name)] if listed is not None else ()),
            *([ollama_show(show, host, name, running)] if show is not None else ()),
            *([llama_props(props, host, name)] if props is not None else ()),
        ]

    async def _ask(self, method: str, url: str, body: object = None) -> Any:
        async with self._client.stream(method, url, json=body) as response:
            data = await self._read(response)
            service = self._server.service()
            if response.status_code == NOT_FOUND:
                raise ModelNotFound(f"{service.host} has no list of models.", CURE)
            if not response.is_success:
                raise from_response(service, response.status_code, response.headers, data)
        try:
            return await asyncio.to_thread(decode, data)
        except ValueError as error:
            page = data.lstrip()[:1] == b"<"
            what = "a web page" if page else "something that is not JSON"
            raise BadRequest(f"{self._server.host} answered with {what} instead of a list of models.", CURE) from error

    async def _read(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async with contextlib.aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > LARGEST:
                    what = f"{self._server.host} sent more than {LARGEST // MB} MB as a list of models."
                    raise BadRequest(what, CURE)
        return bytes(body)


async def _or_nothing(question: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await question
    except (ProviderError, httpx2.HTTPError):
        return None


LONG, PATIENT = 3.0, 9.0
"""Seconds that a server of the settings has to answer, and a server that the user is waiting for."""
HOME_NETS = frozenset({"local", "lan", "internal", "home"})
"""Last labels of names that do not tell hosts apart."""
ADDRESS = "Type HOST:PORT or a URL such as http://127.0.0.1:8080/v1."
_NAMED = regex(r"([a-z][a-z0-9_-]{0,30})[ \t]+(\S+)")
_VERSION = regex(r".*/v\d+(?:beta|alpha)?\d*")


@frozen
class TypedAddress:
    """An address of the user's; ``urls``: its possible meanings, the likeliest first."""

    name: str
    urls: tuple[str, ...]


def typed_address(text: str) -> TypedAddress:
    """Parse ``[NAME] ADDRESS``. Without a scheme it is http on this machine, https elsewhere; ``/v1`` may be left out.
    Raises UsageError."""
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
    """Return a short name for the server at ``host``: ``openrouter`` for openrouter.ai, ``gpubox`` for gpubox.local."""
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
    """Asks the servers of ``profiles``, or others, for their models. ``named``: providers that the user named."""

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
        """Ask all servers at the same time; return those that serve models, and with the reason those that the user
        named and that do not. Of two names for one address, the user's is used."""
        asked: dict[str, str] = {}
        for name, profile in self._profiles.items():
            url = (profile.base_url or "").rstrip("/")
            if url and profile.kind == "openai" and (name in self._named or url not in asked):
                asked[url] = name
        found = await asyncio.gather(*(self._answer(name, url) for url, name in asked.items()))
        return [server for server in found if server]

    async def at(self, address: str, key: str) -> FoundServer:
        """Return the server at an address of the user's.

        Raises:
            AuthFailed: it needs a key, or another one.
            UsageError, ProviderError: it is no server, or its name is taken.
        """
        typed = typed_address(address)
        url, listed = await self._first(typed, key)
        same = (name for name, profile in self._profiles.items() if (profile.base_url or "").rstrip("/") == url)
        name = next(same, typed.name)
        taken = self._profiles.get(name)
        if taken and (taken.base_url or "").rstrip("/") != url:
            what = f"The name {name} is already used for {taken.base_url or 'the vendor itself'}."
            raise UsageError(what, f"Type another name before the address: {name}2 {url}")
        return await self._found(FoundServer(name, _title(name), url), listed)

    async def takes_key(self, provider: str, key: str) -> None:
        """Check a key by asking for the list of models. Raises AuthFailed when it is refused, ProviderError."""
        profile = self._profiles.get(provider) or ModelProfile()
        if profile.kind in CLOUDS:
            # Clouds have no list of models; the first answer shows whether the key works.
            return
        kind = "anthropic" if profile.kind == "anthropic" else "openai"
        server = ModelServer(kind, profile.base_url or "", BoundKey(key, profile.base_url))
        try:
            await ask_models(server, PATIENT)
        except AuthFailed as error:
            raise AuthFailed(f"{server.host} refuses this key.", "Paste another one.") from error
        except (ModelNotFound, RateLimited):
            # The key was accepted: only the list is not available.
            return

    async def _first(self, typed: TypedAddress, key: str) -> tuple[str, ModelList]:
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

    async def _found(self, server: FoundServer, listed: ModelList) -> FoundServer:
        # In a thread: the catalogue is searched for each of maybe thousands of models.
        models = await asyncio.to_thread(lambda: tuple(self._facts(server.provider, each) for each in listed.models))
        return replace(server, models=models, troubles=listed.problems)


async def _listed(server: ModelServer, timeout: float) -> ModelList:
    try:
        return await ask_models(server, timeout)
    except ModelNotFound as error:
        raise BadRequest(f"{server.host} has no list of models at {server.models}.", "Check the address.") from error


def _title(name: str) -> str:
    return KNOWN[name].title if name in KNOWN else name
