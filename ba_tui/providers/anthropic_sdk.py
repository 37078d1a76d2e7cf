"""Anthropic's SDK, for its credential chain (a profile or the identity of a workload) and for addresses, fields and
signatures on clouds. The import takes a second and 60 MB, so it is skipped with a plain key."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from importlib import import_module
from typing import Any

import anthropic
import httpx2
from anthropic._models import FinalRequestOptions
from anthropic.lib.bedrock import AnthropicBedrock
from anthropic.lib.bedrock._stream_decoder import AWSEventStreamDecoder, get_response_stream_shape
from anthropic.lib.vertex import AnthropicVertex

from ba_tui.core.errors import AuthFailed, ConnectionLost, UsageError
from ba_tui.core.text.wording import one_line
from ba_tui.providers.credentials import CLOUDS, KeyedEndpoint, anthropic_headers
from ba_tui.providers.faults import ModelService, from_body

LONGEST = 300
REFUSED = 401
CURE = "Sign in again with the tool that wrote the profile, or set ANTHROPIC_API_KEY."
CREATE = "/v1/messages"
CloudSdk = AnthropicBedrock | AnthropicVertex | anthropic.AnthropicFoundry


def signed_in() -> KeyedEndpoint | None:
    """Return the endpoint for the chain's credentials, None without any. Raises AuthFailed for an unusable profile."""
    try:
        client = anthropic.AsyncAnthropic(
            base_url=os.environ.get("ANTHROPIC_BASE_URL") or None, max_retries=0, open_telemetry=False
        )
    except anthropic.AnthropicError as error:
        raise AuthFailed(f"No API key for Anthropic: {one_line(str(error), LONGEST)}", CURE) from error
    if client.custom_auth is None:
        return None
    # Headers that the profile adds, such as its workspace.
    headers = anthropic_headers(dict(client._credential_headers))
    return KeyedEndpoint(str(client.base_url), headers, auth=ChainAuth(client), close=client.close)


class ChainAuth(httpx2.Auth):
    """Signs each request as the SDK does, with a new token after the old one was refused, and translates its errors."""

    def __init__(self, client: anthropic.AsyncAnthropic) -> None:
        self._client = client

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Raises AuthFailed, or ConnectionLost when the token server can't be reached."""
        response = yield await self._signed(request)
        if response.status_code == REFUSED and self._client._token_cache:
            self._client._token_cache.invalidate()
            del request.headers["Authorization"]
            yield await self._signed(request)

    async def _signed(self, request: httpx2.Request) -> httpx2.Request:
        assert self._client.custom_auth
        flow = self._client.custom_auth.async_auth_flow(request)
        try:
            return await anext(flow)
        except anthropic.AnthropicError as error:
            said = one_line(str(error), LONGEST)
            if isinstance(error.__cause__, httpx2.HTTPError):
                raise ConnectionLost(f"No token for Anthropic: {said}", "Check the network and the proxy.") from error
            raise AuthFailed(f"No token for Anthropic: {said}", CURE) from error
        finally:
            await flow.aclose()


class CloudClient:
    """The addresses, fields and signatures of the SDK's client for a cloud; requests go over ba's connection.

    Raises:
        UsageError: the environment names no region, project or address, or two that exclude each other.
    """

    def __init__(self, kind: str, model: str, key: str | None, url: str | None) -> None:
        self._bedrock = kind == "bedrock"
        name = CLOUDS[kind].name
        try:
            self._client = _client(kind, key, url)
            options = self._prepared({"model": model, "stream": True})
            self.url = self._client._prepare_url(options.url)
            if self._bedrock:
                # Loaded now, because the first event would have to wait for it.
                get_response_stream_shape()
        except _failures(kind) as error:
            what = one_line(str(error), LONGEST)
            raise UsageError(f"{name} can't be asked: {what}", "Correct its settings.") from error
        credentials: Mapping[str, str] = options.headers or {}
        version = str(self._client.default_headers.get("anthropic-version", ""))
        headers = anthropic_headers(credentials, own=False, version=version)
        signature = None if kind == "foundry" else CloudSignature(self._client, kind)
        self.endpoint = KeyedEndpoint(str(self._client.base_url), headers, key or "", signature, self._close)

    def fields(self, head: dict[str, Any]) -> dict[str, Any]:
        """Return ``head`` as the cloud expects it: some clouds have the model in the address."""
        return self._prepared(head).json_data

    def events(self, body: AsyncIterator[bytes], service: ModelService) -> AsyncIterator[bytes]:
        """Return ``body`` as server-sent events; ``service`` names the service in errors."""
        return BedrockEvents(body, service) if self._bedrock else body

    def _prepared(self, head: dict[str, Any]) -> Any:
        return self._client._prepare_options(FinalRequestOptions(method="post", url=CREATE, json_data=head))

    async def _close(self) -> None:
        self._client.close()


class CloudSignature(httpx2.Auth):
    """Signs each request as the SDK does, in a thread, since credentials may be read from files or servers."""

    def __init__(self, client: CloudSdk, kind: str) -> None:
        self._client = client
        self._kind = kind

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Raises AuthFailed: there are no credentials, or they can't be loaded."""
        cloud = CLOUDS[self._kind]
        try:
            await asyncio.to_thread(self._client._prepare_request, request)
        except _failures(self._kind) as error:
            raise AuthFailed(f"No credentials for {cloud.name}: {one_line(str(error), LONGEST)}", cloud.cure) from error
        yield request


class BedrockEvents:
    """The frames of Bedrock as server-sent events. A class instead of a generator: nothing has to be closed."""

    def __init__(self, body: AsyncIterator[bytes], service: ModelService) -> None:
        self._body = body
        self._service = service
        self._decoder = AWSEventStreamDecoder()
        frames = import_module("botocore.eventstream")
        self._buffer = frames.EventStreamBuffer()
        self._broken = frames.ParserError

    def __aiter__(self) -> BedrockEvents:
        return self

    async def __anext__(self) -> bytes:
        """Raises BadRequest: the body has no frames."""
        while True:
            data = await anext(self._body)
            try:
                self._buffer.add_data(data)
                events = [self._decoder._parse_message_from_event(frame) for frame in self._buffer]
            except (self._broken, UnicodeDecodeError) as error:
                raise from_body(self._service, b"") from error
            if lines := "".join(f"event: {event.event}\ndata: {event.data}\n\n" for event in events if event):
                return lines.encode()


def _client(kind: str, key: str | None, url: str | None) -> CloudSdk:
    given: dict[str, Any] = {"base_url": url, "max_retries": 0, "open_telemetry": False}
    if kind == "bedrock":
        return AnthropicBedrock(api_key=key, **given)
    if kind == "vertex":
        return AnthropicVertex(**given)
    return anthropic.AnthropicFoundry(api_key=key, **given)


def _failures(kind: str) -> tuple[type[Exception], ...]:
    """Return the exceptions of the SDK and of the packages that ``kind`` needs."""
    plain = (anthropic.AnthropicError, ValueError, RuntimeError)
    if kind == "bedrock":
        return (*plain, import_module("botocore.exceptions").BotoCoreError)
    return (*plain, import_module("google.auth.exceptions").GoogleAuthError) if kind == "vertex" else plain
