"""Tokens of texts, messages, conversations and tools: the estimate without a vocabulary, and settings of each model.

Counts are remembered by content, so that a growing conversation costs as much as its new part. The configuration is
in layers of token_encoders.yaml, and encoders that Python code adds.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import json
import math
import threading
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import islice
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from annotated_types import Ge, Le, MinLen

from ba_tui.core.errors import UsageError
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
from ba_tui.resources import UserFolders, bundled, there
from ba_tui.settings.fields import NUMBER, Address, FieldCheck
from ba_tui.settings.plain import made

if TYPE_CHECKING:
    from pydantic import ValidationError

    from ba_tui.providers.marked_yaml import YamlNode


O200K = "o200k_base"
CL100K = "cl100k_base"


class Family(StrEnum):
    """Models with similar tokenizers."""

    CLAUDE = "claude"
    GPT = "gpt"
    GEMINI = "gemini"
    GLM = "glm"
    QWEN = "qwen"
    LLAMA = "llama"
    MISTRAL = "mistral"
    DEEPSEEK = "deepseek"
    CUSTOM = "custom"


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


@frozen
class EncoderConfig:
    """One entry of token_encoders.yaml. ``margin``: the factor on counts in ``encoding``. ``exact``: the encoding is
    the model's own, so its counts need no correction. ``exact_counting_api``: the provider's counting endpoint."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    family: Annotated[Family, FieldCheck(_lower, first=True)] = Family.CUSTOM
    encoding: Annotated[str, MinLen(1)] = O200K
    margin: Annotated[float, NUMBER, Ge(1), Le(10)] = 1.2
    exact: bool = False
    exact_counting_api: Address | None = None
    params: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready mapping for ``from_dict``."""
        return {**asdict(self), "family": self.family.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EncoderConfig:
        """Parse a mapping. Raises ValueError naming the field."""
        try:
            return made(cls, data)
        except ValueError as error:
            raise ValueError(_named_fields(cast("ValidationError", error))) from error


def _named_fields(error: ValidationError) -> str:
    """Return each wrong field in a few words."""
    said = "; ".join(f"{'.'.join(map(str, part['loc'])) or 'the entry'}: {part['msg']}" for part in error.errors())
    return said.replace("Input should be", "must be").replace("Value error, expected", "must be").rstrip(".")


FILE = "token_encoders.yaml"
Measure = Callable[[str], int]
_NAMES: Mapping[Family, tuple[str, ...]] = {
    Family.CLAUDE: ("claude",),
    Family.GEMINI: ("gemini", "gemma"),
    Family.GLM: ("glm", "chatglm"),
    Family.QWEN: ("qwen", "qwq", "qvq"),
    Family.DEEPSEEK: ("deepseek",),
    Family.MISTRAL: ("mistral", "mixtral", "ministral", "magistral", "codestral", "devstral", "pixtral"),
    Family.LLAMA: ("llama", "codellama", "meta-llama"),
    Family.GPT: ("gpt", "chatgpt", "o1", "o3", "o4", "text-embedding-3", "davinci", "babbage"),
}


class ModelEncoderRegistry:
    """Finds the configuration of a model: by exact name, then pattern, then family, then a careful default. Later
    layers win, and in a layer the longest pattern. ``problems``: entries that were left out."""

    def __init__(self) -> None:
        self._exact: dict[str, EncoderConfig] = {}
        self._patterns: list[dict[str, EncoderConfig]] = [{}]
        self._families: dict[Family, EncoderConfig] = {}
        self._encoders: dict[str, Measure] = {}
        self.problems: list[str] = []

    def find(self, model: str) -> EncoderConfig:
        """Return the configuration of ``provider/model`` or a bare name; unknown models get the margin 1.2."""
        names = _names(model)
        for name in names:
            if name in self._exact:
                return self._exact[name]
        for layer in reversed(self._patterns):
            for pattern in sorted(layer, key=len, reverse=True):
                if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                    return layer[pattern]
        family = family_of(model)
        return self._families.get(family) or EncoderConfig(family=family)

    def register(self, model: str, config: EncoderConfig) -> None:
        """Set the configuration of a name or a pattern (``*``, ``?``); it wins over every file."""
        plain = _plain(model)
        if set(plain) & set("*?["):
            self._patterns[-1][plain] = config
        else:
            self._exact[plain] = config

    def register_family(self, family: Family, config: EncoderConfig) -> None:
        self._families[family] = config

    def register_encoder(self, name: str, measure: Measure) -> None:
        """Add an encoding: ``encoding: name`` in a configuration counts with ``measure``."""
        self._encoders[name] = measure

    def encoder(self, name: str) -> Measure | None:
        """Return the encoder that was registered as ``name``."""
        return self._encoders.get(name)

    def read(self, path: Path) -> None:
        """Add a file as the next layer. Broken entries or a broken file are left out and listed in ``problems``."""
        from ba_tui.providers.marked_yaml import read_yaml  # noqa: PLC0415 - loads yaml

        self._patterns.append({})
        try:
            top = read_yaml(path)
            parts = top.mapping(("families", "models")) if top else {}
            families = parts["families"].mapping() if "families" in parts else {}
            models = parts["models"].mapping() if "models" in parts else {}
        except UsageError as error:
            self.problems.append(str(error))
            return
        for name, node in families.items():
            if name.strip().lower() not in list(Family):
                self.problems.append(f"{node.file}:{node.line}: {name!r} is no family of models.")
            elif config := self._config(node, name, {"family": name}):
                self._families[config.family] = config
        for name, node in models.items():
            if config := self._config(node, name, {"family": family_of(name)}):
                self.register(name, config)
        # Configurations that Python registers later win over the files.
        self._patterns.append({})

    def _config(self, node: YamlNode, name: str, given: Mapping[str, Any]) -> EncoderConfig | None:
        """Return an entry, completed from its family as it is in the files up to this one."""
        try:
            said = node.value
            if not isinstance(said, dict):
                raise node.wrong("a mapping of keys to values")
            data: dict[str, Any] = {**given, **cast("dict[str, Any]", said)}
            known = str(data["family"]).strip().lower()
            base = self._families.get(Family(known)) if known in list(Family) else None
            own = {**base.to_dict(), "exact": False} if base else {}
            return EncoderConfig.from_dict({**own, **data})
        except (UsageError, ValueError) as error:
            about = str(error).removesuffix(".")
            where = "" if isinstance(error, UsageError) else f"{node.file}:{node.line}: "
            self.problems.append(f"{where}{name}: {about}.")
            return None


def encoders_of(where: UserFolders, root: Path, trusted: Callable[[], bool]) -> Sequence[Path]:
    """Return the encoder files, the most general first; that of the project ``root`` only if it is ``trusted``."""
    own = [file for file in (bundled("config") / FILE, where.config / FILE) if there(file)]
    theirs = root / ".ba" / FILE
    return [*own, theirs] if there(theirs) and trusted() else own


def load_encoders(paths: Iterable[Path]) -> ModelEncoderRegistry:
    """Read the files that exist, the most general first."""
    registry = ModelEncoderRegistry()
    for path in paths:
        if path.exists():
            registry.read(path)
    return registry


def family_of(model: str) -> Family:
    """Return the family by the name alone, whatever a reseller adds to it."""
    for name in _names(model):
        words = name.replace("_", "-").replace("/", "-").split("-")
        for family, starts in _NAMES.items():
            if any(name.startswith(start) for start in starts) or any(
                word.startswith(start) for word in words[:3] for start in starts if start not in {"o1", "o3", "o4"}
            ):
                return family
    return Family.CUSTOM


def _plain(name: str) -> str:
    """Return ``name`` with dashes for dots: vendors and resellers write the same version in both ways."""
    return name.strip().lower().replace(".", "-")


def _names(model: str) -> tuple[str, ...]:
    """Return the whole name, then without a provider, a region and a tag: ``bedrock/us.anthropic.claude-…-v1:0``."""
    plain = _plain(model)
    bare = plain.rpartition("/")[2].partition(":")[0]
    vendorless = bare.rpartition("anthropic-")[2] if "anthropic-" in bare else bare
    return tuple(dict.fromkeys((plain, bare, vendorless)))


# The estimate takes a few milliseconds: it cuts text into pieces as current tokenizers do, and weighs them by kind and
# length. Exact counts are in encodings.

WHOLE = 64_000
"""Characters that are read completely; of a longer text evenly spread samples are read."""
SAMPLES = 16
SAMPLE = 4_000
SHORT = 64
"""Characters of a text below which pieces hardly ever repeat."""

_PIECE = regex(
    r"[^\w\r\n]?[A-Z]?[a-z]++(?![^\W\x00-\x7f])|[^\w\r\n]?[A-Z]++(?![a-z]|[^\W\x00-\x7f])|[^\w\r\n]?[A-Z]+(?=[A-Z][a-z])"
    r"|[^\w\r\n]?[^\W\d_]+|\d{1,3}|_+| ?[^\s\w]+[\r\n/]*|\s*[\r\n]+|\s+(?=\s)|\s+"
)
_LATIN, _CJK, _SIGN, _OTHER = 0.75, 0.78, 0.3, 0.6
# Tokens per character, from each code point on.
_RATES = (
    (0x80, _LATIN),
    (0x370, 0.4),
    (0x400, 0.24),
    (0x530, 0.33),
    (0x900, 0.33),
    (0xE00, 0.36),
    (0xE80, _OTHER),
    (0x1E00, _LATIN),
    (0x2000, _SIGN),
    (0x3000, _CJK),
    (0xA000, _OTHER),
    (0xAC00, 0.57),
    (0xD7B0, 1.0),
    (0xF900, _CJK),
    (0xFB00, _OTHER),
    (0xFF00, _CJK),
    (0xFFF0, 1.0),
    (0x10000, 2.3),
)
_WITHIN = 0.17
"""Tokens per ASCII letter in a word with other letters too."""
_STARTS = [start for start, _ in _RATES]


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of ``text`` in o200k_base within a tenth, more often too many than too few."""
    if len(text) <= WHOLE:
        return round(_weight(text))
    stride = (len(text) - SAMPLE) / (SAMPLES - 1)
    sampled = sum(_weight(text[(at := int(index * stride)) : at + SAMPLE]) for index in range(SAMPLES))
    return round(sampled * len(text) / (SAMPLES * SAMPLE))


