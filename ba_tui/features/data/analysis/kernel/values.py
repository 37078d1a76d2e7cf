"""What a call of the kernel shows and how it ended, as values; read from what the kernel says, which is not trusted."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from ba_tui.core.ports.python import Variable
from ba_tui.core.ports.tables import Cell, QueryResult
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.errors import AnalysisError

MOST_ROWS, MOST_COLUMNS, MOST_NAME = 50, 220, 300


class KernelFailed(AnalysisError):
    """The kernel could not start, or ended in the middle of a call."""


@frozen
class ShownText:
    text: str


@frozen
class ShownTable:
    """The first ``rows`` of a DataFrame that has ``total`` rows and ``width`` columns; ``plain`` is its own text."""

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
    """A picture that was kept as the file of this name."""

    file: str


Shown: TypeAlias = ShownText | ShownTable | ShownPicture


@frozen
class CodeError:
    """An exception of the code: its frames in short, for models, and in full."""

    name: str
    short: str
    full: str

    @property
    def line(self) -> str:
        """The error in one line."""
        return self.short.strip().rpartition("\n")[2]


@frozen
class Ran:
    """A call that came to its end. ``late``: it took too long and was interrupted. ``files``: those that it wrote, with
    their sizes in bytes; ``kept``: results that it made; ``notes``: what was to be known before it ran."""

    shown: tuple[Shown, ...] = ()
    error: CodeError | None = None
    late: bool = False
    files: tuple[tuple[str, int], ...] = ()
    seconds: float = 0.0
    kept: tuple[QueryResult, ...] = ()
    notes: tuple[str, ...] = ()


def ran(reply: Any, kept: tuple[QueryResult, ...], notes: tuple[str, ...]) -> Ran:
    """Return what the process of the kernel says of a call. Raises KernelFailed when it makes no sense."""
    try:
        handles = {each.handle for each in kept}
        shown = tuple(_shown(each, handles) for each in reply["parts"])
        error = reply["error"]
        failed = CodeError(_text(error["name"]), _text(error["short"]), _text(error["full"])) if error else None
        files = tuple((_text(name), int(size)) for name, size in reply["files"])
        return Ran(shown, failed, bool(reply["late"]), files, float(reply["seconds"]), kept, notes)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise KernelFailed(f"Python gave a reply that can't be read ({type(error).__name__}).") from error


def variables(reply: Any) -> tuple[Variable, ...]:
    """Return the variables that it lists; what makes no sense is left out."""
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
        # A handle that this call did not make would open another table.
        handle if handle in handles else "",
        plain,
    )


def _cell(value: Any) -> Cell:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
