"""A step in the two wire formats, as the vendors send them: events of a stream, or one JSON object.

Written from the vendors' documentation and not from our parsers, which are tested against it.
"""

from __future__ import annotations

import hashlib
import json
import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias
from zlib import crc32

from ba_tui.core.messages import Usage
from ba_tui.providers.scripted import Step

Format: TypeAlias = Literal["anthropic", "openai"]
FRAMED = "/invoke-with-response-stream"
"""How the addresses end where answers come in frames."""
PIECE = 16
USAGE = Usage(120, 34, 1000, 56)
CODES: Mapping[int, tuple[str, str]] = {
    400: ("invalid_request_error", "The request is not valid."),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low."),
    403: ("permission_error", "Not allowed."),
    404: ("not_found_error", "model: not found"),
    413: ("request_too_large", "Request exceeds the maximum size."),
    429: ("rate_limit_error", "Too many requests."),
    500: ("api_error", "Internal server error"),
    503: ("api_error", "Service unavailable"),
    529: ("overloaded_error", "Overloaded"),
}
OPENAI_CODES: Mapping[int, tuple[str, str]] = {
    401: ("invalid_api_key", "Incorrect API key provided: sk-abc***********wxyz."),
    404: ("model_not_found", "The model does not exist or you do not have access to it."),
    429: ("rate_limit_exceeded", "Rate limit reached."),
}


def signature(thinking: str) -> str:
    return "sig" + hashlib.sha256(thinking.encode()).hexdigest()


def spoken_at(path: str) -> Format | None:
    """What is spoken at ``path``, on clouds too; None where nothing is."""
    if path == "/v1/messages" or path.endswith((FRAMED, ":streamRawPredict")):
        return "anthropic"
    return "openai" if path in {"/v1/chat/completions", "/openai/v1/chat/completions"} else None


def framed(event: bytes) -> bytes:
    """A server-sent event as a frame of Bedrock."""
    data = event.partition(b"data: ")[2].strip()
    return frame({"event-type": "chunk", "message-type": "event"}, _json({"bytes": b64encode(data).decode()}).encode())


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """A frame of AWS's event streams: lengths, checksum, headers, payload, checksum."""
    head = b""
    for name, value in {**headers, "content-type": "application/json"}.items():
        name, value = f":{name}".encode(), value.encode()
        head += struct.pack("!B", len(name)) + name + struct.pack("!BH", 7, len(value)) + value
    lengths = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    message = lengths + struct.pack("!I", crc32(lengths)) + head + payload
    return message + struct.pack("!I", crc32(message))


def stream(format: Format, step: Step, place: str) -> list[bytes]:
    """The events, each with its blank line; the last but one or two close the answer."""
    if format == "anthropic":
        return [f"event: {data['type']}\ndata: {_json(data)}\n\n".encode() for data in _messages_events(step, place)]
    events = [f"data: {_json(data)}\n\n".encode() for data in _completion_chunks(step, place)]
    return [*events, b"data: [DONE]\n\n"]


def closing(format: Format) -> int:
    """How many events at the end close an answer: all that a silent cut leaves out."""
    return 2 if format == "anthropic" else 3


def whole(format: Format, step: Step, place: str) -> bytes:
    body = _messages_body(step, place) if format == "anthropic" else _completion_body(step, place)
    return _json(body).encode()


def failure(format: Format, status: int, message: str, code: str) -> bytes:
    kind, text = CODES.get(status, CODES[500])
    if format == "openai":
        kind, text = OPENAI_CODES.get(status, (kind, text))
        return _json({"error": {"message": message or text, "type": code or kind, "code": code or kind}}).encode()
    error = {"type": code or kind, "message": message or text}
    return _json({"type": "error", "error": error, "request_id": "req_loopback"}).encode()


def noise(format: Format) -> list[bytes]:
    if format == "openai":
        return [b": OPENROUTER PROCESSING\n\n", b'data: {"object":"queue.status","position":2}\n\n', b"data: 7\n\n"]
    return [
        b'event: ping\ndata: {"type": "ping"}\n\n',
        b'event: weather\ndata: {"type": "weather", "sky": "blue"}\n\n',
        b": a comment\n\n",
        b"event: list\ndata: []\n\n",
    ]


def _messages_events(step: Step, place: str) -> Iterator[dict[str, Any]]:
    body = _messages_body(step, place)
    used = body["usage"]
    start = {**body, "content": [], "stop_reason": None, "usage": {**used, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(body["content"]):
        yield from _block_events(index, block)
    ending = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": used["output_tokens"]}}
    yield {"type": "message_stop"}


def _block_events(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
    yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty[block["type"]]}}
    match block:
        case {"type": "text", "text": text}:
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(text)]
        case {"type": "thinking", "thinking": text}:
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(text)]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case _:
            given = _json(block["input"]) if block["input"] else ""
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *_pieces(given))]
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _messages_body(step: Step, place: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if step.think:
        content.append({"type": "thinking", "thinking": step.think, "signature": signature(step.think)})
    if step.say:
        content.append({"type": "text", "text": step.say})
    for number, call in enumerate(step.calls):
        id = call.id or f"toolu_{place}_{number}"
        content.append({"type": "tool_use", "id": id, "name": call.tool, "input": dict(call.args)})
    used = step.usage or USAGE
    stop = step.stop or ("tool_use" if step.calls else "end_turn")
    return {
        "id": f"msg_{place}",
        "type": "message",
        "role": "assistant",
        "model": "loopback",
        "content": content,
        "stop_reason": "model_context_window_exceeded" if stop == "context_window" else stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": used.input,
            "output_tokens": used.output,
            "cache_read_input_tokens": used.cache_read,
            "cache_creation_input_tokens": used.cache_write,
        },
    }


def _completion_chunks(step: Step, place: str) -> Iterator[dict[str, Any]]:
    body = _completion_body(step, place)
    message = body["choices"][0]["message"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**body, "object": "chat.completion.chunk", "choices": [choice], "usage": None}

    yield chunk({"role": "assistant", "content": None})
    for piece in _pieces(step.think):
        yield chunk({"reasoning_content": piece})
    for piece in _pieces(step.say):
        yield chunk({"content": piece})
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        head = {"name": function["name"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": head}]})
        for piece in _pieces(function["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, body["choices"][0]["finish_reason"])
    yield {**body, "object": "chat.completion.chunk", "choices": [], "usage": body["usage"]}


def _completion_body(step: Step, place: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": step.say or None}
    if step.think:
        message["reasoning_content"] = step.think
    if step.calls:
        message["tool_calls"] = [
            {
                "id": call.id or f"call_{place}_{number}",
                "type": "function",
                "function": {"name": call.tool, "arguments": _json(dict(call.args))},
            }
            for number, call in enumerate(step.calls)
        ]
    reasons = {"max_tokens": "length", "refusal": "content_filter", "tool_use": "tool_calls"}
    stop = step.stop or ("tool_use" if step.calls else "end_turn")
    used = step.usage or USAGE
    prompt = used.prompt
    return {
        "id": f"chatcmpl-{place}",
        "object": "chat.completion",
        "created": 1,
        "model": "loopback",
        "choices": [{"index": 0, "message": message, "finish_reason": reasons.get(stop, "stop")}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": used.output,
            "total_tokens": prompt + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cache_read, "cache_write_tokens": used.cache_write},
        },
    }


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
