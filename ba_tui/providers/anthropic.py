"""Anthropic's Messages API: the format of requests and answers, over a connection with the user's key or to a cloud."""

from __future__ import annotations

import asyncio
import base64
import binascii
import io
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ba_tui.core.errors import AuthFailed, BadRequest, ConnectionLost, UsageError
from ba_tui.core.events import TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    StopReason,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
    Usage,
    clean_json,
    clean_text,
    key_in,
    new_id,
    signed,
)
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.core.tool import Tool
from ba_tui.providers.connection import HttpProvider
from ba_tui.providers.credentials import (
    ANTHROPIC_URL,
    CLOUDS,
    BoundKey,
    KeyedEndpoint,
    anthropic_chain,
    anthropic_endpoint,
)
from ba_tui.providers.faults import ModelService, cut, from_event, from_network, no_answer
from ba_tui.providers.http import beginning
from ba_tui.providers.shapes import (
    ERROR,
    Load,
    arguments,
    call_id,
    call_name,
    clean,
    count,
    decode,
    encode,
    fields,
    items,
    text_of,
)
from ba_tui.providers.sse import ReplyBuilder

log = logging.getLogger(__name__)
VENDOR = "anthropic"
ID_LENGTH = 64
UNSEEN = "[A picture was here; this model can't see pictures.]"
STOPS: Mapping[str, StopReason] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "refusal": "refusal",
    "pause_turn": "pause_turn",
    "model_context_window_exceeded": "context_window",
    "compaction": "pause_turn",
}
BILLED = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_FINISHED: frozenset[StopReason] = frozenset({"end_turn", "tool_use", "stop_sequence"})


def encode_message(message: Message, model: ModelInfo) -> bytes:
    """Encode a message for ``messages``; b"" when nothing of it can be sent to this model."""
    own = message.model == model.id
    content = [wire for block in message.blocks if (wire := block_to_wire(block, own=own, model=model)) is not None]
    if not content:
        return b""
    # Answers to calls come first, before any text of the user's: the API requires that order.
    content.sort(key=lambda wire: wire["type"] != "tool_result")
    return encode({"role": message.role, "content": content})


def block_to_wire(block: Block, *, own: bool, model: ModelInfo) -> dict[str, Any] | None:
    """Encode a block. ``own``: the same model wrote it, so its reasoning can be sent back."""
    match block:
        case Text():
            if not block.text.strip():
                return None
            cited = {"citations": list(block.citations)} if block.citations else {}
            return {"type": "text", "text": block.text, **cited}
        case Thinking():
            if not own or not block.signature:
                return None
            return {"type": "thinking", "thinking": block.thinking, "signature": block.signature}
        case RedactedThinking():
            return {"type": "redacted_thinking", "data": block.data} if own else None
        case Image() | Document():
            return _media_to_wire(block, model)
        case ToolUse():
            return {
                "type": "tool_use",
                "id": call_id(block.id, ID_LENGTH),
                "name": call_name(block.name),
                "input": block.input,
            }
        case ToolOutput():
            return _output_to_wire(block, model)
        case Opaque():
            return block.raw if block.vendor == VENDOR and text_of(block.raw.get("type")) else None


def _output_to_wire(block: ToolOutput, model: ModelInfo) -> dict[str, Any]:
    content: str | list[dict[str, Any]] = block.content
    if block.attachments:
        said = [{"type": "text", "text": block.content}] if block.content.strip() else []
        content = [*said, *(_media_to_wire(media, model) for media in block.attachments)]
    wire = {"type": "tool_result", "tool_use_id": call_id(block.tool_use_id, ID_LENGTH), "content": content}
    return {**wire, "is_error": True} if block.is_error else wire


def _media_to_wire(media: Image | Document, model: ModelInfo) -> dict[str, Any]:
    source = {"type": "base64", "media_type": media.media_type, "data": media.data}
    if isinstance(media, Image):
        if model.known and not model.vision:
            return {"type": "text", "text": UNSEEN}
        return {"type": "image", "source": {"type": "url", "url": media.url} if media.url else source}
    if media.media_type == "text/plain":
        text = base64.b64decode(media.data).decode("utf-8", "replace")
        source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source, **({"title": media.title} if media.title else {})}


def tool_to_wire(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}


def block_from_wire(raw: Mapping[str, Any]) -> Block:
    """Parse a block of an answer or of a request of ours; an unknown one is kept unchanged."""
    match raw.get("type"):
        case "text":
            citations = tuple(clean_json(cited) for cited in items(raw.get("citations")) if fields(cited))
            return Text(clean(text_of(raw.get("text"))), citations)
        case "thinking":
            return Thinking(clean(text_of(raw.get("thinking"))), clean_text(text_of(raw.get("signature"))) or None)
        case "redacted_thinking":
            return RedactedThinking(clean_text(text_of(raw.get("data"))))
        case "tool_use":
            given, malformed = arguments(raw.get("input"))
            text = None if malformed is None else clean_text(malformed)
            id, name = clean_text(text_of(raw.get("id"))), clean_text(text_of(raw.get("name")))
            return ToolUse(id, name, clean_json(given), text)
        case "tool_result":
            return _output_from_wire(raw)
        case "image" | "document" if media := _media_from_wire(raw):
            return media
        case _:
            return Opaque(clean_json(dict(raw)), VENDOR)


