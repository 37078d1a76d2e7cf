"""The index of a folder's files for ``@`` completion: built off the loop, gitignore-aware, matched fuzzily.

It lists names only; reading a file is a tool's business.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

STALE = 10.0
LIMIT = 200_000


class FileIndex:
    """Paths below ``root``, as ``rg --files`` gives them (``rg`` is its path; None walks instead)."""

    def __init__(self, root: Path, rg: Path | None) -> None:
        self._root = root
        self._rg = rg
        self._paths: tuple[str, ...] = ()
        self._hidden: tuple[str, ...] = ()
        self._listed = float("-inf")
        self._listing: asyncio.Task[None] | None = None

    async def search(self, query: str, limit: int) -> Sequence[str]:
        """Best matches first; hidden files only when the query names one; folders end in ``/``."""
        if time.monotonic() - self._listed > STALE and (self._listing is None or self._listing.done()):
            self._listing = asyncio.create_task(self._list())
        if not self._paths and self._listing:
            await asyncio.shield(self._listing)
        dotted = query.startswith(".") or "/." in query
        return await asyncio.to_thread(best_matches, query, self._hidden if dotted else self._paths, limit)

    async def _list(self) -> None:
        names = await self._ripgrep(self._rg) if self._rg else await asyncio.to_thread(self._walk)
        visible, hidden = await asyncio.to_thread(_sorted_out, names)
        self._paths, self._hidden = visible, hidden
        self._listed = time.monotonic()

    async def _ripgrep(self, rg: Path) -> list[str]:
        process = await asyncio.create_subprocess_exec(
            *(str(rg), "--files", "--hidden", "--glob", "!.git/", "--null", "--no-messages"),
            cwd=self._root,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        output, _ = await process.communicate()
        return output.decode("utf-8", "replace").split("\0")[:LIMIT]

    def _walk(self) -> list[str]:
        names: list[str] = []
        for folder, folders, files in os.walk(self._root):
            folders[:] = [name for name in folders if name not in {".git", "node_modules", "__pycache__", ".venv"}]
            names.extend(os.path.relpath(os.path.join(folder, name), self._root) for name in files)  # noqa: PTH118 - a walk's inner loop
            if len(names) > LIMIT:
                break
        return names[:LIMIT]


def best_matches(query: str, paths: Sequence[str], limit: int) -> list[str]:
    """``paths`` that hold the letters of ``query`` in order: exact runs, then names, then short paths first."""
    if not query:
        return sorted(paths, key=lambda path: (path.count("/") - path.endswith("/"), path))[:limit]
    wanted = re.compile(".*?".join(re.escape(letter) for letter in query), re.IGNORECASE)
    lower = query.lower()

    def rank(path: str) -> tuple[int, int, int, str]:
        plain = path.lower().rstrip("/")
        name = plain.rsplit("/", 1)[-1]
        if plain.startswith(lower) or name.startswith(lower):
            kind = 0
        elif lower in name:
            kind = 1
        elif lower in plain:
            kind = 2
        else:
            kind = 3
        match = wanted.search(path)
        return kind, len(match.group(0)) if match else 0, len(path), path

    return sorted((path for path in paths if wanted.search(path)), key=rank)[:limit]


def _sorted_out(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Visible paths and hidden ones, each with the folders they lie in."""
    visible: set[str] = set()
    hidden: set[str] = set()
    for name in names:
        if not name:
            continue
        kept = hidden if name.startswith(".") or "/." in name else visible
        kept.add(name)
        end = name.rfind("/")
        while end > 0 and name[: end + 1] not in kept:
            kept.add(name[: end + 1])
            end = name.rfind("/", 0, end)
    return tuple(sorted(visible)), tuple(sorted(hidden))
