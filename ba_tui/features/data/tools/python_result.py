"""What the model and the person read of a call of the Python kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ba_tui.core.messages import Image
from ba_tui.core.ports.tables import Column
from ba_tui.core.results import CommandText, Display, Table, ToolResult, failure
from ba_tui.core.text.wording import byte_size, count, one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.kernel.values import Ran, Shown, ShownPicture, ShownTable
from ba_tui.features.data.tools.python_place import FOLDER
from ba_tui.features.data.tools.query_data import rows_text
from ba_tui.processes.limits import GIGABYTE
from ba_tui.processes.terminal_text import plain
from ba_tui.resources import open_unlinked
from ba_tui.tools.builtin.images import LONGEST_SIDE, attached, measured
from ba_tui.tools.modalities import ATTACHED, Modalities

MOST_FILES = 20
MOST_PICTURES = 4
READ_ONLY = "Python can't write here: write files to ba.folder, or save text in the workspace with write_file"
NO_NETWORK = "Python has no network"
KEPT_VALUES = "variables that were set before this keep their values"


@frozen
class PythonCall:
    """``code`` that ran for at most ``seconds``; ``files`` is where it may write, ``memory`` in bytes. ``lost``: what
    is to be said of variables of earlier calls."""

    code: str
    files: Path
    memory: int
    seconds: float
    lost: str = ""


def python_result(ran: Ran, call: PythonCall, modalities: Modalities) -> ToolResult:
    """Return the observation and what people see. Blocks: it reads pictures for a model that sees them."""
    pictures = [each for each in ran.shown if isinstance(each, ShownPicture)]
    read = [_picture(call.files, each) for each in pictures[:MOST_PICTURES]] if modalities.pictures() else []
    seen = tuple(each for each in read if each)
    body = "\n".join(filter(None, map(_said, ran.shown)))
    if ran.error and not ran.late:
        body = "\n".join(filter(None, (body, ran.error.short)))
    notes = [*_hints(ran, call), *_files(ran, pictures), *ran.notes, *([call.lost] if call.lost else [])]
    notes += [_kept(each.handle, each.rows) for each in ran.kept]
    text = "\n".join([body or "(no output)", *(f"[{note}]" for note in notes)])
    display = _display(ran, call, notes)
    if ran.late:
        message = f"The code ran longer than {call.seconds:g} s and was interrupted; its variables are kept."
        failed = failure("timeout", message, display=display)
        said = f"{failed.text}\nOutput so far (partial):\n{text}"
        return replace(failed, text=said, meta={"partial": True})
    table = display if isinstance(display, Table) else None
    return ToolResult(
        text,
        display,
        summary=_summary(ran, table, pictures),
        attachments=seen,
        meta={"result": table.handle} if table and table.handle else {},
    )


def _said(shown: Shown) -> str:
    if isinstance(shown, ShownPicture):
        return f"[picture: {FOLDER}/{shown.file}]"
    if isinstance(shown, ShownTable):
        return "\n".join([_title(shown), *rows_text(_columns(shown), shown.rows)])
    return plain(shown.text).rstrip("\n")


def _columns(table: ShownTable) -> Sequence[Column]:
    return [Column(name, kind) for name, kind in zip(table.columns, table.types, strict=False)]


def _title(table: ShownTable) -> str:
    first = "" if len(table.rows) == table.total else f"; the first {len(table.rows):,} follow"
    handle = f"{table.handle}: " if table.handle else ""
    return f"{handle}{one_line(table.kind, 40)}, {count(table.total, 'row')}, {count(table.width, 'column')}{first}."


def _hints(ran: Ran, call: PythonCall) -> Iterator[str]:
    """What to do about an error."""
    if ran.error is None:
        return
    yield KEPT_VALUES
    line = ran.error.line
    if "Read-only file system" in line or ran.error.name == "PermissionError":
        yield READ_ONLY
    elif "Network is unreachable" in line or "name resolution" in line:
        yield NO_NETWORK
    elif ran.error.name in {"MemoryError", "_ArrayMemoryError", "ArrayMemoryError"}:
        yield f"Python may use {call.memory / GIGABYTE:.1f} GB of memory (analysis.python_memory_gb)"


def _files(ran: Ran, pictures: Sequence[ShownPicture]) -> Iterator[str]:
    """The files that the call wrote; those of pictures are named where they stand."""
    shown = {each.file for each in pictures}
    files = [(name, size) for name, size in ran.files if name not in shown]
    if files:
        named = ", ".join(f"{FOLDER}/{one_line(name, 200)} ({byte_size(size)})" for name, size in files[:MOST_FILES])
        more = f" and {len(files) - MOST_FILES:,} more" if len(files) > MOST_FILES else ""
        yield f"written: {named}{more}"


def _kept(handle: str, rows: int) -> str:
    return f"kept as {handle}, {count(rows, 'row')}: query_data and ba.table read it"


def _display(ran: Ran, call: PythonCall, notes: Sequence[str]) -> Display:
    """A table alone is a table, which Enter opens; all else is shown as a prompt would show it."""
    if len(ran.shown) == 1 and isinstance(table := ran.shown[0], ShownTable) and not ran.error:
        return Table(table.columns, table.rows, handle=table.handle, total=table.total)
    parts = [_painted(each) for each in ran.shown]
    full = ran.error.full if ran.error else ""
    output = "\n".join([*filter(None, (*parts, full)), *(f"[{note}]" for note in notes)])
    return CommandText(call.code, "", output, 1 if ran.error else 0)


def _painted(shown: Shown) -> str:
    """A part as a person reads it, with a way to take a picture out of the session."""
    if isinstance(shown, ShownPicture):
        return f"[picture: {FOLDER}/{shown.file} · /python save {shown.file}]"
    return shown.plain if isinstance(shown, ShownTable) else _said(shown)


def _summary(ran: Ran, table: Table | None, pictures: Sequence[ShownPicture]) -> str:
    if ran.error:
        return one_line(ran.error.line, 100)
    if table:
        rows = count(table.total, "row")
        return f"{table.handle} · {rows}" if table.handle else rows
    if ran.kept:
        return f"{ran.kept[-1].handle} · {count(ran.kept[-1].rows, 'row')}"
    if pictures:
        return pictures[-1].file
    return f"{ran.seconds:.1f} s"


def _picture(folder: Path, shown: ShownPicture) -> Image | None:
    """The picture for a model; None where it is none, or too large. The kernel may have put anything in its place."""
    if Path(shown.file).name != shown.file:
        return None
    try:
        with open_unlinked(folder / shown.file) as file:
            data = file.read(ATTACHED + 1)
    except OSError:
        return None
    picture = measured(data)
    if picture is None or len(data) > ATTACHED or max(picture.width, picture.height) > LONGEST_SIDE:
        return None
    return attached(picture, data)
