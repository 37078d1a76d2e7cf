"""Chat Completions as its many servers use it: the format of requests and answers, over a connection, and Azure."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ba_tui.core.errors import AuthFailed
from ba_tui.core.events import PromptProgress, TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    StopReason,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
    Usage,
    clean_json,
    clean_text,
    new_id,
)
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.core.tool import Tool
from ba_tui.providers.connection import HttpProvider
from ba_tui.providers.credentials import CLOUDS, BoundKey, KeyedEndpoint, azure_endpoint, openai_endpoint
from ba_tui.providers.faults import ModelService, cut, from_event, no_answer
from ba_tui.providers.shapes import (
    LONGEST_NAME,
    Load,
    arguments,
    call_id,
    call_name,
    clean,
    count,
    encode,
    fields,
    items,
    text_of,
)
from ba_tui.providers.sse import ReplyBuilder

VENDOR = "openai"
EXTRA = "tool_call_extra"
NOTHING = "{}"
LONGEST_ID = 1_000
_KNOWN = {"index", "id", "type", "function", "name", "arguments"}


@dataclass(slots=True)
class _OpenCall:
    id: str
    told: str
    """The server's id, or one of ba's where that can't be used."""
    name: str = ""
    text: io.StringIO = field(default_factory=io.StringIO)
    begun: bool = False
    given: dict[str, Any] | None = None
    size: int = 0
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    def write(self, text: str) -> None:
        self.text.write(text)
        self.size += len(text)
        self.begun = self.begun or bool(text.strip())

    def read(self) -> tuple[dict[str, Any], str | None]:
        """Return the arguments, and the text that could not be parsed."""
        if self.given is not None:
            return arguments(self.given)
        text = self.text.getvalue()
        # Translating gateways put an empty object before the pieces of the real one.
        rest = text[len(NOTHING) :].lstrip() if text.startswith(NOTHING) else ""
        return arguments(rest if rest.startswith("{") else text)

    @property
    def whole(self) -> bool:
        """Whether the arguments are complete JSON."""
        return self.begun and self.read()[1] is None


class CallPieces:
    """Assembles the calls of an answer from pieces, in the order in which they began."""

    def __init__(self, load: Load, taken: Collection[str] = ()) -> None:
        """``taken``: ids of earlier calls."""
        self._load = load
        self._taken = taken
        self._all: list[_OpenCall] = []
        self._at: dict[str, _OpenCall] = {}
        """The call of each index; the latest, where one index is used for all."""
        self._open: _OpenCall | None = None

    def __bool__(self) -> bool:
        return bool(self._all)

    def feed(self, raw: dict[str, Any]) -> ToolInputDelta:
        """Add a piece to its call: by index, else by id, else to the open call."""
        function = fields(raw.get("function")) or raw
        id, name = clean_text(text_of(raw.get("id"))[:LONGEST_ID]), clean_text(text_of(function.get("name")))
        given = function.get("arguments")
        call = self._find(raw.get("index"), id, name, more=bool(given) and given != "")
        # The name arrives whole or in pieces, and some servers repeat the name so far with every piece.
        call.name = (name if name.startswith(call.name) else call.name + name)[: LONGEST_NAME + 1]
        self._load.update(call.extra, {key: value for key, value in raw.items() if key not in _KNOWN})
        before = call.size
        text = given if isinstance(given, str) else json.dumps(given) if given else ""
        if isinstance(given, dict):
            call.given = call.given or {}
            call.given.update(fields(function["arguments"]))
            call.size, call.begun = call.size + len(text), bool(call.given)
        else:
            call.write(text)
        if call.size > before:
            self._load.arguments(call.size, text)
        return ToolInputDelta(call.id, call.name, call.size)

    def _find(self, index: object, id: str, name: str, *, more: bool) -> _OpenCall:
        place = str(index) if isinstance(index, int | str) else ""
        if place:
            found = self._at.get(place)
            if found and id and name and found.name and found.told != id:
                # One index for several calls, which differ by their ids.
                found = self._by_id(id)
        else:
            found = self._by_id(id) if id else self._open
            if found is None and not name and more and self._open and not self._open.whole:
                # Each piece has another id.
                found = self._open
        going_on = bool(place) and found is not None and not found.begun and id in {"", found.told}
        if found and name and found.name and not going_on and self._another(found, id, name, more=more):
            found = None
        if found is None:
            self._load.call()
            fresh = self._fresh(id)
            found = _OpenCall(fresh, fresh if self._by_id(id) else id or fresh)
            self._all.append(found)
        if place:
            self._at[place] = found
        self._open = found
        return found

    def _another(self, found: _OpenCall, id: str, name: str, *, more: bool) -> bool:
        """Whether a piece with a name begins a new call, though nothing else distinguishes it from ``found``."""
        if id and id == found.told and name == found.name and not (more and found.whole):
            return False
        return name != found.name or (more and found.whole)

    def _by_id(self, id: str) -> _OpenCall | None:
        return next((call for call in self._all if call.told == id), None)

    def _fresh(self, id: str) -> str:
        # Servers may send no id, or one id twice; calls and answers are paired by ids, so new ones are made.
        return id if id and self._by_id(id) is None and id not in self._taken else f"call_{new_id()[:24]}"

    def blocks(self, *, cut: bool) -> Iterator[ToolUse | Opaque]:
        """Return the calls, each with the server's additions. ``cut``: the answer ended early."""
        for call in self._all:
            given, malformed = call.read()
            if cut and call is self._all[-1] and not call.begun:
                # A call without arguments was probably unfinished.
                malformed = ""
            yield ToolUse(call.id, call.name, clean_json(given), None if malformed is None else clean_text(malformed))
            if call.extra:
                yield Opaque(clean_json({"type": EXTRA, "id": call.id, "extra": call.extra}), VENDOR)

    @property
    def whole(self) -> bool:
        """Whether all calls are complete."""
        return all(call.read()[1] is None for call in self._all)