def _output_from_wire(raw: Mapping[str, Any]) -> ToolOutput:
    content = raw.get("content")
    parts = [block_from_wire(fields(part)) for part in items(content)]
    text = text_of(content) or "".join(part.text for part in parts if isinstance(part, Text))
    attachments = tuple(part for part in parts if isinstance(part, Image | Document))
    return ToolOutput(text_of(raw.get("tool_use_id")), clean(text), raw.get("is_error") is True, attachments)


def _media_from_wire(raw: Mapping[str, Any]) -> Image | Document | None:
    source = fields(raw.get("source"))
    media_type, data = text_of(source.get("media_type")), text_of(source.get("data"))
    if raw.get("type") == "image" and source.get("type") == "url":
        return Image("", url=text_of(source.get("url")))
    if source.get("type") == "text":
        data = base64.b64encode(data.encode("utf-8", "replace")).decode("ascii")
    elif source.get("type") != "base64":
        return None
    try:
        base64.b64decode(data, validate=True)
    except binascii.Error:
        return None
    if raw.get("type") == "image":
        return Image(media_type, data)
    return Document(media_type, data, text_of(raw.get("title")))


def usage_from_wire(raw: Mapping[str, Any]) -> Usage:
    return Usage(*(count(raw.get(key)) for key in BILLED))


