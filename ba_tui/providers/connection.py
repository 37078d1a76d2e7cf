"""Request bodies, the HTTP connection to one endpoint, and the recording of what passes over it."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import islice
from operator import is_
from typing import Any, ClassVar

import httpx2

from ba_tui.core.errors import BadRequest, RequestRefused, UsageError
from ba_tui.core.messages import Message, key_in, media_key, signed, weighty
from ba_tui.core.ports.sessions import Exchange, Recorder
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.providers.credentials import BoundKey, KeyedEndpoint
from ba_tui.providers.faults import ModelService, check_key, from_network, from_response
from ba_tui.providers.http import http_client
from ba_tui.providers.shapes import fields, items
from ba_tui.providers.sse import ReplyBuilder, chunks

AT_ONCE = 100_000
"""Characters that are encoded on the event loop; more are encoded in a thread."""
LARGE = 4_000_000
"""Bytes of a body from which on it is joined in a thread."""
Encode = Callable[[Message], bytes]


class RequestBody:
    """A request body that grows: encoded messages are reused, so that step 1,000 costs as much as the first. ``head``
    encodes what precedes the messages; ``encode`` a message, b"" for nothing."""

    def __init__(self, head: Callable[[ModelRequest], bytes], encode: Encode) -> None:
        self._head = head
        self._encode = encode
        self._of: tuple[str, Sequence[Tool]] | None = None
        self._messages: list[Message] = []
        self._ends: list[int] = [0]
        """The end of the head in ``_whole``, then the end of each message."""
        self._whole = bytearray()
        self._key = ""
        self._making: asyncio.Future[bytes] | None = None
        self.kept = 0
        """How many bytes the newest body shares with the one before, at least."""
        self.ids: set[str] = set()
        """Ids of all calls that were ever in the body, as servers may number calls from 1 in each answer."""

    def forget(self) -> None:
        """Encode everything again at the next request, because the format has changed."""
        self._of = None

    async def joined(self, request: ModelRequest, tail: bytes) -> bytes:
        """Return ``join``, in a thread when much is new: the first request of a resumed session."""
        if self._making and not self._making.done():
            # That request was cancelled, but its thread still changes what this one continues with.
            await asyncio.wait({self._making})
        known = 0 if self._anew(request) else len(self._messages)
        if len(self._whole) < LARGE and not weighty(islice(request.messages, known, None), AT_ONCE):
            return self.join(request, tail)
        self._making = asyncio.get_running_loop().run_in_executor(None, self.join, request, tail)
        return await asyncio.shield(self._making)

    def _anew(self, request: ModelRequest) -> bool:
        return self._of is None or self._of[0] != request.system or self._of[1] is not request.tools

    def join(self, request: ModelRequest, tail: bytes) -> bytes:
        """Return the whole body. ``tail`` follows the messages, where it moves no byte before it."""
        anew = self._anew(request)
        if anew:
            self._whole, self._of = bytearray(self._head(request)), (request.system, request.tools)
            self._key = key_in(request.system)
            self._messages, self._ends = [], [len(self._whole)]
        known = self._known(request.messages)
        del self._messages[known:], self._ends[known + 1 :], self._whole[self._ends[known] :]
        self.kept = 0 if anew else len(self._whole)
        for message in request.messages[known:]:
            part = self._encode(signed(message, self._key))
            if part and self._ends[-1] > self._ends[0]:
                self._whole += b","
            self._whole += part
            self._messages.append(message)
            self.ids.update([call.id for call in message.calls])
            self._ends.append(len(self._whole))
        return b"".join((self._whole, tail))

    def _known(self, messages: Sequence[Message]) -> int:
        """Return how many of ``messages`` are encoded already: nearly always all but the newest."""
        if list(islice(messages, len(self._messages))) == self._messages:
            return len(self._messages)
        for index, identical in enumerate(map(is_, self._messages, messages)):
            if not identical:
                if not _same(self._messages[index], messages[index]):
                    return index
                self._messages[index] = messages[index]
        return min(len(self._messages), len(messages))


def _same(old: Message, new: Message) -> bool:
    """Whether ``new`` is ``old`` rebuilt from the same blocks; a longer one with the same id is another message."""
    return (
        old.id == new.id
        and len(old.blocks) == len(new.blocks)
        and all(mine is other for mine, other in zip(old.blocks, new.blocks, strict=True))
    )


def media_at(body: bytes, place: Sequence[int]) -> tuple[str, ...]:
    """Return the ``media_key`` of each picture and document in one part of an encoded request, or in a whole message.

    ``place``: the numbers of the message, of its part, and of the part of a tool result, as servers name them. Empty
    when the body has no such part. Decodes the whole body: call it off the event loop.
    """
    try:
        found: Any = {"content": fields(json.loads(body)).get("messages")}
    except ValueError:
        return ()
    for number in place:
        parts = items(fields(found).get("content"))
        if number >= len(parts):
            return ()
        found = parts[number]
    return tuple(media_key(content) for content in _contents(found))


def _contents(part: Any) -> list[str]:
    """Return the data and addresses of all media within a part, in any format."""
    found: list[str] = []
    for key, value in fields(part).items():
        if key in {"data", "url", "file_data"} and isinstance(value, str):
            found.append(value.partition(";base64,")[2] if value.startswith("data:") else value)
        for inner in (value, *items(value)):
            found += _contents(inner)
    return found


PIECE = 262_144
"""Bytes of a body that are passed to the connection at a time."""


class PiecewiseBody(httpx2.ByteStream):
    """A body that is sent in pieces, so that a large one does not block the event loop."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._content) or 1, PIECE):
            yield self._content[start : start + PIECE]