ID_LENGTH = 40
UNSEEN = "[A picture was here; this model can't see pictures.]"
ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning", "thinking", "reasoning_text", "content"]
"""The field in which a server sends reasoning and expects it back; ``content``: as parts of a list."""
DETAILS = "reasoning_details"
"""The field in which some servers send reasoning in signed or encrypted parts; its words are not sent twice."""
_REASONING: tuple[ReasoningField, ...] = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
_REASONS: Mapping[StopReason, str] = {
    "end_turn": "stop eos eos_token end_turn complete",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_calls tool_call tool_use function_call",
    "max_tokens": "length max_tokens max_output_tokens",
    "context_window": "model_length model_context_window_exceeded",
    "refusal": "content_filter refusal sensitive safety recitation prohibited_content blocklist error_toxic",
}
STOPS: Mapping[str, StopReason] = {reason: stop for stop, reasons in _REASONS.items() for reason in reasons.split()}
"""By the reason in small letters."""
_GAVE_UP = {"error", "abort", "network_error", "insufficient_system_resource", "malformed_function_call"}
_FINISHED: frozenset[StopReason] = frozenset({"end_turn", "tool_use", "stop_sequence"})


def encode_message(message: Message, model: ModelInfo, reasoning: ReasoningField) -> bytes:
    """Encode a message for ``messages``: objects joined by commas where it answers several calls; b"" when empty."""
    if message.role == "assistant":
        said = _assistant_to_wire(message, reasoning if message.model == model.id else None)
        return encode(said) if said else b""
    return b",".join(encode(wire) for wire in _user_to_wire(message, model))


def _assistant_to_wire(message: Message, reasoning: ReasoningField | None) -> dict[str, Any] | None:
    text = message.text if message.text.strip() else ""
    thought = "".join(block.thinking for block in message.blocks if isinstance(block, Thinking))
    # A server's additions are sent to that server only: others would refuse an unknown field.
    own = [block.raw for block in message.blocks if isinstance(block, Opaque) and block.vendor == VENDOR]
    opaque = own if reasoning else []
    extras = {text_of(raw.get("id")): fields(raw.get("extra")) for raw in opaque if raw.get("type") == EXTRA}
    calls = [
        {
            "id": call_id(call.id, ID_LENGTH),
            "type": "function",
            "function": {"name": call_name(call.name), "arguments": json.dumps(call.input, ensure_ascii=False)},
            **extras.get(call.id, {}),
        }
        for call in message.calls
    ]
    if not text and not calls:
        return None
    wire: dict[str, Any] = {"role": "assistant", "content": text or None}
    for raw in opaque:
        wire |= {key: value for key, value in raw.items() if raw.get("type") == "message_extra" and key != "type"}
    if thought and reasoning == "content":
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}]
        wire["content"] = [*parts, {"type": "text", "text": text}] if text else parts
    elif thought and reasoning and not any(_words_of(fields(detail)) for detail in items(wire.get(DETAILS))):
        wire[reasoning] = thought
    return {**wire, "tool_calls": calls} if calls else wire