class AnthropicReply:
    """One answer, streamed or whole. Blocks are kept as they arrive and parsed when complete."""

    def __init__(self, model: ModelInfo, service: ModelService, taken: Collection[str] = ()) -> None:
        """``taken``: ids of earlier calls."""
        self.done = False
        self._model = model
        self._service = service
        self._blocks: list[dict[str, Any]] = []
        self._at: dict[int, int] = {}
        """The block of each index; the latest, where one index is used for all."""
        self._pieces: dict[int, dict[str, io.StringIO]] = {}
        self._sizes: dict[int, int] = {}
        self._taken = taken
        self._ids: set[str] = set()
        self._usage: dict[str, Any] = {}
        self._stop = ""
        self._load = Load(service.host)

    def feed(self, name: str, data: dict[str, Any]) -> Iterable[ReplyChunk]:
        """Return the deltas of one event."""
        match data.get("type") or name:
            case _ if data.get("error") or data.get("object") == "error":
                raise from_event(self._service, data)
            case "content_block_delta":
                return self._delta(int(count(data.get("index"))), fields(data.get("delta")))
            case "content_block_start":
                return self._start(int(count(data.get("index"))), fields(data.get("content_block")))
            case "message_start":
                message = fields(data.get("message"))
                self._bill(fields(message.get("usage")))
                return [
                    chunk
                    for index, raw in enumerate(items(message.get("content")))
                    for chunk in self._start(index, fields(raw))
                ]
            case "message_delta":
                self._stop = text_of(fields(data.get("delta")).get("stop_reason")) or self._stop
                self._bill(fields(data.get("usage")))
            case "message_stop":
                self.done = True
            case "error":
                raise from_event(self._service, data)
            case "ping" | "content_block_stop":
                pass
            case unknown:
                self._load.ignored(unknown)
        return ()

    def take(self, body: dict[str, Any]) -> None:
        """Parse a whole answer. Raises ProviderError when it is an error, or no answer."""
        if not isinstance(body.get("content"), list):
            raise no_answer(self._service, body, "Messages")
        for event in ({"type": "message_start", "message": body}, {"type": "message_delta", "delta": body}):
            for _ in self.feed("", event):
                pass
        self.done = True

    def close(self) -> None:
        """Do nothing: the only end mark of the Messages API is ``message_stop``."""

    def finish(self) -> Message:
        """Return the message. Raises ConnectionLost when its last event is missing."""
        if not self.done:
            raise cut(self._service)
        stop = STOPS.get(self._stop)
        if stop is None:
            log.info("unknown stop reason %r", self._stop)
            stop = "tool_use" if any(raw.get("type") == "tool_use" for raw in self._blocks) else "end_turn"
        blocks = tuple(self._block(index, raw, stop) for index, raw in enumerate(self._blocks))
        usage = usage_from_wire(self._usage)
        return Message("assistant", blocks, usage=usage, stop=stop, model=self._model.id, origin="assistant")

    def _bill(self, usage: dict[str, Any]) -> None:
        self._usage.update({key: value for key in BILLED if (value := usage.get(key))})

    def _start(self, index: int, raw: dict[str, Any]) -> Iterable[ReplyChunk]:
        raw = dict(raw)
        self._load.kept(raw)
        self._at[index] = len(self._blocks)
        self._blocks.append(raw)
        if text := text_of(raw.get("text")):
            self._load.words(text)
            yield TextDelta(clean_text(text))
        if text := text_of(raw.get("thinking")):
            self._load.words(text)
            yield ThinkingDelta(clean_text(text))
        if raw.get("type") == "tool_use":
            self._load.call(raw.get("input"))
            id = clean_text(text_of(raw.get("id")))
            # Servers may send no id, or one id twice; calls and answers are paired by ids, so new ones are made.
            new = id and id not in self._ids and id not in self._taken
            raw["id"] = id if new else f"toolu_{new_id()[:24]}"
            self._ids.add(raw["id"])
            yield ToolInputDelta(raw["id"], clean_text(text_of(raw.get("name"))), 0)

    def _delta(self, index: int, delta: dict[str, Any]) -> Iterable[ReplyChunk]:
        if index not in self._at:
            if text_of(delta.get("type")) not in {"text_delta", "thinking_delta"}:
                what = "The answer is broken: the model server sent a part of an unknown block."
                raise ConnectionLost(what, "Send the request again.")
            block = {"type": delta["type"].removesuffix("_delta")}
            self._load.kept(block)
            self._at[index] = len(self._blocks)
            self._blocks.append(block)
        index = self._at[index]
        raw = self._blocks[index]
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                self._grow(index, "text", text)
                return (TextDelta(clean_text(text)),)
            case {"type": "thinking_delta", "thinking": str(text)}:
                self._grow(index, "thinking", text)
                return (ThinkingDelta(clean_text(text)),)
            case {"type": "input_json_delta", "partial_json": str(text)}:
                size = self._sizes[index] = self._sizes.get(index, 0) + len(text)
                self._load.arguments(size, text)
                self._write(index, "input", text)
                if raw.get("type") == "tool_use":
                    id, name = clean_text(text_of(raw.get("id"))), clean_text(text_of(raw.get("name")))
                    return (ToolInputDelta(id, name, size),)
            case {"type": "citations_delta", "citation": citation}:
                self._load.kept(citation)
                raw["citations"] = [*items(raw.get("citations")), citation]
            case _:
                self._keep(index, raw, delta)
        return ()

    def _grow(self, index: int, key: str, text: str) -> None:
        self._load.words(text)
        self._write(index, key, text)

    def _write(self, index: int, key: str, text: str) -> None:
        self._pieces.setdefault(index, {}).setdefault(key, io.StringIO()).write(text)

    def _keep(self, index: int, raw: dict[str, Any], delta: dict[str, Any]) -> None:
        """Merge an unknown delta: texts and lists are extended, other values replaced."""
        for key, value in delta.items():
            if key == "type":
                continue
            if key == "signature" or not isinstance(value, str | list):
                self._load.update(raw, {key: value})
            elif isinstance(value, str):
                self._grow(index, key, value)
            else:
                self._load.kept(value)
                raw[key] = items(raw.get(key)) + items(delta[key])

    def _block(self, index: int, raw: dict[str, Any], stop: StopReason) -> Block:
        for key, pieces in self._pieces.get(index, {}).items():
            text = pieces.getvalue()
            if key != "input":
                raw[key] = text_of(raw.get(key)) + text
            elif text.strip():
                raw[key] = text
        if raw.get("type") == "tool_use":
            if index == len(self._blocks) - 1 and stop not in _FINISHED and not raw.get("input"):
                # The answer ended before the first argument: a call without arguments was probably unfinished.
                return ToolUse(raw["id"], clean_text(text_of(raw.get("name"))), {}, "")
        elif isinstance(raw.get("input"), str):
            given, malformed = arguments(raw["input"])
            raw["input"] = given if malformed is None else malformed
        return block_from_wire(raw)


VARIABLE = "ANTHROPIC_API_KEY"
CURE = f"Set {VARIABLE}, or choose another model with /model."
MARK = {"type": "ephemeral"}
COUNTING = "/v1/messages/count_tokens"
COUNTED = frozenset({"model", "system", "tools"})
"""Fields of a request's head that the counting endpoint takes."""
ADAPTIVE = frozenset({"claude-4.6", "claude-4.8", "claude-5"})
"""Families that decide for themselves how long to think."""


