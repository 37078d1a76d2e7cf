"""Asking a model server which models it has and what it knows of them: bounded reads, time-outs, no redirects.

How an answer is read is in ``reading``; errors are those of ``providers.faults``, one line each.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any
from urllib.parse import quote

import httpx2

from ba_tui.core.errors import BadRequest, ModelNotFound, ProviderError
from ba_tui.providers.facts.reading import llama_props, model_list, ollama_show, single_model
from ba_tui.providers.facts.servers import ModelServer
from ba_tui.providers.facts.values import Listed, ModelFacts, merged
from ba_tui.providers.faults import check_url, from_network, from_response, is_loopback
from ba_tui.providers.wire.shapes import decode

TIMEOUT = 10.0
"""Seconds for all that is asked of one server."""
MB = 2**20
LARGEST = 8 * MB
"""Bytes of one answer, decompressed. The longest list known has 2 MB."""
NOT_FOUND = 404
CURE = "Check base_url: it must be the address of the API, not of a web page."


async def ask_models(server: ModelServer, timeout: float = TIMEOUT) -> Listed:
    """All models that ``server`` lists, with what it tells of them there.

    Raises:
        ProviderError: nobody answers in ``timeout`` seconds, or what comes is no list. UsageError: a wrong address.
    """
    async with _questions(server, timeout) as questions:
        found = model_list(await questions.get(server.models), server.host)
    if not found.models and found.problems:
        raise BadRequest(found.problems[0], CURE)
    return found


async def ask_facts(server: ModelServer, name: str, timeout: float = TIMEOUT) -> Listed:
    """All that ``server`` tells of the model ``name``; no model where it tells nothing.

    Servers of one's own are asked in their own dialects as well: how large a window they were started with.

    Raises:
        ProviderError: nobody answers in ``timeout`` seconds, or what comes is no JSON. UsageError: a wrong address.
    """
    async with _questions(server, timeout) as questions:
        if server.kind == "anthropic":
            try:
                entry = await questions.get(f"{server.base}/models/{quote(name, safe='')}")
            except ModelNotFound:
                return Listed()
            return single_model(entry, server.host, name)
        found = model_list(await questions.get(server.models), server.host, name)
        told = found.find(name)
        if not server.own or (told and told.window):
            return found
        more = await questions.own(name)
    known = [each for listed in (found, *more) if (each := listed.find(name))]
    problems = tuple(line for listed in (found, *more) for line in listed.problems)
    return Listed((merged(ModelFacts(name), *known),) if known else (), problems)


@contextlib.asynccontextmanager
async def _questions(server: ModelServer, timeout: float) -> AsyncGenerator[_Questions]:
    check_url(server.base)
    headers = server.headers()

    def client() -> httpx2.AsyncClient:
        # No certificates are read for an address without TLS: nobody leads on from there.
        # No proxy leads to this machine, whatever the environment says.
        proxied = not is_loopback(server.base)
        return httpx2.AsyncClient(
            follow_redirects=False, timeout=timeout, verify=not server.own, headers=headers, trust_env=proxied
        )

    try:
        # Reading the certificates takes longer than the event loop may be held up.
        async with asyncio.timeout(timeout), await asyncio.to_thread(client) as made:
            yield _Questions(server, made)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise from_network(server.service(), error) from error


class _Questions:
    def __init__(self, server: ModelServer, client: httpx2.AsyncClient) -> None:
        self._server = server
        self._client = client

    async def get(self, url: str) -> Any:
        """Decoded JSON. Raises ProviderError, httpx2.HTTPError."""
        return await self._ask("GET", url)

    async def own(self, name: str) -> list[Listed]:
        """What llama.cpp, Ollama and LM Studio tell at addresses of their own; the others answer with an error."""
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
