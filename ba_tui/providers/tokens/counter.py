"""Tokens of texts, messages, conversations and tool schemas, in whatever way texts are measured.

What was counted once is kept by its content, so that a growing conversation costs what was added to it.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import is_
from typing import Any, cast

from ba_tui.core.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
)
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.providers.tokens.config import Family
from ba_tui.providers.tokens.estimate import estimate_tokens

Pixels = Callable[[bytes], tuple[int, int] | None]
"""Width and height of a picture from its first bytes; None when they can't be read."""
HEADER = 400_000
"""Base64 characters in which a picture says its size."""
PAGE = 2_000
"""Tokens of a PDF's page: its words, and for some vendors a picture of it."""
PAGE_BYTES = 400_000
"""A PDF of this size has at least a page, however it is packed."""
_PAGES = regex(rb"/Type\s*/Page(?![A-Za-z])")
_CLAUDE_SIDE, _CLAUDE_PIXELS, _CLAUDE_MOST = 1_568, 750, 1_600
_GPT_SIDE, _GPT_SHORT, _GPT_TILE = 2_048, 768, 512
_GEMINI_SMALL, _GEMINI_TILE, _GEMINI_TOKENS = 384, 768, 258


def unmeasured(data: bytes) -> None:
    """For where nobody reads pictures."""


def picture_tokens(image: Image, family: Family, pixels: Pixels) -> int:
    """What ``family`` takes for a picture of that size; where the size is unknown, for a large one."""
    size = pixels(_decoded(image.data[:HEADER])) if image.data else None
    width, height = size or (1_600, 1_200)
    if family is Family.GPT:
        return _gpt(width, height)
    if family is Family.GEMINI:
        small = max(width, height) <= _GEMINI_SMALL
        tiles = 1 if small else math.ceil(width / _GEMINI_TILE) * math.ceil(height / _GEMINI_TILE)
        return tiles * _GEMINI_TOKENS
    shrink = min(1.0, _CLAUDE_SIDE / max(width, height))
    return min(_CLAUDE_MOST, max(1, round(width * shrink * height * shrink / _CLAUDE_PIXELS)))


def _gpt(width: int, height: int) -> int:
    shrink = min(1.0, _GPT_SIDE / max(width, height))
    width, height = round(width * shrink), round(height * shrink)
    shrink = min(1.0, _GPT_SHORT / min(width, height)) if min(width, height) else 1.0
    tiles = math.ceil(width * shrink / _GPT_TILE) * math.ceil(height * shrink / _GPT_TILE)
    return 85 + 170 * max(1, tiles)


def document_text(document: Document) -> str | None:
    """The words of a plain text document; None when it is of another kind."""
    if not document.media_type.startswith("text/"):
        return None
    return _decoded(document.data).decode("utf-8", "replace")