class ModelConnection:
    """A connection to one endpoint. ``service`` names it in errors; ``idle`` seconds of silence are allowed. Raises
    AuthFailed for a key that can't be sent, UsageError."""

    def __init__(self, endpoint: KeyedEndpoint, service: ModelService, idle: float) -> None:
        check_key(endpoint.secret, service.variable)
        self._service = service
        self._endpoint = endpoint
        self._http = http_client(idle, endpoint.url)
        base = httpx2.URL(endpoint.url)
        self._base = base if base.path.endswith("/") else base.copy_with(raw_path=base.raw_path + b"/")
        # Bytes, because httpx2 takes text in ASCII only, and the SDKs send UTF-8.
        headers = [(name.encode(), value.encode()) for name, value in endpoint.headers.items()]
        self._pattern = self._http.build_request("POST", self._base, headers=headers)

    def url(self, path: str) -> httpx2.URL:
        """Return the address of ``path`` below the endpoint. Raises UsageError when it is of another host."""
        found = self._base.join(path.lstrip("/"))
        if (found.scheme, found.netloc) != (self._base.scheme, self._base.netloc):
            raise UsageError(
                f"{path} does not belong to {self._service.host}, for which this key is meant.", "Correct the address."
            )
        return found

    def begin(self) -> None:
        """Start to connect, on the running loop, so that the first request finds the connection open. Sends nothing."""
        self._http.begin(self._base)

    async def post(self, url: httpx2.URL, content: bytes) -> httpx2.Response:
        """Return the response, its body unread. Raises ProviderError when the endpoint does not answer, or refuses."""
        try:
            response = await self._http.send(self._enveloped(url, content), auth=self._endpoint.auth, stream=True)
            if not response.is_success:
                error = from_response(self._service, response.status_code, response.headers, response.content)
                if isinstance(error, RequestRefused) and error.at:
                    error.keys = await asyncio.to_thread(media_at, content, error.at)
                raise error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise from_network(self._service, error) from error
        return response

    async def close(self) -> None:
        await self._http.aclose()
        if self._endpoint.close:
            await self._endpoint.close()

    def _enveloped(self, url: httpx2.URL, content: bytes) -> httpx2.Request:
        """Return a request with ``content``. ``build_request`` would parse and join all headers each time."""
        headers = self._pattern.headers.copy()
        headers["Content-Length"] = str(len(content))
        return httpx2.Request(
            "POST",
            url,
            headers=headers,
            cookies=self._http.cookies,
            stream=PiecewiseBody(content),
            extensions=self._pattern.extensions,
        )


