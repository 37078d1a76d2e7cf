"""The output of a kernel call as values, validated because the kernel's messages are untrusted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeAlias, cast

from ba_tui.core.ports.datasets import Variable
from ba_tui.core.ports.tables import Cell, QueryResult
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.errors import AnalysisError

MOST_ROWS, MOST_COLUMNS, MOST_NAME = 50, 220, 300


class KernelFailed(AnalysisError):
    """The kernel could not start, or ended during a call."""


@frozen
class ShownText:
    text: str


@frozen
class ShownTable:
    """The first ``rows`` of a DataFrame with ``total`` rows and ``width`` columns; ``plain`` is its text form."""

    kind: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    width: int
    handle: str = ""
    plain: str = ""


@frozen
class ShownPicture:
    """A picture, saved as the named file."""

    file: str


Shown: TypeAlias = ShownText | ShownTable | ShownPicture


@frozen
class CodeError:
    """An exception in the code: a short traceback for models, and the full one."""

    name: str
    short: str
    full: str

    @property
    def line(self) -> str:
        """The error in one line."""
        return self.short.strip().rpartition("\n")[2]


@frozen
class CallResult:
    """A finished call. ``late``: it was interrupted after its time limit. ``files``: written files with sizes in bytes;
    ``kept``: results that it stored; ``notes``: remarks from before the call."""

    shown: tuple[Shown, ...] = ()
    error: CodeError | None = None
    late: bool = False
    files: tuple[tuple[str, int], ...] = ()
    seconds: float = 0.0
    kept: tuple[QueryResult, ...] = ()
    notes: tuple[str, ...] = ()


def call_result(reply: Any, kept: tuple[QueryResult, ...], notes: tuple[str, ...]) -> CallResult:
    """Return the output in a reply of the kernel's process. Raises KernelFailed for an invalid reply."""
    try:
        handles = {each.handle for each in kept}
        shown = tuple(_shown(each, handles) for each in reply["parts"])
        error = reply["error"]
        failed = CodeError(_text(error["name"]), _text(error["short"]), _text(error["full"])) if error else None
        files = tuple((_text(name), int(size)) for name, size in reply["files"])
        return CallResult(shown, failed, bool(reply["late"]), files, float(reply["seconds"]), kept, notes)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise KernelFailed(f"Python gave a reply that can't be read ({type(error).__name__}).") from error


def variables(reply: Any) -> tuple[Variable, ...]:
    """Return the variables in a reply; invalid entries are skipped."""
    rows = cast("list[Any]", reply) if isinstance(reply, list) else []
    lists = [cast("list[Any]", row)[:3] for row in rows if isinstance(row, list) and row]
    return tuple(Variable(*([_text(cell)[:MOST_NAME] for cell in row] + [""] * (3 - len(row)))) for row in lists)


def _shown(part: Any, handles: set[str]) -> Shown:
    match part["kind"]:
        case "table":
            return _table(part["table"], _text(part.get("plain", "")), handles)
        case "picture":
            return ShownPicture(_text(part["file"]))
        case _:
            return ShownText(_text(part["text"]))


def _table(given: Any, plain: str, handles: set[str]) -> ShownTable:
    columns = tuple(_text(each)[:MOST_NAME] for each in given["columns"][:MOST_COLUMNS])
    rows = tuple(
        tuple(_cell(value) for value in row[: len(columns)]) + (None,) * (len(columns) - len(row))
        for row in given["rows"][:MOST_ROWS]
    )
    handle = _text(given.get("handle", ""))
    return ShownTable(
        _text(given["kind"])[:MOST_NAME],
        columns,
        tuple(_text(each)[:MOST_NAME] for each in given["types"][: len(columns)]),
        rows,
        int(given["total"]),
        int(given["width"]),
        # A handle that this call did not store would open another table.
        handle if handle in handles else "",
        plain,
    )


def _cell(value: Any) -> Cell:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


# Files in a kernel's folder: the kernel process reports what a call wrote, the app lists all.

MOST = 1_000


def files_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the regular files in ``folder`` by relative path: size in bytes and modification time in nanoseconds.
    Hidden files and links are skipped; at most ``MOST`` files are returned. Blocks."""
    found: dict[str, tuple[int, int]] = {}
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(above, name)
            if name.startswith(".") or path.is_symlink() or not path.is_file():
                continue
            try:
                status = path.stat()
            except OSError:
                continue
            found[path.relative_to(folder).as_posix()] = (status.st_size, status.st_mtime_ns)
            if len(found) >= MOST:
                return found
    return found
