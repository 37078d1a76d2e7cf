"""What must hold for messages before a model is sent them. Nothing is repaired here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ba_tui.core.messages import Block, Message, RedactedThinking, Text, Thinking, ToolOutput, ToolUse


def faults(messages: Sequence[Message], source: Sequence[Message] | None = None) -> list[str]:
    """Every rule that is broken, with the place. ``source``: where the thinking must come from, byte for byte."""
    return list(_faults(messages, source))


def _faults(messages: Sequence[Message], source: Sequence[Message] | None) -> Iterator[str]:
    if not messages:
        yield "there is no message"
        return
    if messages[0].role != "user":
        yield "message 0 is not from the user"
    for place, message in enumerate(messages):
        before = messages[place - 1] if place else None
        if before and before.role == message.role:
            yield f"messages {place - 1} and {place} are both from the {message.role}"
        yield from _pairing(place, message, before)
        if not message.blocks:
            yield f"message {place} is empty"
        for index, block in enumerate(message.blocks):
            if rule := _misplaced(message, block):
                yield f"message {place}, block {index}: {rule}"
    if messages[-1].calls:
        yield f"message {len(messages) - 1} has calls without results"
    if source is not None:
        thought = set(_thinking(source))
        if any(block not in thought for block in _thinking(messages)):
            yield "thinking was changed"


def _pairing(place: int, message: Message, before: Message | None) -> Iterator[str]:
    asked = Counter(call.id for call in before.calls) if before else Counter[str]()
    given = Counter(block.tool_use_id for block in message.blocks if isinstance(block, ToolOutput))
    if asked != given:
        yield f"message {place} does not answer exactly the calls before it"


def _misplaced(message: Message, block: Block) -> str:
    match block:
        case Text(text=text) if not text.strip():
            return "the text is empty"
        case ToolUse() | Thinking() | RedactedThinking() if message.role == "user":
            return f"{block.type} from the user"
        case ToolOutput() if message.role == "assistant":
            return "a tool result from the assistant"
        case _:
            return ""


def _thinking(messages: Sequence[Message]) -> Iterator[tuple[str, str | None]]:
    for message in messages:
        for block in message.blocks:
            match block:
                case Thinking(thinking=text, signature=signature):
                    yield text, signature
                case RedactedThinking(data=data):
                    yield data, None
                case _:
                    pass
