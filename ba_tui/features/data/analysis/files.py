"""The files that a mention or query may read: paths and globs are resolved and checked before the helper gets them."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from ba_tui.core.errors import BaError
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.errors import DataRefused, DataUnreadable

MOST_FILES = 10_000
"""Most files of one glob."""
MOST_FOLDERS, MOST_NAMED = 20_000, 5
"""Folders searched for links, and links named in a note."""


@frozen
class MatchedFiles:
    """``source`` as the caller wrote it and its files, absolute and sorted. ``notes`` say what was skipped."""

    source: str
    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()


@frozen
class DataFiles:
    """``resolve`` returns the absolute path without links, or raises BaError; ``refused`` returns why a file may not be
    read, empty when it may. Both block."""

    resolve: Callable[[str], Path]
    refused: Callable[[Path], str]

    def matched(self, source: str) -> MatchedFiles:
        """Return the files of ``source``, a path or a glob. Blocks. Raises DataRefused: a file may not be read.
        DataUnreadable: no file matches, or one is not a regular file."""
        if "://" in source:
            raise DataRefused(f"{source}: data is not read from the network.", "Download the file first.")
        try:
            path = self.resolve(source)
            paths = [path] if path.exists() or not glob.has_magic(source) else list(self._globbed(source))
        except (OSError, ValueError) as error:
            raise DataUnreadable(f"{source}: {_reason(error)}.") from error
        except BaError as error:
            raise DataRefused(str(error), error.hint) from error
        notes = self._not_followed(source) if "**" in source else ()
        if not paths:
            raise DataUnreadable(f"No file matches {source}.", *notes)
        if len(paths) > MOST_FILES:
            raise DataUnreadable(f"{source} matches more than {MOST_FILES:,} files.", "Name a smaller set.")
        for path in paths:
            self._check(path)
        return MatchedFiles(source, tuple(sorted(paths)), notes)

    def _not_followed(self, source: str) -> tuple[str, ...]:
        """Return a note that names the linked folders below a glob. ``**`` does not follow links: rows would be read
        twice if a link leads to files that also match."""
        folder, _ = self._divided(source)
        below = ((at, name) for at, names, _ in os.walk(folder) for name in names)
        paths = (Path(at, name) for at, name in islice(below, MOST_FOLDERS))
        links = [path for path in paths if path.is_symlink() and not folder.is_relative_to(os.path.realpath(path))]
        named = ", ".join(str(path.relative_to(folder)) for path in links[:MOST_NAMED])
        more = f" and {len(links) - MOST_NAMED} more" if len(links) > MOST_NAMED else ""
        return (
            (f"Links to folders are not followed: {named}{more}. Name one in the pattern to read it.",) if links else ()
        )

    def _divided(self, source: str) -> tuple[Path, str]:
        """Split a glob into the folder before its first pattern, and the rest."""
        parts = Path(source).parts
        fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
        return self.resolve(str(Path(*parts[:fixed])) if fixed else "."), str(Path(*parts[fixed:]))

    def _globbed(self, source: str) -> Iterator[Path]:
        folder, pattern = self._divided(source)
        for number, found in enumerate(folder.glob(pattern)):
            if number > MOST_FILES:
                return
            if not found.is_dir():
                yield self.resolve(str(found))

    def _check(self, path: Path) -> None:
        if why := self.refused(path):
            raise DataRefused(f"{path.name} may not be read: {why}")
        try:
            mode = path.stat().st_mode
        except OSError as error:
            raise DataUnreadable(f"{path.name}: {_reason(error)}.") from error
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            hint = f"Name its files, as in {path.name}/*.csv." if stat.S_ISDIR(mode) else ""
            raise DataUnreadable(f"{path.name} is {what}.", hint)
        if not os.access(path, os.R_OK):
            raise DataRefused(f"{path.name} may not be read: permission denied")


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