def estimate_characters(text: str) -> int:
    """Return the roughest estimate, when no encoding can be loaded: 4 characters a token, 1.5 for CJK."""
    wide = sum(1 for char in text if "\u2e80" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7af" or char > "\uf8ff")
    return round((len(text) - wide) / 4 + wide / 1.5)


def _weight(text: str) -> float:
    if len(text) < SHORT:
        return sum(map(_piece, _PIECE.findall(text)))
    return sum(_piece(piece) * times for piece, times in Counter(_PIECE.findall(text)).items())


def _piece(piece: str) -> float:
    if not piece.isascii():
        return sum(_RATES[bisect_right(_STARTS, ord(char)) - 1][1] if char > "\x7f" else _WITHIN for char in piece)
    last = piece[-1]
    if last.isalpha():
        return _word(piece)
    if last.isdigit():
        return 1.08
    if last == "_":
        return 0.4
    if piece.isspace():
        return 0.6 if "\n" in piece else 1.0
    signs = piece.strip()
    return 1.0 if len(set(signs)) == 1 else 0.8 + 0.15 * max(0, len(signs) - 2)


def _word(piece: str) -> float:
    lead = "" if piece[0].isalpha() else piece[0]
    size = len(piece) - len(lead)
    if size > 1 and piece.isupper():
        return 0.6 + 0.42 * max(0, size - 3)
    if lead == " ":
        return 0.76 + 0.17 * max(0, size - 4)
    within = 0.6 if piece[len(lead)].isupper() else 0.0
    return 0.92 + 0.1 * max(0, size - 4) + within + (0.55 if lead else 0.0)


Pixels = Callable[[bytes], tuple[int, int] | None]
"""Returns width and height of a picture from its first bytes; None when they can't be read."""
HEADER = 400_000
"""Base64 characters that include the size of a picture."""
PAGE = 2_000
"""Tokens of a PDF page: its words, and for some vendors a picture of it."""
PAGE_BYTES = 400_000
"""Bytes of a PDF for each page, when its pages can't be counted."""
_PAGES = regex(rb"/Type\s*/Page(?![A-Za-z])")
_CLAUDE_SIDE, _CLAUDE_PIXELS, _CLAUDE_MOST = 1_568, 750, 1_600
_GPT_SIDE, _GPT_SHORT, _GPT_TILE = 2_048, 768, 512
_GEMINI_SMALL, _GEMINI_TILE, _GEMINI_TOKENS = 384, 768, 258


def unmeasured(data: bytes) -> None:
    """Return None: for callers that read no pictures."""


def picture_tokens(image: Image, family: Family, pixels: Pixels) -> int:
    """Return the tokens of a picture of that size for ``family``; for an unknown size those of a large one."""
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
    """Return the words of a plain text document; None for another kind."""
    if not document.media_type.startswith("text/"):
        return None
    return _decoded(document.data).decode("utf-8", "replace")


def document_tokens(document: Document) -> int:
    """Return its tokens by its pages, or by its size when they are compressed."""
    data = _decoded(document.data)
    return PAGE * max(1, len(_PAGES.findall(data)), len(data) // PAGE_BYTES)


def _decoded(data: str) -> bytes:
    whole = data[: len(data) - len(data) % 4]
    try:
        return base64.b64decode(whole)
    except (binascii.Error, ValueError):
        return b""


OPENING, MESSAGE, CALL, OUTPUT, TOOL = 3, 4, 12, 8, 12
"""Tokens around the text of a conversation, a message, a call, its output, a tool."""
CACHED = 20_000
NEWEST = 4


class Counts:
    """Tokens by content: the hash of a text and its length. When full, the older half is dropped."""

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
                # Replaced in one step: another thread may be reading.
                self._known = dict(list(self._known.items())[self._limit // 2 :])
            found = self._known[key] = count(text)
        return found

    def __len__(self) -> int:
        return len(self._known)


@dataclass
class _Prefix:
    """The messages of the last counted conversation, and the sums up to each."""

    messages: list[Message] = field(default_factory=list[Message])
    words: list[int] = field(default_factory=lambda: [0])
    media: list[int] = field(default_factory=lambda: [0])

    def known(self, messages: Sequence[Message]) -> int:
        """Return how many of ``messages`` are counted: nearly always all but the newest, which one comparison shows."""
        if list(islice(messages, len(self.messages))) == self.messages:
            return len(self.messages)
        for index, identical in enumerate(map(is_, self.messages, messages)):
            if not identical:
                return index
        return min(len(self.messages), len(messages))


class DynamicTokenCounter:
    """Counts tokens with ``measure``, by default the cheap estimate, times ``factor``: a margin and the correction by
    real usage. ``pixels`` reads the size of pictures, ``family`` has their price. Safe to call from any thread."""

    def __init__(
        self,
        measure: Callable[[str], int] = estimate_tokens,
        factor: Callable[[], float] = lambda: 1.0,
        family: Family = Family.CUSTOM,
        pixels: Pixels = unmeasured,
    ) -> None:
        self._measure = measure
        self._factor = factor
        self._family = family
        self._pixels = pixels
        self._counts = Counts()
        self._media = Counts(500)
        self._prefix = _Prefix()
        self._lock = threading.Lock()
        self._tools: dict[str, tuple[Tool, int]] = {}
        self._listed: tuple[Sequence[Tool], tuple[int, ...]] = ((), ())
        """The tools of the last count, and the tokens of each."""
        self._newest: deque[tuple[Message, tuple[int, int]]] = deque(maxlen=NEWEST)
        """Counts of the newest messages: they are asked for as a tail and as part of the whole."""

    def text(self, text: str) -> int:
        return self._scaled(self._words(text))

    def message(self, message: Message) -> int:
        words, media = self._message(message)
        return self._scaled(words) + media

    def conversation(self, messages: Sequence[Message]) -> int:
        """Return the tokens of ``messages`` as one request. Those of the last count are not counted again."""
        if not messages:
            return 0
        with self._lock:
            words, media = self._grown(messages)
        return self._scaled(words) + media

    def _grown(self, messages: Sequence[Message]) -> tuple[int, int]:
        """Return tokens of text and of media, including the frame of a conversation."""
        kept = self._prefix
        known = kept.known(messages)
        if not known and len(messages) < len(kept.messages):
            # A part of the last conversation was asked for: the whole is worth more to remember.
            each = [self._message(message) for message in messages]
            return OPENING + sum(words for words, _ in each), sum(media for _, media in each)
        del kept.messages[known:], kept.words[known + 1 :], kept.media[known + 1 :]
        for message in messages[known:]:
            words, media = self._message(message)
            kept.messages.append(message)
            kept.words.append(kept.words[-1] + words)
            kept.media.append(kept.media[-1] + media)
        return OPENING + kept.words[-1], kept.media[-1]

    def tools(self, tools: Sequence[Tool]) -> int:
        known, words = self._listed
        if known is not tools:
            words = tuple(map(self._told, tools))
            if isinstance(tools, tuple):
                self._listed = (tools, words)
        factor = self._factor()
        return sum(_scaled(each, factor) for each in words)

    def _told(self, tool: Tool) -> int:
        known = self._tools.get(tool.name)
        if known is None or known[0] is not tool:
            words = TOOL + self._words(tool.name) + self._words(tool.description) + self._json(tool.input_schema)
            known = self._tools[tool.name] = (tool, words)
        return known[1]

    def _scaled(self, words: int) -> int:
        return _scaled(words, self._factor())

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
        """Return tokens of text and of media separately: the margin is for text only."""
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
                known = block.data or block.url or ""
                return 0, self._media.of(known, lambda _: picture_tokens(block, self._family, self._pixels))
            case Document():
                text = document_text(block)
                if text is not None:
                    return self._words(text) + self._words(block.title), 0
                return self._words(block.title), self._media.of(block.data, lambda _: document_tokens(block))
            case RedactedThinking(data=data):
                return len(data) // 4, 0
            case Opaque(raw=raw):
                return self._json(raw), 0

    def _json(self, value: object) -> int:
        """Return tokens of a value as JSON: its texts, and about one for each sign around them."""
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