class AnthropicProvider(HttpProvider):
    """See HttpProvider: the Messages API."""

    PATH = "v1/messages"

    def __init__(self, model: ModelInfo, **given: Any) -> None:
        super().__init__(model, **given)
        self._extras: dict[str, Any] = {"cache_control": MARK}
        self._marks = True
        """Whether blocks get cache marks too."""
        if model.family in ADAPTIVE:
            # Without this the models' reasoning and their text between calls arrive as empty blocks.
            self._extras["thinking"] = {"type": "adaptive", "display": "summarized"}

    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[KeyedEndpoint, ModelService]:
        endpoint = anthropic_endpoint(key, url) or _signed_in()
        service = ModelService("Anthropic", VARIABLE, endpoint.url, self._model.name, endpoint.secret)
        return endpoint, service if service.host == urlsplit(ANTHROPIC_URL).netloc else service.elsewhere()

    def _fields(self, head: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a request before its messages, as the endpoint expects them."""
        return head

    def _encode(self, message: Message) -> bytes:
        return encode_message(message, self._model)

    def _reply(self) -> ReplyBuilder:
        return AnthropicReply(self._model, self._service, self._body.ids)

    def _counted(self, body: dict[str, Any], request: ModelRequest) -> bytes:
        key = key_in(request.system)
        parts = [self._encode(signed(message, key)) for message in request.messages]
        return encode(body)[:-1] + b',"messages":[' + b",".join(part for part in parts if part) + b"]}"

    async def count_tokens(self, request: ModelRequest, url: str = COUNTING) -> int:
        """Return the tokens of ``request`` as the provider counts them.

        Raises:
            UsageError: ``url`` is of another host than the key. ProviderError: the endpoint does not count.
        """
        body = {key: value for key, value in decode(self._head(request) + b"]}").items() if key in COUNTED}
        content = await asyncio.to_thread(self._counted, body, request)
        response = await self._connection.post(self._connection.url(url), content)
        try:
            found = fields(decode(await beginning(response, ERROR, self._transfer.idle))).get("input_tokens")
        except ValueError as error:
            raise from_network(self._service, error) from error
        finally:
            await response.aclose()
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise BadRequest(f"{self._service.name} answered without a count.")
        return found

    def _leave_out(self, refusal: str) -> bool:
        refused = next((name for name in self._extras if name in refusal), None)
        if refused is None:
            return False
        del self._extras[refused]
        self._marks = "cache_control" in self._extras
        return True

    def _head(self, request: ModelRequest) -> bytes:
        head: dict[str, Any] = {"model": self._model.name, "max_tokens": self._model.max_output, "stream": True}
        head |= self._extras | self._options
        if request.tools:
            head["tools"] = [tool_to_wire(tool) for tool in request.tools]
        if request.system:
            mark = {"cache_control": MARK} if self._marks else {}
            head["system"] = [{"type": "text", "text": request.system, **mark}]
        return encode(self._fields(head))[:-1] + b',"messages":['

    def _tail(self, request: ModelRequest) -> bytes:
        return b"]}" if request.call_tools or not request.tools else b'],"tool_choice":{"type":"none"}}'


def _signed_in() -> KeyedEndpoint:
    """Return the endpoint that the SDK's credential chain finds. Raises AuthFailed when it finds none."""
    found = None
    if anthropic_chain():
        from ba_tui.providers.anthropic_sdk import signed_in  # noqa: PLC0415 - an SDK: a second, and 60 MB

        found = signed_in()
    if found is None:
        raise AuthFailed("No API key for Anthropic.", CURE)
    return found


class CloudProvider(AnthropicProvider):
    """Claude on a cloud: the SDK gives the address, the fields and the signature of requests; messages, connection and
    recorded bytes are as with Anthropic. ``kind`` is one of CLOUDS. Raises as CloudClient."""

    def __init__(self, kind: str, model: ModelInfo, **given: Any) -> None:
        self._kind = kind
        super().__init__(model, **given)
        self._url = self._client.url

    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[KeyedEndpoint, ModelService]:
        from ba_tui.providers.anthropic_sdk import CloudClient  # noqa: PLC0415 - an SDK: a second, and 60 MB

        self._client = CloudClient(self._kind, self._model.name, key.sent_to(url) if key else None, url)
        endpoint = self._client.endpoint
        return endpoint, CLOUDS[self._kind].service(endpoint, self._model.name)

    def _fields(self, head: dict[str, Any]) -> dict[str, Any]:
        return self._client.fields(head)

    def _events(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        return self._client.events(body, self._service)

    def _leave_out(self, refusal: str) -> bool:
        """Remove marks step by step: some clouds take cache marks on blocks only."""
        marks = self._marks
        if super()._leave_out(refusal):
            self._marks = marks
            return True
        self._marks = marks and "cache_control" not in refusal
        return marks != self._marks

    async def count_tokens(self, request: ModelRequest, url: str = COUNTING) -> int:
        """Raise UsageError: clouds count at other addresses, or not at all."""
        raise UsageError(f"{self._service.name} has no endpoint that counts tokens.", "They are counted here instead.")
