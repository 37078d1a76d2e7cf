"""The content of a model's window by shares, with each item in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from ba_tui.context.instructions import Instructions, instruction_note
from ba_tui.core.messages import (
    NOTE,
    NOTE_END,
    Block,
    Image,
    Message,
    RedactedThinking,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
)
from ba_tui.core.ports.context import ContextItem, ContextPart
from ba_tui.core.ports.contributions import MarkedShare
from ba_tui.core.provider import ModelInfo
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen
from ba_tui.providers.token_calibration import Tokens

FILE = regex(r'<project-instructions source="([^"]*)" id="[0-9a-f]{12}">\n(.*?)\n</project-instructions>', re.DOTALL)
FRAME = 4
"""Tokens that the counter adds for a message."""
LABEL = 60


@frozen
class RequestPrefix:
    """The parts of every request. ``deferred``: tools to be searched for; ``shares``: listed separately by features."""

    system: str
    origin: str
    tools: Sequence[Tool]
    deferred: int
    instructions: Sequence[Instructions]
    shares: Sequence[MarkedShare] = ()


@frozen
class FilledWindow:
    """A block of the conversation under its share, in round ``number`` (0 before the first)."""

    share: str
    block: Block
    label: str
    number: int
    message: int


def reserved(model: ModelInfo, most: int | None) -> int:
    """Return the tokens of the window that are reserved for an answer of at most ``most``."""
    return min(most or model.max_output, model.max_output, model.window // 2)


def context_parts(
    filling: RequestPrefix, transcript: Transcript, tokens: Tokens, model: ModelInfo, reserve: int
) -> Sequence[ContextPart]:
    """Return the parts of the whole window. Blocks on long conversations: call it off the event loop."""
    messages = transcript.messages
    found = list(_found(messages, transcript.rounds, filling.shares))
    results = [_item(each, tokens) for each in found if each.share == "results"]
    system, listed_in = _system(filling, tokens)
    shares: list[ContextPart] = []
    for share in filling.shares:
        items = [*listed_in.get(share.label, ()), *(_item(each, tokens) for each in found if each.share == share.label)]
        shares.append(_part(share.label, items, share.detail(transcript)))
    apart = [_item(each, tokens) for each in found if each.share in {share.label for share in filling.shares}]
    listed_items = [item for items in listed_in.values() for item in items]
    memory = [item for each in found if each.share == "memory" for item in _files(each, tokens)]
    waiting = _waiting(filling.instructions, messages, tokens)
    talk = _talk(messages, [each for each in found if each.share == "talk"], tokens)
    rest = sum(each.tokens for each in (*results, *listed_items, *apart, *memory, system))
    conversation = max(0, tokens.text(filling.system) + tokens.count(messages) - rest)
    listed = f"{len(filling.tools)} listed" + (f", {filling.deferred} found by searching" if filling.deferred else "")
    if model.tools not in {"auto", "native"}:
        listed += f"; the model writes its calls as text ({model.tools})"
    tools = sorted((_tool(tool, tokens) for tool in filling.tools), key=lambda item: -item.tokens)
    return [
        ContextPart("System prompt", system.tokens, filling.origin, items=(system,)),
        ContextPart("Tools", tokens.count_tools(filling.tools), listed, items=tuple(tools)),
        _part("Memory files", (*memory, *waiting), ", ".join(item.label for item in (*memory, *waiting))),
        *shares,
        ContextPart(
            "Conversation", conversation, f"{len(messages)} message{'s' * (len(messages) != 1)}", items=tuple(talk)
        ),
        _part("Tool results", results, f"{len(results)} result{'s' * (len(results) != 1)}" if results else ""),
        ContextPart("Reserved for reply", reserve, f"of a window of {model.window:,}", kept_free=True),
    ]


def _system(filling: RequestPrefix, tokens: Tokens) -> tuple[ContextItem, dict[str, list[ContextItem]]]:
    """Return the system prompt, and by label the shares in its last part."""
    own, listed = filling.system, dict[str, list[ContextItem]]()
    for share in reversed(filling.shares):
        rest = own.removesuffix(share.listed).rstrip() if share.listed else own
        if len(rest) < len(own):
            size = tokens.text(own) - tokens.text(rest)
            listed[share.label] = [
                ContextItem(f"list of {share.label.lower()}", size, "in every request", share.listed)
            ]
        own = rest
    return ContextItem("System prompt", tokens.text(own), filling.origin, own), listed


def _part(label: str, items: Sequence[ContextItem], detail: str) -> ContextPart:
    return ContextPart(label, sum(item.tokens for item in items), detail, items=tuple(items))


def _found(
    messages: Sequence[Message], rounds: Mapping[str, int], shares: Sequence[MarkedShare]
) -> Iterator[FilledWindow]:
    number, calls = 0, dict[str, ToolUse]()
    for place, message in enumerate(messages):
        number = rounds.get(message.id, number)
        for block in message.blocks:
            if isinstance(block, ToolUse):
                calls[block.id] = block
            share, label = _marked(block, message, shares) or _shared(block, message, calls)
            yield FilledWindow(share, block, label, number, place)


def _marked(block: Block, message: Message, shares: Sequence[MarkedShare]) -> tuple[str, str] | None:
    """Return the feature's share to which a result or a note belongs, and its label there."""
    match block:
        case ToolOutput(content=text):
            pass
        case Text(text=text) if message.role == "user" and text.startswith(NOTE) and not FILE.search(text):
            pass
        case _:
            return None
    return next(((share.label, found[1]) for share in shares if (found := share.mark.search(text))), None)


