"""A conversation as text: calls as a model would have written them, results as observations.

The carrier for models that can't be sent calls and results by themselves; what text can't hold stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

from ba_tui.core.messages import Block, Message, Opaque, Text, Thinking, ToolOutput, ToolUse
from ba_tui.core.provider import ModelInfo
from ba_tui.providers.text_calls.forms import Form, call_text, final_text
from ba_tui.providers.text_calls.prompting import blank_call
from ba_tui.providers.wire.shapes import fields, text_of

VENDOR = "text_calls"
UNREAD = "unread_call"
NAMELESS = "unreadable_call"
"""What a call is named that names no tool."""
LONGEST_THOUGHT = 500
"""Characters of a thought that a model is told back; what is longer was its server's own kind of reasoning."""


def unread(id: str, problem: str, source: str) -> Opaque:
    """What is kept beside a call that could not be read: why, and what was written."""
    return Opaque({"type": UNREAD, "id": id, "problem": problem, "source": source}, VENDOR)


def unread_calls(message: Message) -> Mapping[str, dict[str, Any]]:
    """The calls of an answer that could not be read, by their ids."""
    kept = (block.raw for block in message.blocks if isinstance(block, Opaque) and block.vendor == VENDOR)
    return {text_of(raw.get("id")): fields(raw) for raw in kept if raw.get("type") == UNREAD}


class Rendering:
    """Renders growing conversations: what was rendered once is the same object again."""

    def __init__(self, form: Form, model: ModelInfo) -> None:
        self._form: Form = form
        self._model = model
        self._known: list[Message] = []
        self._told: list[Message] = []

    def messages(self, messages: Sequence[Message]) -> Sequence[Message]:
        """``messages`` as text."""
        same = next((at for at, each in enumerate(map(is_, self._known, messages)) if not each), None)
        kept = min(len(self._known), len(messages)) if same is None else same
        del self._known[kept:], self._told[kept:]
        for at in range(kept, len(messages)):
            self._known.append(messages[at])
            self._told.append(self._rendered(messages[at], messages[at - 1] if at else None))
        return list(self._told)

    def _rendered(self, message: Message, before: Message | None) -> Message:
        if message.role == "assistant":
            return replace(message, blocks=tuple(self._said(message)))
        if not any(isinstance(block, ToolOutput) for block in message.blocks):
            return message
        return replace(message, blocks=tuple(self._observed(message, before)))

    def _said(self, message: Message) -> Sequence[Block]:
        """An answer with its calls written out, after its words."""
        broken, text = unread_calls(message), list[str]()
        final = not message.calls and message.stop == "end_turn"
        kept: list[Block] = [
            block for block in message.blocks if not isinstance(block, Text | ToolUse | Opaque | Thinking)
        ]
        for block in message.blocks:
            match block:
                case Thinking(signature=str()):
                    kept.append(block)
                case Thinking(thinking=thought) if (
                    self._form == "react" and len(thought) <= LONGEST_THOUGHT and not final
                ):
                    text.append(f"Thought: {thought.strip()}")
                case Text(text=said) if said.strip():
                    text.append(final_text(self._form, said.strip()) if final else said.strip())
                case ToolUse(id=id) if id in broken:
                    text.append(text_of(broken[id].get("source")))
                case ToolUse():
                    text.append(call_text(self._form, block.name, block.input))
                case _:
                    pass
        return [*kept, *([Text("\n".join(text))] if text else [])]

    def _observed(self, message: Message, before: Message | None) -> Sequence[Block]:
        """Results as observations, in front of whatever else was said."""
        asked = before or Message("assistant", ())
        names, broken = {call.id: call.name for call in asked.calls}, unread_calls(asked)
        blocks: list[Block] = []
        outputs = [block for block in message.blocks if isinstance(block, ToolOutput)]
        for number, output in enumerate(outputs, 1):
            label = "Observation" if len(outputs) == 1 else f"Observation {number}, {names.get(output.tool_use_id, '')}"
            content = output.content
            if output.tool_use_id in broken:
                problem = text_of(broken[output.tool_use_id].get("problem"))
                content = f"Error: {problem} No tool was called. A call is written like this:\n{blank_call(self._form)}"
            blocks += [Text(f"{label}: {content}"), *output.attachments]
        return [*blocks, *(block for block in message.blocks if not isinstance(block, ToolOutput))]
