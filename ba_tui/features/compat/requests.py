"""Parses the input lines of the host program: prompts, control requests and replies to questions, as JSON."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias, cast

from ba_tui.core.messages import Block, Document, Image, Message, Text, clean_text
from ba_tui.core.values import frozen

SHOWN = 80
"""Characters of an invalid line in an error message."""
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
DOCUMENTS = ("application/pdf", "text/plain")
PROMPTS = ("systemPrompt", "appendSystemPrompt")
"""Fields for the system prompt in the first ``initialize``; each is a text or a list of texts."""
_UNHEARD = frozenset({"keep_alive", "control_cancel_request", "update_environment_variables"})
"""Types of lines that ba ignores."""


class WrongLine(ValueError):
    """An unusable line. ``broken``: it violates the protocol; otherwise its type is unknown to ba."""

    def __init__(self, why: str, *, broken: bool = True) -> None:
        super().__init__(why)
        self.broken = broken


@frozen
class PromptLine:
    """A prompt. ``content`` and ``uuid`` are unchanged, for the echo of ``--replay-user-messages``."""

    message: Message
    content: Any
    uuid: str = ""


@frozen
class ControlRequest:
    """A control request, such as ``interrupt`` or ``set_model``."""

    id: str
    subtype: str
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


@frozen
class ControlReply:
    """The reply to a question that ba asked. ``error``: why the question was not answered."""

    id: str
    response: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: str = ""


Incoming: TypeAlias = PromptLine | ControlRequest | ControlReply


def read_line(line: bytes) -> Incoming | None:
    """Parse a line; return None for an empty line or an ignored type. Raises WrongLine: the line is invalid, or its
    type is unknown."""
    if not line.strip():
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        why = getattr(error, "msg", "") or "it can't be decoded"
        raise WrongLine(f"not JSON ({why}): {_shown(line)}") from error
    given = _mapping(value, "a line is a JSON object")
    match given.get("type"):
        case "user":
            return _prompt(given)
        case "control_request":
            request = _mapping(given.get("request"), "a control_request has an object “request”")
            id, subtype = given.get("request_id"), request.get("subtype")
            if not isinstance(id, str) or not isinstance(subtype, str):
                raise WrongLine("a control_request has a “request_id” and a “subtype”")
            return ControlRequest(id, subtype, request)
        case "control_response":
            return _reply(_mapping(given.get("response"), "a control_response has an object “response”"))
        case str(type):
            if type in _UNHEARD:
                return None
            raise WrongLine(f"lines of type {_shown(type.encode())} are not known", broken=False)
        case _:
            raise WrongLine("a line has a “type”")


def opening(line: bytes) -> Mapping[str, Any]:
    """Return the fields of an ``initialize`` request; empty for any other line."""
    try:
        read = read_line(line)
    except WrongLine:
        return {}
    return read.fields if isinstance(read, ControlRequest) and read.subtype == "initialize" else {}


def prompt_settings(fields: Mapping[str, Any]) -> Mapping[str, str]:
    """Return ba's settings for the system prompt from the fields of the first ``initialize``."""
    settings = dict(zip(PROMPTS, ("system_prompt", "append_system_prompt"), strict=True))
    told = {settings[name]: fields[name] for name in PROMPTS if fields.get(name) is not None}
    return {
        name: clean_text("\n\n".join(map(str, cast("list[Any]", text))) if isinstance(text, list) else str(text))
        for name, text in told.items()
    }


def _prompt(given: Mapping[str, Any]) -> PromptLine:
    message = _mapping(given.get("message"), "a user line has an object “message”")
    if message.get("role", "user") != "user":
        raise WrongLine("the message of a user line has the role “user”")
    content = message.get("content")
    if isinstance(content, str):
        blocks: tuple[Block, ...] = (Text(clean_text(content)),)
    elif isinstance(content, list):
        blocks = tuple(map(_block, cast("list[Any]", content)))
    else:
        raise WrongLine("the content of a message is a string or a list of blocks")
    id = given.get("uuid")
    return PromptLine(Message("user", blocks), content, id if isinstance(id, str) else "")


def _block(given: Any) -> Block:
    block = _mapping(given, "a block is an object")
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(clean_text(text))
        case {"type": "image", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            if kind not in PICTURES:
                raise WrongLine(f"an image is one of {', '.join(PICTURES)}")
            return Image(kind, _data(data))
        case {"type": "image", "source": {"type": "url", "url": str(url)}} if url.startswith("https://"):
            return Image("", url=url)
        case {"type": "document", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            if kind not in DOCUMENTS:
                raise WrongLine(f"a document is one of {', '.join(DOCUMENTS)}")
            return Document(kind, _data(data), clean_text(str(block.get("title") or "")))
        case _:
            kind = str(block.get("type"))
            raise WrongLine(f"blocks like this one of type {_shown(kind.encode())} can't be part of a prompt")


def _data(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise WrongLine("the data of a picture or document is not base64") from error
    return text


def _reply(response: Mapping[str, Any]) -> ControlReply:
    id = response.get("request_id")
    if not isinstance(id, str):
        raise WrongLine("a control_response has a “request_id”")
    if response.get("subtype") == "error":
        return ControlReply(id, error=str(response.get("error") or "no reason was given"))
    return ControlReply(id, _mapping(response.get("response") or {}, "the “response” to a question is an object"))


def _mapping(value: Any, wanted: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise WrongLine(wanted)
    return cast("dict[str, Any]", value)


def _shown(data: bytes) -> str:
    text = data.decode("utf-8", "replace").strip()
    return f"“{text[:SHOWN]}…”" if len(text) > SHOWN else f"“{text}”"
