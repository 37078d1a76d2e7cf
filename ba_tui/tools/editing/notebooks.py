"""Jupyter notebooks for read_file and edit_file: their cells as text, and changes of one cell's source.

The JSON around a changed source stays the same, byte for byte. Notebooks older than format 4 are read as JSON.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ba_tui.core.messages import Image
from ba_tui.core.provider import Modalities
from ba_tui.core.results import Prose, ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.processes.terminal_text import plain, shortened
from ba_tui.tools.builtin.media import ATTACHED, attached, measured
from ba_tui.tools.editing.documents import line_end, with_line_end
from ba_tui.tools.failures import ToolFailure

MAX_CELLS = 200
MAX_CHARS = 28_000
OUTPUT_CHARS = 2_000
MAX_PICTURES = 8
_SPACE = regex(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@frozen
class NotebookCell:
    """``number`` starts at 1; ``start`` and ``end`` delimit the value of its source in the file."""

    number: int
    id: str
    kind: str
    source: str
    start: int
    end: int
    count: int | None
    outputs: tuple[dict[str, Any], ...]


def read_notebook(text: str) -> tuple[NotebookCell, ...] | None:
    """Return the cells of a notebook; None for other files and old formats."""
    try:
        _DECODER.decode(text)
        return tuple(_cells(text))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def find_cell(cells: Sequence[NotebookCell], wanted: str | int | None, old: str, shown: str) -> NotebookCell | None:
    """Return the cell of an edit: by number or id, else the cell that contains ``old``; None if none does.

    Raises:
        ToolFailure: there is no such cell, or several hold the text.
    """
    if wanted is None:
        found = [cell for cell in cells if old in cell.source]
        if len(found) > 1:
            numbers = ", ".join(str(cell.number) for cell in found)
            raise ToolFailure(
                "validation_error", f"The cells {numbers} contain old_string.", "Name one of them with cell."
            )
        return found[0] if found else None
    found = [cell for cell in cells if cell.id == wanted] or [cell for cell in cells if str(cell.number) == str(wanted)]
    if len(found) == 1:
        return found[0]
    raise ToolFailure(
        "not_found", f"{shown} has {len(cells)} cells and no cell {wanted!r}.", "Read it for their numbers."
    )


def with_source(text: str, cell: NotebookCell, source: str) -> str:
    """Return the file with another source in ``cell``, in the old form: a list of lines, or one string."""
    value = text[cell.start : cell.end]
    lines = re.findall(r"[^\n]*\n|[^\n]+", source)
    escaped = value.isascii() and "\\u" in value
    if not value.startswith("["):
        new = json.dumps(source, ensure_ascii=escaped)
    elif not lines:
        new = "[]"
    else:
        rows = [json.dumps(line, ensure_ascii=escaped) for line in lines]
        outer = re.match(r"[ \t]*", text[text.rfind("\n", 0, cell.start) + 1 :])
        indent = outer.group(0) if outer else ""
        first = re.match(r"\[\r?\n([ \t]*)", value)
        inner = first[1] if first else f"{indent} "
        compact = not first and "\n" not in text.strip()
        new = f"[{', '.join(rows)}]" if compact else "[\n" + ",\n".join(inner + row for row in rows) + f"\n{indent}]"
    return text[: cell.start] + with_line_end(new, line_end(text)) + text[cell.end :]


def read_cells(cells: Sequence[NotebookCell], shown: str, span: tuple[int, int], modalities: Modalities) -> ToolResult:
    """Return the text of cells. ``span``: the first cell, from 1, and their number at most. Raises ToolFailure."""
    first, limit = span
    if not cells:
        return ToolResult(f"{shown} is a notebook without cells.", summary="0 cells")
    if first > len(cells):
        message = f"{shown} has {len(cells)} cells; there is no cell {first}."
        raise ToolFailure("validation_error", message, "Use a smaller offset.")
    album = _Album(modalities.pictures(), [])
    parts: list[str] = []
    size = 0
    for cell in cells[first - 1 : first - 1 + min(limit, MAX_CELLS)]:
        part = _shown(cell, album)
        if parts and size + len(part) > MAX_CHARS:
            break
        parts.append(shortened(part, MAX_CHARS))
        size += len(part)
    last = first + len(parts) - 1
    note = f"; go on with offset={last + 1}" if last < len(cells) else ""
    body = "\n\n".join(parts)
    text = f"{body}\n\n[cells {first}-{last} of {len(cells)}{note}]"
    count = f"{len(parts)} of {len(cells)} cells"
    return ToolResult(text, Prose(body), summary=count, attachments=tuple(album.pictures))


@dataclass(slots=True)
class _Album:
    """Pictures of the outputs, attached while they fit and the model sees pictures."""

    seen: bool
    pictures: list[Image]

    def take(self, media_type: str, encoded: str) -> str:
        try:
            data = base64.b64decode(encoded)
        except (binascii.Error, ValueError):
            return f"({media_type}, broken)"
        picture = measured(data)
        if picture is None:
            return f"({media_type})"
        room = (
            len(self.pictures) < MAX_PICTURES and len(data) + sum(len(item.data) for item in self.pictures) < ATTACHED
        )
        if not (self.seen and room):
            return f"({picture.shown}{'' if self.seen else '; the model in use sees no pictures'})"
        self.pictures.append(attached(picture, data))
        return f"({picture.shown}; attached as picture {len(self.pictures)})"


def _shown(cell: NotebookCell, album: _Album) -> str:
    head = f"[cell {cell.number}] {cell.kind}"
    if cell.id:
        head += f" id={cell.id}"
    if cell.count is not None:
        head += f" run as [{cell.count}]"
    rows = [head, cell.source]
    rows.extend(f"--- output\n{_output(output, album)}" for output in cell.outputs)
    return "\n".join(rows)


def _output(output: dict[str, Any], album: _Album) -> str:
    if output.get("output_type") == "stream":
        return _short(_joined(output.get("text")))
    if output.get("output_type") == "error":
        trace = _joined([f"{line}\n" for line in _strings(output.get("traceback"))])
        return _short(trace or f"{output.get('ename')}: {output.get('evalue')}")
    data: Any = output.get("data")
    parts: list[str] = []
    for kind, value in cast("dict[str, Any]", data).items() if isinstance(data, dict) else ():
        if kind in {"image/png", "image/jpeg", "image/gif", "image/webp"}:
            parts.append(album.take(kind, _joined(value)))
        elif kind in {"text/plain", "text/markdown", "application/json"}:
            parts.append(_short(_joined(value)))
        elif "text/plain" not in data:
            parts.append(f"({kind})")
    return "\n".join(parts)


def _short(text: str) -> str:
    return shortened(plain(text).rstrip(), OUTPUT_CHARS)


def _joined(value: Any) -> str:
    """Return text that a notebook has as one string or as a list of lines."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_strings(cast("list[Any]", value)))
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _strings(value: Any) -> list[str]:
    return [item for item in cast("list[Any]", value) if isinstance(item, str)] if isinstance(value, list) else []


