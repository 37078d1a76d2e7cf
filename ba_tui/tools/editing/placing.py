"""Places finished files as one: all of them or none, then what was there before is there again.

They may be large, so the list of changes (write_ahead.py) has no contents: what a file replaces keeps a name beside it
until all are placed. What a killed process had placed is taken back at the next start (undoing.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ba_tui.core.errors import StorageError
from ba_tui.core.values import frozen
from ba_tui.resources import parent_folder, temporary_name
from ba_tui.tools.editing.disk import copy_beside, digest_of, exchange, place_file
from ba_tui.tools.editing.transaction import KIND, missing_folders, remove_folders
from ba_tui.tools.failed import Failed
from ba_tui.write_ahead import WriteAhead


@frozen
class Placing:
    """A file at ``path`` with the digests of what it holds ``before`` and ``after``; ``new`` and ``aside`` are names
    beside it, of the new file until it is placed and of the old one from then on. ``source``: the file to copy."""

    path: Path
    shown: str
    before: str
    after: str
    new: str
    aside: str
    source: Path = Path()

    def entry(self) -> Mapping[str, object]:
        """What a list says of it."""
        names = {"new": self.new, "aside": self.aside}
        return {"path": str(self.path), "before": self.before, "after": self.after, **names}

    def take_back(self) -> bool:
        """Bring back what was there before; False where it is gone. Raises OSError, Failed."""
        if self.before and digest_of(self.path.with_name(self.aside), self.shown) != self.before:
            return False
        with parent_folder(self.path) as folder:
            if self.before:
                os.rename(self.aside, self.path.name, src_dir_fd=folder, dst_dir_fd=folder)
            else:
                os.unlink(self.path.name, dir_fd=folder)
        return True

    def clear(self, *, keep_aside: bool = False) -> None:
        """Remove the files beside it."""
        with suppress(OSError), parent_folder(self.path) as folder:
            for name in (self.new,) if keep_aside else (self.new, self.aside):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)


def place_together(files: Sequence[tuple[Path, Path]], ahead: WriteAhead, by: str, shown: Callable[[Path], str]) -> int:
    """Copy each of ``files`` to the resolved path beside it, over what is there; return the size of all in bytes.
    ``by``: what does so, for the report on a list of a killed process.

    Raises:
        Failed: one can't be written; then all paths hold what they held before.
    """
    if len(files) == 1:
        ((source, path),) = files
        return place_file(source, path, overwrite=True, shown=shown(path))
    placings = [each for source, path in files if (each := _placing(source, path, shown(path)))]
    folders = list(dict.fromkeys(folder for each in placings for folder in missing_folders(each.path)))
    folders.sort(key=lambda folder: len(folder.parts), reverse=True)
    body = {"files": [each.entry() for each in placings], "folders": [str(folder) for folder in folders]}
    try:
        with ahead.listed(KIND, by, body):
            _place(placings, folders)
    except StorageError as error:
        raise Failed("resource_error", f"{error} No file was changed.", error.hint) from error
    return sum(source.stat().st_size for source, _ in files)


def _placing(source: Path, path: Path, shown: str) -> Placing | None:
    """None where ``path`` holds the same already."""
    before, after = digest_of(path, shown), digest_of(source, shown)
    names = temporary_name(path.name), temporary_name(path.name)
    return None if before == after else Placing(path, shown, before, after, *names, source)


def _place(placings: Sequence[Placing], folders: Sequence[Path]) -> None:
    begun: list[Placing] = []
    try:
        for each in placings:
            copy_beside(each.source, each.path, each.new, each.shown)
        for each in placings:
            begun.append(each)
            exchange(each.path, each.new, each.aside, each.shown)
    except BaseException as error:
        stuck = [each for each in reversed(begun) if not _as_before(each)]
        for each in placings:
            each.clear(keep_aside=each in stuck)
        remove_folders(folders)
        if not isinstance(error, Failed):
            raise
        if stuck:
            kept = ", ".join(f"{each.shown} (its old content is in {each.aside})" for each in stuck)
            raise Failed("resource_error", f"{error} These files could not be put back: {kept}.") from error
        raise error.reworded(f"{error} No file was changed.") from error
    for each in placings:
        each.clear()


def _as_before(placing: Placing) -> bool:
    """Take back what was placed, if anything was; return whether the path is as before."""
    try:
        return digest_of(placing.path, placing.shown) == placing.before or placing.take_back()
    except (OSError, Failed):
        return False