def document_tokens(document: Document) -> int:
    """By its pages; where they are packed away, by its size."""
    data = _decoded(document.data)
    return PAGE * max(1, len(_PAGES.findall(data)), len(data) // PAGE_BYTES)


def _decoded(data: str) -> bytes:
    whole = data[: len(data) - len(data) % 4]
    try:
        return base64.b64decode(whole)
    except (binascii.Error, ValueError):
        return b""


OPENING, MESSAGE, CALL, OUTPUT, TOOL = 3, 4, 12, 8, 12
"""Tokens that stand around the words: of a conversation, a message, a call, its output, a tool."""
CACHED = 20_000
NEWEST = 4


class Counts:
    """Tokens by content: the hash of a text and its length. When full, the older half goes."""

    def __init__(self, limit: int = CACHED) -> None:
        self._limit = limit
        self._known: dict[tuple[int, int], int] = {}

    def of(self, text: str, count: Callable[[str], int]) -> int:
        if not text:
            return 0
        key = (hash(text), len(text))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= self._limit:
                # A new one in a single step: another thread may be reading.
                self._known = dict(list(self._known.items())[self._limit // 2 :])
            found = self._known[key] = count(text)
        return found

    def __len__(self) -> int:
        return len(self._known)


@dataclass
class _Prefix:
    """The messages of the last conversation that was counted, and what they came to up to each."""

    messages: list[Message] = field(default_factory=list[Message])
    words: list[int] = field(default_factory=lambda: [0])
    media: list[int] = field(default_factory=lambda: [0])

    def known(self, messages: Sequence[Message]) -> int:
        """How many of ``messages`` are counted. Nearly always all but the newest, which one comparison tells."""
        if list(islice(messages, len(self.messages))) == self.messages:
            return len(self.messages)
        for index, identical in enumerate(map(is_, self.messages, messages)):
            if not identical:
                return index
        return min(len(self.messages), len(messages))


def _one() -> float:
    return 1.0


@frozen
class Scale:
    """``factor`` is what words are multiplied with: a margin, and what real usage has shown. ``pixels`` reads the
    size of a picture, which ``family`` puts a price on."""

    factor: Callable[[], float] = _one
    family: Family = Family.CUSTOM
    pixels: Pixels = unmeasured


class DynamicTokenCounter:
    """``measure`` counts a text; the cheap estimate unless an encoding is given. Any thread may ask."""

    def __init__(self, measure: Callable[[str], int] = estimate_tokens, scale: Scale | None = None) -> None:
        self._measure = measure
        self._scale = scale or Scale()
        self._counts = Counts()
        self._media = Counts(500)
        self._prefix = _Prefix()
        self._lock = threading.Lock()
        self._tools: dict[str, tuple[Tool, int]] = {}
        self._listed: tuple[Sequence[Tool], tuple[int, ...]] = ((), ())
        """The tools that were counted last, and the words of each."""
        self._newest: deque[tuple[Message, tuple[int, int]]] = deque(maxlen=NEWEST)
        """What each of the newest messages came to: they are asked about as a tail and as a part of the whole."""

    def text(self, text: str) -> int:
        return self._scaled(self._words(text))

    def message(self, message: Message) -> int:
        words, media = self._message(message)
        return self._scaled(words) + media

    def conversation(self, messages: Sequence[Message]) -> int:
        """All of ``messages`` as one request would hold them. What was counted the last time is not counted again."""
        words, media = self._sums(messages)
        return self._scaled(words) + media

    def parts(self, messages: Sequence[Message]) -> tuple[int, int]:
        """The same in two shares: what was said and called, and what tools returned."""
        returned = [
            self._block(block) for message in messages for block in message.blocks if isinstance(block, ToolOutput)
        ]
        results = self._scaled(sum(words for words, _ in returned)) + sum(media for _, media in returned)
        return max(0, self.conversation(messages) - results), results

    def _sums(self, messages: Sequence[Message]) -> tuple[int, int]:
        """Words and media of ``messages``, the frame of a conversation included."""
        if not messages:
            return 0, 0
        with self._lock:
            return self._grown(messages)

    def _grown(self, messages: Sequence[Message]) -> tuple[int, int]:
        kept = self._prefix
        known = kept.known(messages)
        if not known and len(messages) < len(kept.messages):
            # A part of it, asked for in between: the whole is worth more to remember.
            each = [self._message(message) for message in messages]
            return OPENING + sum(words for words, _ in each), sum(media for _, media in each)
        del kept.messages[known:], kept.words[known + 1 :], kept.media[known + 1 :]
        for message in messages[known:]:
            words, media = self._message(message)
            kept.messages.append(message)
            kept.words.append(kept.words[-1] + words)
            kept.media.append(kept.media[-1] + media)
        return OPENING + kept.words[-1], kept.media[-1]

    def tool(self, tool: Tool) -> int:
        """A tool as a model is told of it: name, description, schema."""
        return self._scaled(self._told(tool))

    def tools(self, tools: Sequence[Tool]) -> int:
        known, words = self._listed
        if known is not tools:
            words = tuple(map(self._told, tools))
            if isinstance(tools, tuple):
                self._listed = (tools, words)
        factor = self._scale.factor()
        return sum(_scaled(each, factor) for each in words)

    def _told(self, tool: Tool) -> int:
        known = self._tools.get(tool.name)
        if known is None or known[0] is not tool:
            words = TOOL + self._words(tool.name) + self._words(tool.description) + self._json(tool.input_schema)
            known = self._tools[tool.name] = (tool, words)
        return known[1]

    def _scaled(self, words: int) -> int:
        return _scaled(words, self._scale.factor())

    def _words(self, text: str) -> int:
        return self._counts.of(text, self._measure)

    def _message(self, message: Message) -> tuple[int, int]:
        for known, counted in tuple(self._newest):
            if known is message:
                return counted
        words, media = MESSAGE, 0
        for block in message.blocks:
            more, seen = self._block(block)
            words, media = words + more, media + seen
        self._newest.append((message, (words, media)))
        return words, media

    def _block(self, block: Block) -> tuple[int, int]:
        """Words and media, apart: a margin is for words."""
        match block:
            case Text(text=text) | Thinking(thinking=text):
                return self._words(text), 0
            case ToolUse():
                return CALL + self._words(block.name) + self._json(block.input) + self._words(block.malformed or ""), 0
            case ToolOutput():
                parts = [self._block(media) for media in block.attachments]
                words = OUTPUT + self._words(block.content) + sum(more for more, _ in parts)
                return words, sum(seen for _, seen in parts)
            case Image():
                return 0, self._media.of(block.data or block.url or "", lambda _: self._picture(block))
            case Document():
                text = document_text(block)
                if text is not None:
                    return self._words(text) + self._words(block.title), 0
                return self._words(block.title), self._media.of(block.data, lambda _: document_tokens(block))
            case RedactedThinking(data=data):
                return len(data) // 4, 0
            case Opaque(raw=raw):
                return self._json(raw), 0

    def _picture(self, image: Image) -> int:
        return picture_tokens(image, self._scale.family, self._scale.pixels)

    def _json(self, value: object) -> int:
        """A value as JSON: its texts, and about a token for each sign around them."""
        match value:
            case str():
                return 2 + self._words(value)
            case Mapping():
                pairs = cast("Mapping[str, Any]", value)
                return 1 + sum(2 + self._words(str(key)) + self._json(item) for key, item in pairs.items())
            case list() | tuple():
                return 1 + sum(1 + self._json(item) for item in cast("Sequence[Any]", value))
            case bool() | None:
                return 1
            case _:
                return self._words(json.dumps(value, default=str))


def _scaled(words: int, factor: float) -> int:
    return math.ceil(words * factor - 1e-9)
