"""Mentions in prompts, words after an ``@``: how they are parsed, and what is suggested while the user types one."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ba_tui.context.files import LETTERS, FileIndex, FolderListing
from ba_tui.core.errors import StorageError
from ba_tui.core.messages import clean_text
from ba_tui.core.ports.context import MentionKind, Skills, Suggestion, Weight
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.results import ToolResult
from ba_tui.core.services import Library
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen

# Data files are recognised by their names.

KINDS = {
    "csv": "CSV data",
    "tsv": "TSV data",
    "parquet": "Parquet data",
    "arrow": "Arrow data",
    "feather": "Arrow data",
    "xlsx": "Excel workbook",
    "xlsm": "Excel workbook",
    "xls": "Excel workbook",
    "ods": "OpenDocument spreadsheet",
    "json": "JSON data",
    "jsonl": "JSON Lines data",
    "ndjson": "JSON Lines data",
    "sqlite": "SQLite database",
    "sqlite3": "SQLite database",
    "db": "SQLite database",
}
COMPRESSED = (".gz", ".zst")
JSON = KINDS["json"]


def dataset_kind(name: str) -> str:
    """Return the kind of data in a file with this name; empty for other files."""
    name = name.lower()
    name = next((name.removesuffix(ending) for ending in COMPRESSED if name.endswith(ending)), name)
    return KINDS.get(name.rpartition(".")[2], "") if "." in name else ""


FORCED = {
    **dict.fromkeys(("file", "folder", "dataset"), "file"),
    **{kind: kind for kind in ("skill", "tool", "session", "metric")},
}
"""Prefixes before a colon, and the kind that they mean."""
MOST = 30
"""Mentions of one prompt that are used."""
LOOKED = 100_000
"""Characters of a prompt that are searched."""
LONGEST = 1_000
AHEAD = 5
"""Files that are listed before a skill or tool that matches as well."""
TYPED = frozenset({"session", "column"})
"""Kinds that are suggested from the second letter on."""
LIVE = frozenset({"table", "column", "resource"})
"""Kinds whose sources answer from memory."""
FRESH = 3.0
"""Seconds for which a source's answer is used."""
_AT = regex(
    r'(?<![A-Za-z0-9_@/.:\\-])@(?:"([^"\n]{1,1000})"(:\d+(?:-\d+)?|#L\d+(?:-L?\d+)?)?|((?:\\ |[^\s"@`<>|]){1,1000}))'
)
_PICTURE = regex(
    r"""(?<!\S)(?:"((?:~|\.{0,2})/[^"\n]{1,1000})"|'((?:~|\.{0,2})/[^'\n]{1,1000})'|((?:~|\.{0,2})/(?:\\.|[^\s\\"'`<>|]){1,1000}))"""
)
"""A path as it is typed or dropped: from the root, the home folder, or a folder with which it begins."""
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_ESCAPED = regex(r"\\(.)")
_FENCE = regex(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_RANGE = regex(r"(?::|#L)(\d{1,9})(?:-L?(\d{1,9}))?$")
"""Lines as ``:10-12``, or as in repository links, ``#L10-L12``."""
_CLOSING = frozenset(".,;:!?)]}'*_" + "”’»。，；：！？）】》、")
_BARE = regex(r"[A-Za-z][A-Za-z0-9_-]+")
_CODE = regex(r"[*#/;-]|(?:async )?(?:def|class|function|import|from|export|const|let|var)\b")
"""The beginning of a line of code, or of a comment in it."""
_OF_LANGUAGES = frozenset({
    *("charset", "container", "apply", "font-face", "import", "keyframes", "layer", "media", "namespace", "page"),
    *("property", "supports", "tailwind", "abstractmethod", "cache", "cached_property", "classmethod", "dataclass"),
    *("contextmanager", "fixture", "override", "pytest", "staticmethod", "test", "wraps", "author", "deprecated"),
    *("example", "param", "params", "return", "returns", "see", "since", "throws", "todo", "type", "version"),
})  # fmt: skip
"""Words after an ``@`` in texts about code: at-rules, decorators, tags in comments."""
_EDGE = regex(r"[!-~](?=[^\x00-\x7f])")
EDGES = 4

MentionLines: TypeAlias = tuple[int, int]
"""The first and the last line, from 1."""
MentionSource: TypeAlias = Callable[[], Sequence[Suggestion]]


@frozen
class NamedMention:
    """One mention. ``kind``: empty unless the user wrote it; ``raw``: the text after the ``@``. ``prose``: it is in a
    sentence, not in code. ``typed``: it is a picture's path without an ``@``."""

    raw: str
    kind: str = ""
    text: str = ""
    quoted: bool = False
    prose: bool = False
    typed: bool = False

    @property
    def shown(self) -> str:
        return self.raw if self.quoted else self.raw.rstrip("".join(_CLOSING))

    @property
    def looks_meant(self) -> bool:
        """Whether it probably names something here: no decorator, at-rule or package."""
        if self.typed:
            return False
        stem, dot, ending = _RANGE.sub("", self.shown).rpartition(".")
        path = self.prose and "/" in self.shown.strip("/")
        return bool(
            self.kind or self.quoted or self.bare or path or (stem and dot and ending.isalnum() and "(" not in stem)
        )

    @property
    def bare(self) -> bool:
        """Whether it is a word of a sentence: a tool, a skill, or somebody's name."""
        return self.prose and bool(_BARE.fullmatch(self.shown)) and self.shown.lower() not in _OF_LANGUAGES

    def readings(self) -> Iterator[tuple[str, MentionLines | None]]:
        """Return its meanings, the likeliest first: the whole, then without lines or the end of the sentence."""
        text = self.text
        while text:
            yield text, None
            if found := _RANGE.search(text):
                first = max(1, int(found[1]))
                yield text[: found.start()], (first, max(first, int(found[2] or found[1])))
            if self.quoted:
                return
            if text[-1] not in _CLOSING:
                break
            text = text[:-1]
        # Scripts without spaces: the sentence continues directly after the name.
        for found in list(_EDGE.finditer(text))[-EDGES:]:
            yield text[: found.end()], None


def find_mentions(text: str) -> list[NamedMention]:
    """Return every mention in a prompt, once, and every path of a picture; text in fenced code is ignored."""
    pictured = any(kind in text.lower() for kind in _PICTURES)
    if "@" not in text and not pictured:
        return []
    found: dict[str, NamedMention] = {}
    plain = _FENCE.sub("\n", text[:LOOKED])
    for match in _AT.finditer(plain):
        quoted = match[1] is not None
        raw = f"{match[1]}{match[2] or ''}" if quoted else match[3].replace("\\ ", " ")
        kind, colon, rest = raw.partition(":")
        if colon and kind in FORCED and rest:
            found.setdefault(raw, NamedMention(raw, FORCED[kind], rest, quoted))
        else:
            prose = _in_prose(plain, match.start()) and plain[match.end() : match.end() + 1] != "@"
            found.setdefault(raw, NamedMention(raw, "", raw, quoted, prose))
        if len(found) == MOST:
            break
    for match in _PICTURE.finditer(plain) if pictured else ():
        path = match[1] or match[2] or _ESCAPED.sub(r"\1", match[3].rstrip(".,;:!?)"))
        if path.lower().endswith(_PICTURES) and len(found) < MOST:
            found.setdefault(path, NamedMention(path, "file", path, quoted=True, typed=True))
    return list(found.values())


def _in_prose(text: str, at: int) -> bool:
    """Whether ``at`` is within a sentence: its line has more words and is no code, or it is the whole text."""
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    line = text[start : end if end >= 0 else len(text)]
    spoken = " " in line.strip() or line.strip() == text.strip()
    later = start > 0 and not text[start:at].strip()
    return spoken and not later and not line.startswith((" ", "\t")) and not _CODE.match(line)


class MentionCompletion:
    """core.mentions.Mentions: files from the index, other things from ``sources`` by kind. A source may block, and need
    not set the written form of its suggestions; ``keep`` blocks. ``stir`` is called before each search and returns at
    once."""

    def __init__(
        self,
        files: FileIndex,
        sources: Mapping[MentionKind, MentionSource],
        weigh: Callable[[str], Awaitable[Sequence[Weight]]],
        keep: Callable[[bytes], str],
        stir: Callable[[], None] = lambda: None,
    ) -> None:
        self._stir = stir
        self._keep = keep
        self._files = files
        self._sources = sources
        self._weigh = weigh
        self._kept: dict[MentionKind, tuple[float, Sequence[Suggestion]]] = {}

    async def keep(self, picture: bytes) -> str:
        return await asyncio.to_thread(self._keep, picture)

    async def weigh(self, text: str) -> Sequence[Weight]:
        return await self._weigh(text)

    async def search(self, query: str, limit: int = 50) -> Sequence[Suggestion]:
        if len(query) > LONGEST:
            return ()
        self._stir()
        kind, colon, rest = query.partition(":")
        if colon and FORCED.get(kind, "file") != "file":
            found = await asyncio.to_thread(self._others, rest, kind, limit)
            return [suggestion for _, suggestion in found]
        plain = rest if colon and kind in FORCED else query
        if plain.startswith(("/", "~", "../")) or plain == "..":
            return await asyncio.to_thread(_outside, self._files.root, plain, limit)
        files = [(sort, _file(path)) for sort, path in await self._files.search(plain, limit)]
        if colon and kind in FORCED:
            wanted = [file for _, file in files if kind == "file" or file.kind == kind]
            return wanted[:limit]
        return _mixed(files, await asyncio.to_thread(self._others, query, "", limit), limit)

    def _others(self, query: str, kind: str, limit: int) -> list[tuple[int, Suggestion]]:
        found: list[tuple[int, Suggestion]] = []
        for each in self._sources:
            if (kind and each != kind) or (not kind and each in TYPED and len(query) < 2):
                continue
            offered: dict[str, Suggestion] = {}
            for suggestion in self._offered(each):
                label = suggestion.label.replace("/", " ")
                offered[f"{label} {suggestion.text}" if label in offered else label] = suggestion
            ranked = FolderListing(offered).ranked(query, limit)
            found += [(sort, self._written(offered[label])) for sort, label in ranked if kind or sort < LETTERS]
        return found

    def _offered(self, kind: MentionKind) -> Sequence[Suggestion]:
        if kind in LIVE:
            return self._sources[kind]()
        now, (since, kept) = time.monotonic(), self._kept.get(kind, (float("-inf"), ()))
        if now - since > FRESH:
            kept = self._sources[kind]()
            self._kept[kind] = now, kept
        return kept

    def _written(self, suggestion: Suggestion) -> Suggestion:
        """Return the written form: with its kind where a file, or for a tool a skill, has the same name."""
        kind, name = suggestion.kind, suggestion.label
        if suggestion.text:
            return suggestion
        skilled = kind == "tool" and "skill" in self._sources
        taken = skilled and any(skill.label == name for skill in self._offered("skill"))
        return replace(suggestion, text=f"{kind}:{name}" if taken or os.path.lexists(self._files.root / name) else name)


def _file(path: str) -> Suggestion:
    # Bytes that are no valid text are found again by their displayed form.
    path = clean_text(path)
    if path.endswith("/"):
        return Suggestion("folder", path, path)
    kind = dataset_kind(path)
    return Suggestion("dataset", path, path, kind) if kind else Suggestion("file", path, path)


def _mixed(
    files: Sequence[tuple[int, Suggestion]], others: Sequence[tuple[int, Suggestion]], limit: int
) -> list[Suggestion]:
    """Sort by quality of the match; of equal ones a few files come first, then the others, then more files. Sessions,
    whose titles match often, come last."""
    ordered: list[Suggestion] = []
    last = [other for _, other in others if other.kind == "session"]
    for sort in range(LETTERS + 1):
        equal = [file for each, file in files if each == sort]
        rest = [other for each, other in others if each == sort and other.kind != "session"]
        ordered += [*equal[:AHEAD], *rest, *equal[AHEAD:]]
    return [*ordered[: limit - len(last[:AHEAD])], *last[:AHEAD]]


def _outside(root: Path, query: str, limit: int) -> list[Suggestion]:
    """Return the content of the folder in ``query``: an absolute path, or one from the home folder or from above."""
    folder, _, begun = query.rpartition("/") if "/" in query else (query, "", "")
    shown = f"{folder}/" if folder or query.startswith("/") else ""
    try:
        with os.scandir((root / os.path.expanduser(shown)).resolve()) as entries:  # noqa: PTH111 - must not raise
            names = [entry.name + "/" * entry.is_dir() for entry in entries]
    except (OSError, ValueError, RuntimeError):
        return []
    seen = sorted(name for name in names if begun.startswith(".") or not name.startswith("."))
    return [_file(shown + name) for _, name in FolderListing(seen).ranked(begun, limit)]


class OtherSessions:
    """The sessions of a library except ``own``. ``shorten`` keeps beginning and end of a text."""

    def __init__(self, library: Library, own: str, shorten: Callable[[str], str]) -> None:
        self._library = library
        self._own = own
        self._shorten = shorten

    def read(self, key: str) -> tuple[str, ToolResult]:
        """Return id and text of a session. Blocks. Raises BaError."""
        info = self._library.find(key)
        text = self._shorten("".join(self._library.export(info.id, "md", for_model=True)))
        about = f"{info.title or 'untitled'}, {info.turns} turn{'' if info.turns == 1 else 's'}"
        return info.id, ToolResult(f"In Markdown:\n{text}", summary=about)

    def suggestions(self) -> Sequence[Suggestion]:
        infos: Sequence[SessionInfo] = ()
        with suppress(StorageError):
            infos = self._library.sessions()
        found = [info for info in infos if info.id != self._own]
        return [Suggestion("session", f"session:{info.id}", info.title or info.id, info.preview) for info in found]


def mention_sources(
    skills: Skills,
    tools: Callable[[], Iterable[Tool]],
    sessions: OtherSessions,
    data: Mapping[MentionKind, MentionSource],
) -> Mapping[MentionKind, MentionSource]:
    """Return the sources of suggestions by kind. ``data``: tables and columns."""

    def skill_suggestions() -> Sequence[Suggestion]:
        usable = [line for line in skills.lines() if line.state not in {"broken", "shadowed"} and not line.for_models]
        return [Suggestion("skill", "", line.id, line.description) for line in usable]

    def tool_suggestions() -> Sequence[Suggestion]:
        return [Suggestion("tool", "", tool.name, tool.description) for tool in tools()]

    return {"skill": skill_suggestions, "tool": tool_suggestions, "session": sessions.suggestions, **data}
