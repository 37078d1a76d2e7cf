"""An answer in the pieces in which the Messages API streams it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

from ba_tui.core.messages import Usage

Line = dict[str, Any]


class Pieces:
    """One answer. Deltas of text and thinking come as they arrive, everything else when the answer is complete."""

    def __init__(self, model: str) -> None:
        self.id = f"msg_{uuid.uuid4().hex}"
        self._model = model
        self._begun: list[str] = []
        """The types of the blocks that have begun."""
        self._told = 0
        """Blocks of the complete answer that were told."""
        self._open = False

    def piece(self, block: Line, delta: Line) -> Iterator[Line]:
        """A delta; an empty ``block`` begins before it where the last one is of another type."""
        if not self._open or self._begun[-1] != block["type"]:
            yield from self._begin(block)
        yield self._delta(delta)

    def brought(self, block: Line) -> Iterator[Line]:
        """What of a block of the complete answer has not been streamed yet."""
        index, self._told = self._told, self._told + 1
        if index < len(self._begun) and self._begun[index] == block["type"]:
            return
        yield from self._begin(_empty(block))
        yield from map(self._delta, _deltas(block))

    def closed(self) -> Iterator[Line]:
        """The end of the open block, once all blocks that have begun are told."""
        if self._open and self._told >= len(self._begun):
            yield self._stop()

    def ended(self, stop: str | None, usage: Usage) -> Iterator[Line]:
        """The end of the answer."""
        if not self._begun:
            yield self._start()
        if self._open:
            yield self._stop()
        delta = {"stop_reason": stop, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage.output}}
        yield {"type": "message_stop"}

    def _begin(self, block: Line) -> Iterator[Line]:
        if not self._begun:
            yield self._start()
        if self._open:
            yield self._stop()
        self._begun.append(block["type"])
        self._open = True
        yield {"type": "content_block_start", "index": len(self._begun) - 1, "content_block": block}

    def _start(self) -> Line:
        message = envelope(self.id, self._model, Usage())
        del message["context_management"]
        return {"type": "message_start", "message": message}

    def _delta(self, delta: Line) -> Line:
        return {"type": "content_block_delta", "index": len(self._begun) - 1, "delta": delta}

    def _stop(self) -> Line:
        self._open = False
        return {"type": "content_block_stop", "index": len(self._begun) - 1}


def envelope(id: str, model: str, usage: Usage, *content: Line) -> Line:
    """A message as the Messages API has it."""
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(content),
        "stop_reason": None,
        "stop_sequence": None,
        "usage": tokens(usage),
        "context_management": None,
    }


def tokens(usage: Usage) -> Line:
    """Return tokens by the names of the Messages API."""
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }


def _empty(block: Line) -> Line:
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "tool_use":
            return {**block, "input": {}}
        case _:
            return block


def _deltas(block: Line) -> Iterator[Line]:
    match block["type"]:
        case "text":
            yield {"type": "text_delta", "text": block["text"]}
        case "thinking":
            yield {"type": "thinking_delta", "thinking": block["thinking"]}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"], default=str)}
        case _:
            pass