def _user_to_wire(message: Message, model: ModelInfo) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for block in message.blocks:
        match block:
            case ToolOutput():
                id = call_id(block.tool_use_id, ID_LENGTH)
                answers.append({"role": "tool", "tool_call_id": id, "content": block.content})
                parts += [_media_to_wire(media, model) for media in block.attachments]
            case Text() if block.text.strip():
                parts.append({"type": "text", "text": block.text})
            case Image() | Document():
                parts.append(_media_to_wire(block, model))
            case _:
                pass
    if not parts:
        return answers
    if all(part["type"] == "text" for part in parts):
        # As one string: many local servers accept no list of parts.
        return [*answers, {"role": "user", "content": "\n\n".join(part["text"] for part in parts)}]
    return [*answers, {"role": "user", "content": parts}]


def _media_to_wire(media: Image | Document, model: ModelInfo) -> dict[str, Any]:
    url = f"data:{media.media_type};base64,{media.data}"
    if isinstance(media, Image):
        if model.known and not model.vision:
            return {"type": "text", "text": UNSEEN}
        return {"type": "image_url", "image_url": {"url": media.url or url}}
    if media.media_type == "text/plain":
        text = base64.b64decode(media.data).decode("utf-8", "replace")
        return {"type": "text", "text": f"{media.title}\n{text}" if media.title else text}
    return {"type": "file", "file": {"filename": media.title or "document", "file_data": url}}


def tool_to_wire(tool: Tool) -> dict[str, Any]:
    shape = {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)}
    return {"type": "function", "function": shape}


def usage_from_wire(raw: Mapping[str, Any]) -> Usage:
    """Parse usage. Cached tokens are taken out of ``input``; separate reasoning is added to ``output``."""
    details = fields(raw.get("prompt_tokens_details"))
    prompt, output = count(raw.get("prompt_tokens")), count(raw.get("completion_tokens"))
    cached = (details.get("cached_tokens"), raw.get("prompt_cache_hit_tokens"), raw.get("cached_tokens"))
    read = min(prompt, next((found for number in cached if (found := count(number))), 0))
    written = min(prompt - read, count(details.get("cache_write_tokens")))
    output = max(output, count(raw.get("total_tokens")) - prompt)
    return Usage(prompt - read - written, output, read, written)