@frozen
class Transfer:
    """How requests and responses travel: ``idle`` seconds of silence are allowed; ``recorder`` records them."""

    idle: float = 300.0
    recorder: Recorder | None = None

    def sent(self, content: bytes, body: RequestBody, tail: bytes) -> Exchange | None:
        """Record ``content``, which ``body`` has just joined with ``tail``."""
        return self.recorder.sent(content, body.kept, len(tail)) if self.recorder else None


DIRECT = Transfer()


class RecordedBytes:
    """The bytes of a response, each recorded on arrival. A class instead of a generator: nothing has to be closed."""

    def __init__(self, body: AsyncIterator[bytes], exchange: Exchange) -> None:
        self._body = body
        self._exchange = exchange

    def __aiter__(self) -> RecordedBytes:
        return self

    async def __anext__(self) -> bytes:
        data = await anext(self._body)
        self._exchange.received(data)
        return data


class HttpProvider(ABC):
    """The base of providers for a vendor's format: core.provider.Provider over HTTP, in whose requests only the newest
    messages are encoded. ``options`` are further fields of each request, as the API names them.

    Raises:
        AuthFailed: there is no key, and the endpoint is the vendor's own.
        UsageError: no connection can be set up with these settings.
    """

    PATH: ClassVar[str]

    def __init__(
        self,
        model: ModelInfo,
        *,
        api_key: BoundKey | None = None,
        base_url: str | None = None,
        options: Mapping[str, Any] | None = None,
        transfer: Transfer = DIRECT,
    ) -> None:
        self._model = model
        self._transfer = transfer
        self._options = dict(options or {})
        endpoint, self._service = self._reach(api_key, base_url)
        self._connection = ModelConnection(endpoint, self._service, transfer.idle)
        self._url = self._connection.url(self.PATH)
        self._body = RequestBody(self._head, self._encode)

    @property
    def model(self) -> ModelInfo:
        return self._model

    def connect(self) -> None:
        self._connection.begin()

    async def close(self) -> None:
        await self._connection.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        response, exchange = await self._response(request)
        reply = self._reply()
        data = response.aiter_bytes()
        body = self._events(RecordedBytes(data, exchange) if exchange else data)
        try:
            async with aclosing(chunks(body, reply, self._service, self._transfer.idle)) as parts:
                async for chunk in parts:
                    yield chunk
        finally:
            if exchange:
                exchange.end()
            await response.aclose()
        yield self._finish(reply)

    async def _response(self, request: ModelRequest) -> tuple[httpx2.Response, Exchange | None]:
        """Return the response; ask servers that refuse an optional field of ours again without it."""
        while True:
            tail = self._tail(request)
            content = await self._body.joined(request, tail)
            exchange = self._transfer.sent(content, self._body, tail)
            try:
                return await self._connection.post(self._url, content), exchange
            except BadRequest as error:
                if not self._leave_out(str(error)):
                    raise
                self._body.forget()

    @abstractmethod
    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[KeyedEndpoint, ModelService]:
        """Return the endpoint, and its name in errors."""
        ...

    @abstractmethod
    def _head(self, request: ModelRequest) -> bytes:
        """Encode tools, then the system prompt: stable parts first, so that each request extends the last."""
        ...

    @abstractmethod
    def _tail(self, request: ModelRequest) -> bytes:
        """Encode the part of a request after its messages."""
        ...

    @abstractmethod
    def _encode(self, message: Message) -> bytes: ...

    @abstractmethod
    def _reply(self) -> ReplyBuilder: ...

    def _finish(self, reply: ReplyBuilder) -> Message:
        return reply.finish()

    def _events(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Return ``body`` as server-sent events."""
        return body

    @abstractmethod
    def _leave_out(self, refusal: str) -> bool:
        """Stop sending the field that ``refusal`` names; return False when it names none of ours."""
        ...
