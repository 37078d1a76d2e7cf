"""Copying the first turns of a session into a new one, line for line, so that nothing unknown to us is lost.

The title of the copy and its place among the others are the library's.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.sessions.journal import make_private, unreadable
from ba_tui.sessions.migrations import OURS
from ba_tui.sessions.records import (
    FILE,
    HEADER,
    Header,
    ends_turn,
    forwards,
    is_record,
    loads,
    read_header,
    starts_turn,
)
from ba_tui.sessions.results.artifacts import FOLDER, NAME, NOTE
from ba_tui.sessions.timeline import turn_starts

ATTACHED = "attachments"
"""Where copies of files lie that came with prompts from elsewhere."""


def copy_turns(source: Path, copy: Header, upto: int | None, *, running: bool) -> None:
    """The session in ``source``, up to its turn number ``upto``, as a new one beside it. ``copy`` names it.

    ``running``: somebody writes it now, so a last turn without its end is still going on and is left out.
    """
    target = source.parent / copy.id
    try:
        header = read_header(source / FILE) or Header(source.name, "", time.time())
        OURS.check(header.schema_version, source.name)
        lines = partial(_lines, source / FILE, (source / FILE).stat().st_size)
        chosen = islice(lines(), _first_turns(lines, upto, running=running))
    except OSError as error:
        raise unreadable(source, error) from error
    copied = replace(
        copy, cwd=header.cwd, model=header.model, source=header.source, schema_version=header.schema_version
    )
    try:
        _share(_results(source / FOLDER), target / FOLDER)
        _share([path for path in (source / ATTACHED).glob("*") if not path.is_symlink()], target / ATTACHED)
        _write(target, chain((copied.line(),), chosen))
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        hint = "Check the space and the rights there; the original is as it was."
        raise StorageError(f"The copy cannot be written to {target}: {error.strerror or error}.", hint) from error


def _lines(path: Path, size: int) -> Iterator[bytes]:
    """Those behind the header that begin in the first ``size`` bytes; a torn last one is mended or left out."""
    for index, line in enumerate(forwards(path, size)):
        if index == 0 and (loads(line) or {}).get("type") == HEADER:
            continue
        if line.endswith(b"\n"):
            yield line
        elif is_record(line):
            yield line + b"\n"


def _first_turns(lines: Callable[[], Iterator[bytes]], upto: int | None, *, running: bool) -> int:
    """How many of the lines the copy takes. They are gone through again rather than held: there may be many."""
    count, begun, open_ = 0, 0, False
    for count, line in enumerate(lines(), 1):
        if starts_turn(line):
            begun, open_ = count - 1, True
        elif ends_turn(line):
            open_ = False
    if running and open_:
        count = begun
    starts = turn_starts(islice(lines(), count))
    if not starts:
        raise UsageError("This session has no finished turn to copy.", "Fork it when its first answer is there.")
    if upto is None:
        return count
    if not 1 <= upto <= len(starts):
        turns = "1 turn" if len(starts) == 1 else f"{len(starts)} turns"
        raise UsageError(f"This session has {turns}, not {upto}.", f"Give a number from 1 to {len(starts)}.")
    return starts[upto] if upto < len(starts) else count


def _results(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if NAME.fullmatch(path.name.removesuffix(NOTE)) and not path.is_symlink()]


def _share(found: Sequence[Path], target: Path) -> None:
    """Stored files, so that the copy's references can be read. They never change: a second name will do."""
    if found:
        make_private(target)
    for path in found:
        # What the clean-up takes just now is left out.
        with contextlib.suppress(FileNotFoundError):
            try:
                os.link(path, target / path.name)
            except OSError:
                shutil.copyfile(path, target / path.name)
                (target / path.name).chmod(0o600)


def _write(target: Path, lines: Iterable[bytes]) -> None:
    """All of it or nothing: the file gets its name when it is complete."""
    make_private(target)
    unfinished = target / f"{FILE}.new"
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(target / FILE)
