"""The Chat Completions format as its many servers speak it: blocks to wire and back, an answer from its chunks.

Pure. How it travels is openai_compat.py's business.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ba_tui.core.errors import BadRequest
from ba_tui.core.events import TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Stop,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
    Usage,
    clean_json,
    clean_text,
    new_id,
)
from ba_tui.core.provider import Chunk, ModelInfo
from ba_tui.core.tool import Tool
from ba_tui.providers.faults import Service, cut, from_event
from ba_tui.providers.shapes import arguments, call_id, clean, count, encode, fields, items, words

log = logging.getLogger(__name__)
VENDOR = "openai"
ID_LENGTH = 40
UNSEEN = "[A picture was here; this model can't see pictures.]"
EXTRA = "tool_call_extra"
ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning", "content"]
"""Where a server puts the model's reasoning, and wants it back; ``content`` stands for parts of a list."""
STOPS: Mapping[str, Stop] = {
    "stop": "end_turn",
    "eos": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "context_window",
    "content_filter": "refusal",
    "refusal": "refusal",
}


def encode_message(message: Message, model: ModelInfo, reasoning: ReasoningField) -> bytes:
    """As it stands in ``messages``: several objects joined by commas where calls are answered; b"" when empty."""
    if message.role == "assistant":
        said = _assistant_to_wire(message, reasoning if message.model == model.id else None)
        return encode(said) if said else b""
    return b",".join(encode(wire) for wire in _user_to_wire(message, model))


def _assistant_to_wire(message: Message, reasoning: ReasoningField | None) -> dict[str, Any] | None:
    text = message.text if message.text.strip() else ""
    thought = "".join(block.thinking for block in message.blocks if isinstance(block, Thinking)) if reasoning else ""
    # What a server added is for that server alone: another would refuse a field that it does not know.
    own = [block.raw for block in message.blocks if isinstance(block, Opaque) and block.vendor == VENDOR]
    opaque = own if reasoning else []
    extras = {words(raw.get("id")): fields(raw.get("extra")) for raw in opaque if raw.get("type") == EXTRA}
    calls = [
        {
            "id": call_id(call.id, ID_LENGTH),
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.input, ensure_ascii=False)},
            **extras.get(call.id, {}),
        }
        for call in message.calls
    ]
    if not text and not calls:
        return None
    wire: dict[str, Any] = {"role": "assistant", "content": text or None}
    if thought and reasoning == "content":
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}]
        wire["content"] = [*parts, {"type": "text", "text": text}] if text else parts
    elif thought and reasoning:
        wire[reasoning] = thought
    for raw in opaque:
        wire |= {key: value for key, value in raw.items() if raw.get("type") == "message_extra" and key != "type"}
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
        # As one string: many servers of one's own take no list of parts.
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
    """What was cached is taken out of ``input``; reasoning that a server counts apart is part of ``output``."""
    details = fields(raw.get("prompt_tokens_details"))
    prompt, output = count(raw.get("prompt_tokens")), count(raw.get("completion_tokens"))
    read = min(prompt, count(details.get("cached_tokens")) or count(raw.get("prompt_cache_hit_tokens")))
    written = min(prompt - read, count(details.get("cache_write_tokens")))
    output = max(output, count(raw.get("total_tokens")) - prompt)
    return Usage(prompt - read - written, output, read, written)


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    text: list[str] = field(default_factory=list[str])
    given: dict[str, Any] | None = None
    size: int = 0
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