def _shared(block: Block, message: Message, calls: Mapping[str, ToolUse]) -> tuple[str, str]:
    match block:
        case ToolOutput(tool_use_id=id):
            return "results", _called(calls[id]) if id in calls else "a tool"
        case Text(text=text) if message.role == "user" and text.startswith(NOTE):
            if FILE.search(text):
                return "memory", ""
            return "talk", "reminder"
        case _ if message.origin == "compaction":
            return "talk", "earlier rounds, compressed"
        case _:
            return "talk", "answer" if message.role == "assistant" else "you"


def _called(call: ToolUse) -> str:
    """Return the tool and the first words of its arguments."""
    words = next((value for value in call.input.values() if isinstance(value, str) and value.strip()), "")
    return f"{call.name} {_start(words)}".rstrip()


def _start(text: str) -> str:
    return one_line(text[: 4 * LABEL], LABEL)


def _item(each: FilledWindow, tokens: Tokens) -> ContextItem:
    size = max(0, tokens.counter.message(Message("user", (each.block,))) - FRAME)
    return ContextItem(each.label, size, _round(each.number), _readable(each.block), each.share == "results")


def _round(number: int) -> str:
    return f"round {number}" if number else ""


def _talk(messages: Sequence[Message], found: Sequence[FilledWindow], tokens: Tokens) -> Iterator[ContextItem]:
    """Return the texts of messages one by one; notes and answers in one message are separate."""
    grouped: dict[tuple[int, str], list[FilledWindow]] = {}
    for each in found:
        grouped.setdefault((each.message, each.label), []).append(each)
    for (place, label), group in grouped.items():
        blocks = tuple(each.block for each in group)
        size = tokens.counter.message(Message(messages[place].role, blocks))
        text = "\n\n".join(filter(None, map(_readable, blocks)))
        shown = f"{label}: {_start(text.removeprefix(NOTE).removesuffix(NOTE_END))}"
        yield ContextItem(shown, size, _round(group[0].number), text, said=True)


def _files(each: FilledWindow, tokens: Tokens) -> Iterator[ContextItem]:
    text = each.block.text if isinstance(each.block, Text) else ""
    for source, words in FILE.findall(text):
        yield ContextItem(source, tokens.text(words), f"sent in {_round(each.number) or 'an earlier round'}", words)


def _waiting(files: Sequence[Instructions], messages: Sequence[Message], tokens: Tokens) -> list[ContextItem]:
    """Return files that are added to the next prompt, and those that can't be used."""
    told = instruction_note(files, messages)
    items = [
        ContextItem(source, tokens.text(words), "added to the next prompt", words)
        for source, words in FILE.findall(told.text if told else "")
    ]
    return items + [ContextItem(file.shown, 0, file.note) for file in files if file.note and not file.text]


def _tool(tool: Tool, tokens: Tokens) -> ContextItem:
    schema = json.dumps(dict(tool.input_schema), ensure_ascii=False, indent=2, default=str)
    about = _start(tool.description.strip().partition("\n")[0])
    return ContextItem(tool.name, tokens.count_tools([tool]), about, f"{tool.description.strip()}\n\n{schema}")


def _readable(block: Block) -> str:
    match block:
        case Text(text=text) | Thinking(thinking=text) | ToolOutput(content=text):
            return text
        case ToolUse(name=name, input=given):
            return f"{name} {json.dumps(given, ensure_ascii=False, indent=2, default=str)}"
        case Image(media_type=kind):
            return f"[a picture, {kind}]"
        case RedactedThinking():
            return "[thinking that the vendor encrypted]"
        case _:
            return f"[{block.type}]"
