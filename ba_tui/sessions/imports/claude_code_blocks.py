"""One record of Claude Code's transcripts, whatever shape a version gave it: its blocks, its results, what they show.

Pure. The conversation that the records make up is claude_code.py's.
"""

from __future__ import annotations

import base64
import json
from typing import Any, cast

from ba_tui.core.messages import (
    Block,
    Document,
    Image,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolUse,
    Usage,
)
from ba_tui.core.results import CommandText, Diff, Display
from ba_tui.sessions.imports.values import text_of
from ba_tui.sessions.migrations import Record
from ba_tui.sessions.records import number

VENDOR = "anthropic"
_WORDS = ("type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "cwd", "timestamp", "agentId")
_WORDS_WITHIN = ("id", "model", "role", "stop_reason")
_OURS = {"text", "thinking", "redacted_thinking", "tool_use", "tool_result"}


def sound(record: Record) -> Record:
    """``record`` with the fields that are relied on of the right kind, or absent.

    What the person typed while the assistant was at work is an attachment in newer versions; here it is a message.
    """
    found = _with_words(record, _WORDS)
    extra: Any = found.get("attachment")
    queued = cast("Record", extra) if isinstance(extra, dict) else {}
    if found.get("type") == "attachment" and queued.get("type") == "queued_command":
        aside = queued.get("commandMode") not in (None, "prompt")
        found |= {"type": "user", "message": {"content": queued.get("prompt")}, "isQueued": True, "isMeta": aside}
    message = found.pop("message", None)
    if isinstance(message, dict):
        found["message"] = _with_words(cast("Record", message), _WORDS_WITHIN)
    return found


def _with_words(record: Record, names: tuple[str, ...]) -> Record:
    return {key: value for key, value in record.items() if key not in names or isinstance(value, str)}


def content_blocks(record: Record) -> list[Record]:
    """The raw blocks of a message."""
    return _listed(cast("Record", record["message"]).get("content"))


def _listed(content: Any) -> list[Record]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    items = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [cast("Record", block) for block in items if isinstance(block, dict)]


def block_of(raw: Record) -> Block | None:
    """None for what is damaged: sent back, it would make every later request fail."""
    match raw:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "thinking", "thinking": str(thinking)}:
            return Thinking(thinking, text_of(raw, "signature") or None)
        case {"type": "redacted_thinking", "data": str(data)}:
            return RedactedThinking(data)
        case {"type": "tool_use", "id": str(id), "name": str(name)} if id and name:
            given = raw.get("input")
            if isinstance(given, dict):
                return ToolUse(id, name, cast("dict[str, Any]", given))
            return ToolUse(id, name, {}, json.dumps(given))
        case {"type": "image", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return Image(kind, data)
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return Image("", url=url)
        case {"type": "document", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return Document(kind, data, text_of(raw, "title"))
        case {"type": "document", "source": {"type": "text", "data": str(words)}}:
            data = base64.b64encode(words.encode("utf-8", "replace")).decode("ascii")
            return Document("text/plain", data, text_of(raw, "title"))
        case {"type": str(kind)} if kind and kind not in _OURS:
            return Opaque(dict(raw), VENDOR)
        case _:
            return None


def worth(block: Block | None) -> bool:
    """False for what no request may hold: empty words, thinking that nobody signed."""
    return block is not None and not (
        (isinstance(block, Text) and not block.text.strip()) or (isinstance(block, Thinking) and not block.signature)
    )


def result_of(content: Any) -> tuple[str, tuple[Image | Document, ...]]:
    """The words of a tool's result, and what stands beside them. Parts of kinds unknown here are kept as JSON."""
    texts: list[str] = []
    beside: list[Image | Document] = []
    for raw in _listed(content):
        block = block_of(raw)
        if isinstance(block, Image | Document):
            beside.append(block)
        else:
            texts.append(block.text if isinstance(block, Text) else json.dumps(raw, ensure_ascii=False))
    return "\n".join(texts), tuple(beside)


def display_of(call: ToolUse, result: Any) -> Display | None:
    match result:
        case {"filePath": str(path), "originalFile": str(before), "oldString": str(old), "newString": str(new)}:
            return Diff(path, before, _replaced(before, old, new, result.get("replaceAll")))
        case {"filePath": str(path), "originalFileContents": str(before)}:
            after = before
            for edit in _listed(result.get("edits")):
                old, new = text_of(edit, "old_string"), text_of(edit, "new_string")
                after = _replaced(after, old, new, edit.get("replace_all"))
            return Diff(path, before, after)
        case {"filePath": str(path), "content": str(after), "type": "create"}:
            return Diff(path, None, after)
        case {"filePath": str(path), "content": str(after), "originalFile": str(before)}:
            return Diff(path, before, after)
        case {"stdout": str(output), "stderr": str(errors)}:
            return CommandText(str(call.input.get("command") or ""), output="\n".join(filter(None, (output, errors))))
        case _:
            return None


def _replaced(before: str, old: str, new: str, everywhere: Any) -> str:
    return before.replace(old, new, -1 if everywhere else 1) if old else new


def usage_of(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(*(max(0, int(number(cast("Record", usage).get(name)))) for name in names))