class Assembly:
    """One answer, from the chunks of a stream or from one whole response."""

    def __init__(self, model: ModelInfo, service: Service) -> None:
        self.done = False
        self.reasoning: ReasoningField | None = None
        self._model = model
        self._service = service
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: dict[object, _Call] = {}
        self._open: _Call | None = None
        self._extra: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._stop = ""
        self._refused = False

    def feed(self, name: str, data: dict[str, Any]) -> Iterable[Chunk]:
        """The deltas of one chunk."""
        if data.get("error") or name == "error":
            raise from_event(self._service, data)
        self._usage = fields(data.get("usage")) or fields(fields(data.get("x_groq")).get("usage")) or self._usage
        if "choices" not in data:
            log.info("ignored event %r", name or data.get("object") or data.get("type"))
        for choice in map(fields, items(data.get("choices"))):
            if count(choice.get("index")):
                continue
            if fields(choice.get("error")):
                raise from_event(self._service, choice)
            yield from self._said(fields(choice.get("delta")) or fields(choice.get("message")))
            self._stop = words(choice.get("finish_reason")) or self._stop

    def close(self) -> None:
        """``[DONE]`` was seen."""
        self.done = True

    def finish(self) -> Message:
        """The answer. Raises ConnectionLost when it is not complete."""
        if not self._stop and not (self.done and self._complete()):
            raise cut(self._service)
        if self._stop == "error":
            raise from_event(self._service, {"message": "The server gave up on this answer."})
        blocks: list[Block] = []
        if self._thinking:
            blocks.append(Thinking(clean("".join(self._thinking))))
        if self._extra:
            blocks.append(Opaque(clean_json({"type": "message_extra", **self._extra}), VENDOR))
        if text := clean("".join(self._text)):
            blocks.append(Text(text))
        blocks += self._uses()
        stop = STOPS.get(self._stop, "end_turn")
        if self._calls and stop == "end_turn":
            stop = "tool_use"
        elif not self._calls and stop == "tool_use":
            stop = "end_turn"
        if self._refused and not self._calls:
            stop = "refusal"
        usage = usage_from_wire(self._usage) if self._usage else None
        return Message("assistant", tuple(blocks), usage=usage, stop=stop, model=self._model.id, origin="assistant")

    def _said(self, delta: dict[str, Any]) -> Iterable[Chunk]:
        yield from self._think(delta)
        content = delta.get("content")
        for part in [content] if isinstance(content, str) else items(content):
            yield from self._part(part)
        if refusal := words(delta.get("refusal")):
            self._refused = True
            yield self._speak(refusal)
        for raw in items(delta.get("tool_calls")):
            yield self._call(fields(raw))
        if old := fields(delta.get("function_call")):
            yield self._call({"index": 0, "function": old})

    def _think(self, delta: dict[str, Any]) -> Iterable[Chunk]:
        for key in ("reasoning_content", "reasoning"):
            if thought := words(delta.get(key)):
                self.reasoning = key
                self._thinking.append(thought)
                yield ThinkingDelta(clean_text(thought))
                break
        if details := items(delta.get("reasoning_details")):
            self._extra["reasoning_details"] = items(self._extra.get("reasoning_details")) + details

    def _part(self, part: object) -> Iterable[Chunk]:
        raw = fields(part)
        text = words(part) or words(raw.get("text"))
        if raw.get("type") == "thinking":
            inner = raw.get("thinking")
            thought = words(inner) or "".join(words(fields(piece).get("text")) for piece in items(inner))
            if thought:
                self.reasoning = "content"
                self._thinking.append(thought)
                yield ThinkingDelta(clean_text(thought))
        elif text:
            yield self._speak(text)

    def _speak(self, text: str) -> TextDelta:
        self._text.append(text)
        return TextDelta(clean_text(text))

    def _call(self, raw: dict[str, Any]) -> ToolInputDelta:
        """A piece of a call. Which one: by its index, else by its id, else the one that is open."""
        function = fields(raw.get("function"))
        id, name = clean_text(words(raw.get("id"))), clean_text(words(function.get("name")))
        call = self._find(raw.get("index"), id, name)
        # The name comes whole, and some servers repeat it with every piece.
        call.name = call.name or name
        call.extra |= {key: value for key, value in raw.items() if key not in {"index", "id", "type", "function"}}
        given = function.get("arguments")
        if isinstance(given, str):
            call.text.append(given)
            call.size += len(given)
        elif isinstance(given, dict):
            call.given = {**(call.given or {}), **fields(function["arguments"])}
            call.size = len(json.dumps(call.given))
        return ToolInputDelta(call.id, call.name, call.size)

    def _find(self, index: object, id: str, name: str) -> _Call:
        found = self._open
        if isinstance(index, int):
            found = self._calls.get(index)
            if found and id and found.id != id and found.name and name:
                # One index for several calls, told apart by their ids.
                found, index = self._calls.get(id), id
        elif id:
            found, index = next((call for call in self._calls.values() if call.id == id), None), id
        elif name and found and found.name and (found.given is not None or found.text):
            found, index = None, new_id()
        if found is None:
            taken = {call.id for call in self._calls.values()}
            # A server that gives no id, or one id twice, leaves it to us: answers are paired by it.
            found = _Call(id if id and id not in taken else f"call_{new_id()[:24]}")
            self._calls[index if index is not None else found.id] = found
        self._open = found
        return found

    def _uses(self) -> Iterable[Block]:
        last = next(reversed(self._calls.values()), None)
        for call in self._calls.values():
            text = "".join(call.text)
            given, malformed = arguments(call.given if call.given is not None else text)
            if call is last and self._stop == "length" and not text.strip() and not call.given:
                malformed = ""
            yield ToolUse(call.id, call.name, clean_json(given), None if malformed is None else clean_text(malformed))
            if call.extra:
                yield Opaque(clean_json({"type": EXTRA, "id": call.id, "extra": call.extra}), VENDOR)

    def _complete(self) -> bool:
        """An end mark without a reason is believed when nothing in the answer hangs in the air."""
        whole = all(arguments("".join(call.text))[1] is None for call in self._calls.values())
        return whole and bool(self._text or self._calls)


def message_from_wire(body: Mapping[str, Any], model: ModelInfo, service: Service) -> Message:
    """A whole answer that came in one piece.

    Raises:
        ProviderError: it is an error, or no answer.
    """
    if not items(body.get("choices")) and not body.get("error"):
        hint = "Check base_url: is it a Chat Completions API?"
        raise BadRequest("The model server's answer holds no choices.", hint)
    assembly = Assembly(model, service)
    for _ in assembly.feed("", dict(body)):
        pass
    assembly.close()
    return assembly.finish()
