"""What a prompt names after an ``@``: how such words are read, and what is offered while one is typed.

What comes of a mention (files that are attached, tools, skills) is in ``attachments``.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ba_tui.context.files import LETTERS, FileIndex, FolderListing
from ba_tui.context.session_data import dataset_kind
from ba_tui.core.messages import clean_text
from ba_tui.core.ports.mentions import MentionKind, Suggestion, Weight
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

FORCED = {
    "file": "file",
    "folder": "file",
    "dataset": "file",
    "skill": "skill",
    "tool": "tool",
    "session": "session",
    "metric": "metric",
}
"""What may stand before a colon, and what it says."""
MOST = 30
"""Mentions of one prompt that are looked at."""
LOOKED = 100_000
"""Characters of a prompt that are gone through."""
LONGEST = 1_000
AHEAD = 5
"""Files that match as well as a skill or tool and are still shown before it."""
TYPED = frozenset({"session", "column"})
"""Kinds of which nothing is offered before two letters."""
LIVE = frozenset({"table", "column", "resource"})
"""Kinds whose sources answer from memory."""
FRESH = 3.0
"""Seconds that what a source said holds."""
_AT = regex(
    r'(?<![A-Za-z0-9_@/.:\\-])@(?:"([^"\n]{1,1000})"(:\d+(?:-\d+)?|#L\d+(?:-L?\d+)?)?|((?:\\ |[^\s"@`<>|]){1,1000}))'
)
_PICTURE = regex(
    r"""(?<!\S)(?:"((?:~|\.{0,2})/[^"\n]{1,1000})"|'((?:~|\.{0,2})/[^'\n]{1,1000})'|((?:~|\.{0,2})/(?:\\.|[^\s\\"'`<>|]){1,1000}))"""
)
"""A path as it is typed or dropped: from the root, the home, or a folder that it begins with."""
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_ESCAPED = regex(r"\\(.)")
_FENCE = regex(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_RANGE = regex(r"(?::|#L)(\d{1,9})(?:-L?(\d{1,9}))?$")
"""Lines as ``:10-12``, or as hosts of repositories write them, ``#L10-L12``."""
_CLOSING = frozenset(".,;:!?)]}'*_" + "”’»。，；：！？）】》、")
_BARE = regex(r"[A-Za-z][A-Za-z0-9_-]+")
_CODE = regex(r"[*#/;-]|(?:async )?(?:def|class|function|import|from|export|const|let|var)\b")
"""How a line begins that is code, or a comment in it."""
_OF_LANGUAGES = frozenset({
    *("charset", "container", "apply", "font-face", "import", "keyframes", "layer", "media", "namespace", "page"),
    *("property", "supports", "tailwind", "abstractmethod", "cache", "cached_property", "classmethod", "dataclass"),
    *("contextmanager", "fixture", "override", "pytest", "staticmethod", "test", "wraps", "author", "deprecated"),
    *("example", "param", "params", "return", "returns", "see", "since", "throws", "todo", "type", "version"),
})  # fmt: skip
"""Words after an ``@`` that people write of: at-rules, decorators, tags in comments."""
_EDGE = regex(r"[!-~](?=[^\x00-\x7f])")
EDGES = 4

MentionLines: TypeAlias = tuple[int, int]
"""The first and the last, from 1."""
MentionSource: TypeAlias = Callable[[], Sequence[Suggestion]]


@frozen
class Named:
    """One mention. ``kind`` is empty unless the person said it; ``raw`` is what stands after the ``@``. ``prose``:
    it stands in a sentence, not in code. ``typed``: it is a picture's path without an ``@``."""

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
        """Whether it is likely that something here was meant: not a decorator, an at-rule or a package."""
        if self.typed:
            return False
        stem, dot, ending = _RANGE.sub("", self.shown).rpartition(".")
        path = self.prose and "/" in self.shown.strip("/")
        return bool(
            self.kind or self.quoted or self.bare or path or (stem and dot and ending.isalnum() and "(" not in stem)
        )

    @property
    def bare(self) -> bool:
        """Whether it is a word of a sentence, and may be a tool or a skill as well as somebody's name."""
        return self.prose and bool(_BARE.fullmatch(self.shown)) and self.shown.lower() not in _OF_LANGUAGES

    def readings(self) -> Iterator[tuple[str, MentionLines | None]]:
        """What it may say, the likeliest first: the whole, then without lines, without what ends the sentence."""
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
        # Scripts without spaces: the sentence goes on right after the name.
        for found in list(_EDGE.finditer(text))[-EDGES:]:
            yield text[: found.end()], None


def named(text: str) -> list[Named]:
    """Every mention in a prompt, once, and every path of a picture; what stands in fenced code is none."""
    pictured = any(kind in text.lower() for kind in _PICTURES)
    if "@" not in text and not pictured:
        return []
    found: dict[str, Named] = {}
    plain = _FENCE.sub("\n", text[:LOOKED])
    for match in _AT.finditer(plain):
        quoted = match[1] is not None
        raw = f"{match[1]}{match[2] or ''}" if quoted else match[3].replace("\\ ", " ")
        kind, colon, rest = raw.partition(":")
        if colon and kind in FORCED and rest:
            found.setdefault(raw, Named(raw, FORCED[kind], rest, quoted))
        else:
            prose = _in_prose(plain, match.start()) and plain[match.end() : match.end() + 1] != "@"
            found.setdefault(raw, Named(raw, "", raw, quoted, prose))
        if len(found) == MOST:
            break
    for match in _PICTURE.finditer(plain) if pictured else ():
        path = match[1] or match[2] or _ESCAPED.sub(r"\1", match[3].rstrip(".,;:!?)"))
        if path.lower().endswith(_PICTURES) and len(found) < MOST:
            found.setdefault(path, Named(path, "file", path, quoted=True, typed=True))
    return list(found.values())


def _in_prose(text: str, at: int) -> bool:
    """Whether what stands at ``at`` is within a sentence: the line has more words, and does not begin as code does, or
    it is all there is."""
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    line = text[start : end if end >= 0 else len(text)]
    spoken = " " in line.strip() or line.strip() == text.strip()
    later = start > 0 and not text[start:at].strip()
    return spoken and not later and not line.startswith((" ", "\t")) and not _CODE.match(line)


class Offering:
    """core.mentions.Mentions: files from the index, all else from ``sources`` by kind. A source may block, and need not
    say how what it offers is written; ``keep`` blocks. ``stir`` is told before each search, and returns at once."""

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
        """What is no file is called with its kind where a file, or for a tool a skill, has that name too."""
        kind, name = suggestion.kind, suggestion.label
        if suggestion.text:
            return suggestion
        skilled = kind == "tool" and "skill" in self._sources
        taken = skilled and any(skill.label == name for skill in self._offered("skill"))
        return replace(suggestion, text=f"{kind}:{name}" if taken or os.path.lexists(self._files.root / name) else name)


def _file(path: str) -> Suggestion:
    # Bytes that are no text are found again by what they are shown as.
    path = clean_text(path)
    if path.endswith("/"):
        return Suggestion("folder", path, path)
    kind = dataset_kind(path)
    return Suggestion("dataset", path, path, kind) if kind else Suggestion("file", path, path)


def _mixed(
    files: Sequence[tuple[int, Suggestion]], others: Sequence[tuple[int, Suggestion]], limit: int
) -> list[Suggestion]:
    """By how well they match; of equal ones a few files come first, then the rest, then more files. Sessions, whose
    titles match much, come last."""
    ordered: list[Suggestion] = []
    last = [other for _, other in others if other.kind == "session"]
    for sort in range(LETTERS + 1):
        equal = [file for each, file in files if each == sort]
        rest = [other for each, other in others if each == sort and other.kind != "session"]
        ordered += [*equal[:AHEAD], *rest, *equal[AHEAD:]]
    return [*ordered[: limit - len(last[:AHEAD])], *last[:AHEAD]]


def _outside(root: Path, query: str, limit: int) -> list[Suggestion]:
    """What lies in the folder that an absolute path or one from the home or from above names so far."""
    folder, _, begun = query.rpartition("/") if "/" in query else (query, "", "")
    shown = f"{folder}/" if folder or query.startswith("/") else ""
    try:
        with os.scandir((root / os.path.expanduser(shown)).resolve()) as entries:  # noqa: PTH111 - must not raise
            names = [entry.name + "/" * entry.is_dir() for entry in entries]
    except (OSError, ValueError, RuntimeError):
        return []
    seen = sorted(name for name in names if begun.startswith(".") or not name.startswith("."))
    return [_file(shown + name) for _, name in FolderListing(seen).ranked(begun, limit)]
