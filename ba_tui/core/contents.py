"""What messages hold: their pictures and documents, how much it is, and how their last command ended."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ba_tui.core.messages import NOTE, NOTE_END, Block, Document, Image, Message, Text, Thinking, ToolOutput, clean_text
from ba_tui.core.text.markup import REMINDER, neutralized
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line

_PARTS = regex(r"^\[((?:exit code \d+; )?`?[^\]\n]{1,80} exited \d[^\]\n]*)\]$", re.MULTILINE)
"""How a result says which parts of a command failed."""


def media_of(message: Message) -> list[Image | Document]:
    """Return the pictures and documents of a message, in order; those of tool results included."""
    found: list[Image | Document] = []
    for block in message.blocks:
        if isinstance(block, Image | Document):
            found.append(block)
        elif isinstance(block, ToolOutput):
            found += block.attachments
    return found


def media_key(media: Image | Document | str) -> str:
    """Return a name for the content of a picture or document (or for its base64 data or URL): its size and SHA-256."""
    content = media if isinstance(media, str) else (isinstance(media, Image) and media.url) or media.data
    data = content.encode("utf-8", "replace")
    return f"{len(data)}-{hashlib.sha256(data).hexdigest()}"


def without_media(message: Message, keys: Collection[str], why: str) -> Message:
    """Return ``message`` with a note in place of each picture or document whose ``media_key`` is among ``keys``."""
    sizes = {key.partition("-")[0] for key in keys}

    def leaves(media: Image | Document) -> bool:
        content = (isinstance(media, Image) and media.url) or media.data
        # Hashing is slow; most media differ in size already. Base64 and URLs are ASCII nearly always.
        return (not content.isascii() or str(len(content)) in sizes) and media_key(media) in keys

    def changed(block: Block) -> Block:
        if isinstance(block, Image | Document):
            return Text(f"{NOTE}\n{_left_out(block, why)}\n{NOTE_END}") if leaves(block) else block
        if not isinstance(block, ToolOutput) or not (gone := [each for each in block.attachments if leaves(each)]):
            return block
        content = "\n".join([block.content, *(_left_out(each, why) for each in gone)])
        return replace(
            block, content=content, attachments=tuple(each for each in block.attachments if each not in gone)
        )

    blocks = tuple(changed(block) for block in message.blocks)
    same = all(old is new for old, new in zip(message.blocks, blocks, strict=True))
    return message if same else replace(message, blocks=blocks)


def _left_out(media: Image | Document, why: str) -> str:
    """The note that the model reads in place of ``media``."""
    title = media.title if isinstance(media, Document) else ""
    what = f"document {neutralized(clean_text(title))}".rstrip() if isinstance(media, Document) else "picture"
    return f"[A {what} was here. ba left it out: {neutralized(clean_text(why), {REMINDER}).rstrip('.')}.]"


def broken_command(messages: Sequence[Message]) -> str:
    """The last command that calls of ``messages`` ran, and how it ended, where it failed; else nothing."""
    for message in reversed(messages):
        ran = [block for block in message.blocks if isinstance(block, ToolOutput) and block.exit_status is not None]
        if not ran:
            continue
        failed = next((each for each in reversed(ran) if each.broke), None)
        if failed is None:
            return ""
        call = next((use for each in messages for use in each.calls if use.id == failed.tool_use_id), None)
        words = next((value for value in call.input.values() if isinstance(value, str)), "") if call else ""
        parts = _PARTS.findall(failed.content[-2_000:])
        return f"`{one_line(words, 100)}` ({one_line(parts[-1], 160) if parts else f'exit {failed.exit_status}'})"
    return ""


def weighty(messages: Iterable[Message], most: int) -> bool:
    """Whether going through ``messages`` is more than work for about ``most`` characters. Stops once it is known."""
    size = 0
    for message in messages:
        size += 100
        for block in message.blocks:
            match block:
                case Text(text=text) | ToolOutput(content=text) | Thinking(thinking=text):
                    size += len(text)
                case Image(data=data) | Document(data=data):
                    size += len(data)
                case _:
                    size += 100
        if size > most:
            return True
    return False