class OpenAIReply:
    """One answer, from the chunks of a stream or from a whole response."""

    def __init__(self, model: ModelInfo, service: ModelService, taken: Collection[str] = ()) -> None:
        """``taken``: ids of earlier calls."""
        self.done = False
        self.reasoning: ReasoningField | None = None
        self._model = model
        self._service = service
        self._load = Load(service.host)
        self._text = io.StringIO()
        self._thinking = io.StringIO()
        self._calls = CallPieces(self._load, taken)
        self._details = _Details(self._load)
        self._usage: dict[str, Any] = {}
        self._stop = ""
        self._refused = False

    def feed(self, name: str, data: dict[str, Any]) -> Iterable[ReplyChunk]:
        """Return the deltas of one chunk."""
        groq = fields(data.get("x_groq"))
        if data.get("error") or name == "error" or data.get("object") == "error" or groq.get("error"):
            raise from_event(self._service, data if data.get("error") or not groq else groq)
        self._bill(data.get("usage"), groq.get("usage"))
        if reading := fields(data.get("prompt_progress")):
            yield _progress(reading)
        if "choices" not in data:
            self._load.ignored(name or data.get("object") or data.get("type"))
        for choice in map(fields, items(data.get("choices"))):
            if count(choice.get("index")):
                continue
            if fields(choice.get("error")):
                raise from_event(self._service, choice)
            yield from self._said(fields(choice.get("delta")) or self._unsaid(choice))
            self._stop = text_of(choice.get("finish_reason")).lower() or self._stop
            self._bill(choice.get("usage"))

    def take(self, body: dict[str, Any]) -> None:
        """Parse a whole answer. Raises ProviderError when it is an error, or no answer."""
        if not items(body.get("choices")):
            raise no_answer(self._service, body, "Chat Completions")
        for _ in self.feed("", body):
            pass
        self.close()

    def close(self) -> None:
        """Note the end mark ``[DONE]``."""
        self.done = True

    def finish(self) -> Message:
        """Return the message. Raises ConnectionLost when it is not complete."""
        if not self._stop and not (self.done and self._complete()):
            raise cut(self._service)
        if self._stop in _GAVE_UP:
            raise from_event(self._service, {"message": "The server gave up on this answer."})
        blocks: list[Block] = []
        if thought := self._thinking.getvalue():
            blocks.append(Thinking(clean(thought)))
        if self._details:
            blocks.append(Opaque(clean_json({"type": "message_extra", DETAILS: self._details.whole()}), VENDOR))
        if text := clean(self._text.getvalue()):
            blocks.append(Text(text))
        stop = STOPS.get(self._stop, "end_turn")
        blocks += self._calls.blocks(cut=stop not in _FINISHED)
        if self._calls and stop == "end_turn":
            stop = "tool_use"
        elif not self._calls and stop == "tool_use":
            stop = "end_turn"
        if self._refused and not self._calls:
            stop = "refusal"
        usage = usage_from_wire(self._usage) if self._usage else None
        return Message("assistant", tuple(blocks), usage=usage, stop=stop, model=self._model.id, origin="assistant")

    def _bill(self, *told: object) -> None:
        """Return the last usage that is not empty: some servers end with a line of zeros."""
        for usage in map(fields, told):
            if usage and (any(count(number) for number in usage.values()) or not self._usage):
                self._usage = usage

    def _said(self, delta: dict[str, Any]) -> Iterable[ReplyChunk]:
        yield from self._think(delta)
        content = delta.get("content")
        for part in items(content) or [content]:
            yield from self._part(part)
        if refusal := text_of(delta.get("refusal")):
            self._refused = True
            yield self._speak(refusal)
        for raw in map(fields, items(delta.get("tool_calls"))):
            if raw:
                yield self._calls.feed(raw)
        if old := fields(delta.get("function_call")):
            yield self._calls.feed({"index": 0, "function": old})

    def _think(self, delta: dict[str, Any]) -> Iterable[ReplyChunk]:
        details = items(delta.get(DETAILS))
        for key in _REASONING:
            if thought := text_of(delta.get(key)):
                yield self._ponder(key, thought)
                break
        else:
            if thought := "".join(_words_of(fields(detail)) for detail in details):
                yield self._ponder(None, thought)
        for detail in details:
            self._details.add(detail)

    def _ponder(self, key: ReasoningField | None, thought: str) -> ThinkingDelta:
        self.reasoning = key or self.reasoning
        self._load.words(thought)
        self._thinking.write(thought)
        return ThinkingDelta(clean_text(thought))

    def _part(self, part: object) -> Iterable[ReplyChunk]:
        raw = fields(part)
        text = text_of(part) or text_of(raw.get("text"))
        if raw.get("type") == "thinking":
            inner = raw.get("thinking")
            thought = text_of(inner) or "".join(text_of(fields(piece).get("text")) for piece in items(inner))
            if thought:
                yield self._ponder("content", thought)
        elif text:
            yield self._speak(text)

    def _speak(self, text: str) -> TextDelta:
        self._load.words(text)
        self._text.write(text)
        return TextDelta(clean_text(text))

    def _unsaid(self, choice: dict[str, Any]) -> dict[str, Any]:
        """Return the part of a ``message`` that no delta had: some servers send one with the whole answer so far."""
        message = fields(choice.get("message"))
        if not (self._text.tell() or self._thinking.tell() or self._calls):
            return message
        if "delta" in choice:
            return {}
        said, content = self._text.getvalue(), text_of(message.get("content"))
        return {"content": content[len(said) :]} if content.startswith(said) else message

    def _complete(self) -> bool:
        """Whether the answer is complete: an end mark without a reason is accepted when all calls are."""
        return self._calls.whole and bool(self._text.tell() or self._calls)


def _words_of(detail: Mapping[str, Any]) -> str:
    return text_of(detail.get("text")) or text_of(detail.get("summary"))


