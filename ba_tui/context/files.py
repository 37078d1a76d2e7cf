"""The index of a folder's files for ``@`` completion: built off the loop, gitignore-aware, matched fuzzily.

It lists names only; reading a file is a tool's business.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePath
from threading import Timer

from ba_tui.context.blocking import ignoring_pipe
from ba_tui.context.links import linked_folders_now
from ba_tui.processes.streams import PipedChild

STALE = 10.0
PATIENCE = 2.0
"""Seconds after which it is looked what a listing may be waiting for."""
LIMIT = 200_000
BLOCK = 200_000
"""Characters that one search of the regex engine goes through; nothing else runs meanwhile."""
PLENTY = 200
"""Matches of one sort beyond which worse ones are not looked for."""
CHUNK = 1 << 20
MOST_LINKS = 20
"""Links to folders whose files are listed under the name of the link as well."""
LONGEST = 200
LETTERS = 3
"""The sort of match that only has the letters in order."""
SKIPPED = {".git", "node_modules", "__pycache__", ".venv"}
SLIP, LIKE, COMPARED = 3, 0.6, 20_000
"""Letters that a name may be longer or shorter than a slip of it, how alike they are, and how many are compared."""
_BOUNDARY = frozenset("/_-. ")


class FolderListing:
    """Names in the order of preference, kept as a few long texts in which a line is ``/name``."""

    def __init__(self, names: Iterable[str]) -> None:
        self._blocks = [(text, _lowered(text)) for text in _blocks(names)]

    def __iter__(self) -> Iterator[str]:
        for text, _ in self._blocks:
            yield from (line[1:] for line in text[1:-1].split("\n"))

    def ranked(self, query: str, limit: int) -> list[tuple[int, str]]:
        """The best names with how well they match: 0 begins so, 1 and 2 hold it in the name or path, 3 its letters."""
        if not query:
            return [(0, name) for name in islice(self, limit)]
        low = _lowered(query.strip().lstrip("/"))
        if not low or len(low) > LONGEST or "\n" in low:
            return []
        found: dict[str, int] = {}
        # Looking for a plain text is many times as fast as looking for a pattern.
        holding = [block for block in self._blocks if low in block[1]]
        for sort, pattern in enumerate(_patterns(low)):
            _collect(re.compile(pattern), sort, holding if sort < LETTERS else self._blocks, found)
            if len(found) >= limit:
                break
        if query.endswith("/"):
            found.pop(query.strip(), None)
        letters = re.compile(".*?".join(map(re.escape, low)))
        best = sorted(found, key=lambda name: (found[name], *_closeness(name, letters)))[:limit]
        return [(found[name], name) for name in best]


class FileIndex:
    """Paths below ``root``, as ``rg --files`` gives them (``rg`` is its path; None walks instead)."""

    def __init__(self, root: Path, rg: Path | None) -> None:
        self.root = root
        self._rg = rg
        self._waits = False
        """Whether ripgrep was seen to wait for what never comes."""
        self._seen = FolderListing(())
        self._hidden = FolderListing(())
        self._mark: tuple[int, int] | None = None
        self._listed = float("-inf")
        self._listing: asyncio.Task[None] | None = None

    async def search(self, query: str, limit: int) -> Sequence[tuple[int, str]]:
        """Best matches first, with how well they match; hidden files only when the query names one; folders end in
        ``/``. An old index answers while a new one is made."""
        if time.monotonic() - self._listed > STALE and (self._listing is None or self._listing.done()):
            self._listing = asyncio.create_task(self._list())
        if self._mark is None and self._listing:
            await asyncio.shield(self._listing)
        dotted = query.startswith(".") or "/." in query
        return await asyncio.to_thread((self._hidden if dotted else self._seen).ranked, query, limit)

    async def nearest(self, path: str) -> str:
        """The path whose name is most like that of ``path``; empty when none is."""
        await self.search(path, 1)
        return await asyncio.to_thread(_nearest, path, [*self._seen, *self._hidden])

    async def _list(self) -> None:
        await asyncio.to_thread(self._build)
        self._listed = time.monotonic()

    def _build(self) -> None:
        try:
            names = self._ripgrep(self._rg) if self._rg and not self._waits else list(islice(self._walk(), LIMIT))
        except OSError:
            names = []
        names += islice(self._behind_links(names), LIMIT - len(names))
        mark = (len(names), sum(map(hash, names)))
        if mark != self._mark:
            # What comes in another order is the same folder all the same.
            hidden = [name for name in names if name.startswith(".") or "/." in name]
            unseen = set(hidden)
            self._seen = FolderListing(_shallow_first(name for name in names if name not in unseen))
            self._hidden = FolderListing(_shallow_first(hidden))
            self._mark = mark

    def _behind_links(self, names: Sequence[str]) -> Iterator[str]:
        """The same names behind links to folders that were listed, which neither listing follows."""
        root = os.path.realpath(self.root)
        for link in linked_folders_now(self.root)[:MOST_LINKS] if names else ():
            real = os.path.realpath(link)
            if not real.startswith(f"{root}/") or f"{os.path.realpath(link.parent)}/".startswith(f"{real}/"):
                # It leads out of the workspace, or back to a folder that it lies in.
                continue
            begun, there = f"{os.path.relpath(link, self.root)}/", f"{os.path.relpath(real, root)}/"
            yield from [begun + name.removeprefix(there) for name in names if name.startswith(there)]

    def _ripgrep(self, rg: Path) -> list[str]:
        command = (str(rg), "--files", "--hidden", "--glob", "!.git/", "--null", "--no-messages", "--no-config")
        parts: list[bytes] = []
        count = 0
        with PipedChild(command, self.root) as process:
            late = Timer(PATIENCE, self._rescue, (process,))
            late.daemon = True
            late.start()
            while count < LIMIT and (part := process.output.read(CHUNK)):
                parts.append(part)
                count += part.count(b"\0")
            late.cancel()
            process.kill()
        if self._waits:
            return list(islice(self._walk(), LIMIT))
        return [os.fsdecode(name) for name in b"".join(parts).split(b"\0")[:-1][:LIMIT]]

    def _rescue(self, process: PipedChild) -> None:
        if process.running and ignoring_pipe(self.root):
            self._waits = True
            process.kill()

    def _walk(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if name not in SKIPPED]
            yield from (os.path.relpath(os.path.join(folder, name), self.root) for name in files)  # noqa: PTH118 - a walk's inner loop


def _nearest(path: str, names: Iterable[str]) -> str:
    import difflib  # noqa: PLC0415 - for a slip alone

    wanted = PurePath(path).name.lower()
    by_name: dict[str, str] = {}
    for name in names:
        last = PurePath(name).name.lower()
        if abs(len(last) - len(wanted)) <= SLIP and len(by_name) < COMPARED:
            by_name.setdefault(last, name)
    return next((by_name[name] for name in difflib.get_close_matches(wanted, by_name, 1, LIKE)), "")


def _collect(pattern: re.Pattern[str], sort: int, blocks: Iterable[tuple[str, str]], found: dict[str, int]) -> None:
    room = PLENTY
    for text, low in blocks:
        at = 0
        while match := pattern.search(low, at):
            start, end = low.rfind("\n", 0, match.end()) + 2, low.find("\n", match.end())
            name, at = text[start:end], end
            if name not in found:
                found[name] = sort
                room -= 1
                if not room:
                    return


def _shallow_first(paths: Iterable[str]) -> Iterator[str]:
    """Files and the folders they lie in, the highest first. Sorts a folder at a time: no step holds up the loop."""
    held: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        inside = held.get(folder)
        if inside is None:
            inside = held[folder] = []
            above = folder
            while above:
                below, _, own = above.rpartition("/")
                known = below in held
                held.setdefault(below, []).append(f"{own}/")
                if known:
                    break
                above = below
        inside.append(name)
    for folder in sorted(held, key=lambda folder: (folder.count("/") + bool(folder), folder)):
        prefix = f"{folder}/" if folder else ""
        yield from (prefix + name for name in sorted(held[folder]))


def _blocks(names: Iterable[str]) -> Iterator[str]:
    lines: list[str] = []
    size = 0
    for name in names:
        if "\n" in name:
            continue
        lines.append(name)
        size += len(name) + 2
        if size > BLOCK:
            yield "\n/" + "\n/".join(lines) + "\n"
            lines, size = [], 0
    if lines:
        yield "\n/" + "\n/".join(lines) + "\n"


def _patterns(low: str) -> tuple[str, str, str, str]:
    """From the best to the poorest. Nothing in them goes back over what it has matched, so each is linear."""
    plain = re.escape(low)
    rest = r"[^/\n]*+/?+(?=\n)"
    letters = "".join(f"[^{re.escape(letter)}\n]*+{re.escape(letter)}" for letter in low)
    return f"/{plain}{rest}", f"{plain}{rest}", plain, rf"\n{letters}"


def _closeness(name: str, letters: re.Pattern[str]) -> tuple[bool, int, int, int, str]:
    """For names that match equally well: letters in the last part, starts of words, a short span, a short name."""
    plain = _lowered(name).rstrip("/")
    start = plain.rfind("/") + 1
    match = letters.search(plain, start) or letters.search(plain)
    span = match.end() - match.start() if match else LONGEST
    at = match.start() if match else 0
    begins = at == 0 or plain[at - 1] in _BOUNDARY
    return at < start, span - begins, plain.count("/"), len(name), name


def _lowered(text: str) -> str:
    """In small letters, each in its place: some letters would become two."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