def _cells(text: str) -> Iterator[NotebookCell]:
    """Yield the cells. Raises ValueError, KeyError or TypeError for an invalid notebook."""
    top = _members(text, _skip(text, 0))
    if int(_value(text, top["nbformat"])) < 4:
        raise ValueError("an old format")
    for number, at in enumerate(_items(text, top["cells"][0]), 1):
        places = _members(text, at)
        cell: dict[str, Any] = _DECODER.raw_decode(text, at)[0]
        count = cell.get("execution_count")
        outputs = cast("list[Any]", cell.get("outputs") or [])
        start, end = places["source"]
        yield NotebookCell(
            number,
            str(cell.get("id", "")),
            str(cell["cell_type"]),
            _joined(cell["source"]),
            start,
            end,
            count if isinstance(count, int) else None,
            tuple(cast("dict[str, Any]", output) for output in outputs if isinstance(output, dict)),
        )


def _value(text: str, place: tuple[int, int]) -> Any:
    return _DECODER.raw_decode(text, place[0])[0]


def _members(text: str, at: int) -> dict[str, tuple[int, int]]:
    """Return where the values of the object at ``at`` are. The JSON was validated before."""
    if text[at : at + 1] != "{":
        raise ValueError("no object")
    places: dict[str, tuple[int, int]] = {}
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        places[key] = (start, end)
        at = _next(text, end)
    return places


def _items(text: str, at: int) -> Iterator[int]:
    """Yield where each item of the array at ``at`` begins."""
    if text[at : at + 1] != "[":
        raise ValueError("no array")
    at = _skip(text, at + 1)
    while text[at] != "]":
        yield at
        _, end = _DECODER.raw_decode(text, at)
        at = _next(text, end)


def _next(text: str, end: int) -> int:
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