def _progress(reading: Mapping[str, Any]) -> PromptProgress:
    """Return llama.cpp's progress with the prompt; ``cache`` of its tokens were cached."""
    total, done, cached = (count(reading.get(key)) for key in ("total", "processed", "cache"))
    seconds = count(reading.get("time_ms")) / 1000
    left = seconds * (total - done) / (done - cached) if cached < done <= total else None
    return PromptProgress(total, min(done, total), left)


class _Details:
    """Reasoning in parts; a part that continues the text of the one before is joined to it."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._all: list[Any] = []
        self._key = ""
        """The key of the last part's text, which continues in ``_words``."""
        self._words = io.StringIO()

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, detail: object) -> None:
        last, new = fields(self._all[-1] if self._all else None), fields(detail)
        key = "summary" if "summary" in new else "text"
        same = all(last.get(name) == new.get(name) for name in ("type", "index"))
        if last and same and isinstance(last.get(key), str) and isinstance(new.get(key, ""), str):
            if key != self._key:
                self._join(last)
                self._key = key
            self._load.words(text_of(new.get(key)))
            self._words.write(text_of(new.get(key)))
            self._load.update(last, {name: value for name, value in new.items() if value is not None and name != key})
            return
        self._join(last)
        self._load.kept(detail)
        self._all.append(dict(new) if new else detail)

    def whole(self) -> list[Any]:
        self._join(fields(self._all[-1] if self._all else None))
        return self._all

    def _join(self, last: dict[str, Any]) -> None:
        if grown := self._words.getvalue():
            last[self._key] = text_of(last.get(self._key)) + grown
        self._key, self._words = "", io.StringIO()


VARIABLE = "OPENAI_API_KEY"
OWN = "https://api.openai.com"


class OpenAIProvider(HttpProvider):
    """See HttpProvider: Chat Completions."""

    PATH = "chat/completions"

    def __init__(self, model: ModelInfo, **given: Any) -> None:
        super().__init__(model, **given)
        if self._service.vendor and "max_tokens" in self._options:
            # OpenAI's own reasoning models accept the new name only, all other servers the old one.
            self._options["max_completion_tokens"] = self._options.pop("max_tokens")
        self._counted = True
        self._reasoning: ReasoningField = "reasoning_content"

    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[KeyedEndpoint, ModelService]:
        endpoint = openai_endpoint(key, url)
        own = endpoint.url.startswith(OWN)
        if own and not endpoint.secret:
            raise AuthFailed("No API key for OpenAI.", f"Set {VARIABLE}, or set base_url to a server of your own.")
        service = ModelService("OpenAI", VARIABLE, endpoint.url, self._model.name, endpoint.secret)
        return endpoint, service if own else service.elsewhere()

    def _encode(self, message: Message) -> bytes:
        return encode_message(message, self._model, self._reasoning)

    def _reply(self) -> ReplyBuilder:
        return OpenAIReply(self._model, self._service, self._body.ids)

    def _finish(self, reply: ReplyBuilder) -> Message:
        if isinstance(reply, OpenAIReply):
            self._reasoning = reply.reasoning or self._reasoning
        return reply.finish()

    def _leave_out(self, refusal: str) -> bool:
        # Servers that can't count tokens while streaming refuse this field.
        refused = self._counted and "stream_options" in refusal
        self._counted = self._counted and not refused
        return refused

    def _head(self, request: ModelRequest) -> bytes:
        head: dict[str, Any] = {"model": self._model.name, "stream": True}
        if self._counted:
            head["stream_options"] = {"include_usage": True}
        head |= self._options
        if request.tools:
            head["tools"] = [tool_to_wire(tool) for tool in request.tools]
        system = encode({"role": "system", "content": request.system}) + b"," if request.system else b""
        return encode(head)[:-1] + b',"messages":[' + system

    def _tail(self, request: ModelRequest) -> bytes:
        return b"]}" if request.call_tools or not request.tools else b'],"tool_choice":"none"}'


class AzureProvider(OpenAIProvider):
    """OpenAI's format at the user's Azure resource; a model is the name of a deployment."""

    def _reach(self, key: BoundKey | None, url: str | None) -> tuple[KeyedEndpoint, ModelService]:
        endpoint = azure_endpoint(key, url)
        return endpoint, CLOUDS["azure"].service(endpoint, self._model.name)
