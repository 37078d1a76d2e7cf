"""Tells the two forms of a patch apart, out of whatever a model wraps them in, and reads it.

The forms themselves are patch_unified.py and patch_envelope.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ba_tui.core.text.patterns import regex
from ba_tui.tools.editing.documents import line_end
from ba_tui.tools.editing.patch_parts import FilePatch, Hunk, refused
from ba_tui.tools.editing.patch_unified import read_unified
from ba_tui.tools.failed import Failed

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_FILE = regex(r"\*\*\* (Add|Update|Delete) File:[ \t]*(.*\S)\s*")
_MOVE = regex(r"\*\*\* Move to:[ \t]*(.*\S)\s*")
_END_OF_FILE = "*** End of File"
_NUMBERS = regex(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_ELLIPSIS = {"", "...", "…"}
_HEADERS = "*** Add File: PATH, *** Update File: PATH or *** Delete File: PATH"


def read_envelope(lines: Sequence[str], first: int) -> list[FilePatch]:
    """``lines`` begin with the opening line, which is line ``first`` of the patch. Raises Failed."""
    last = len(lines)
    while last > 1 and not lines[last - 1].strip():
        last -= 1
    if lines[last - 1].strip() != _END:
        raise refused(first + last - 1, f"the patch does not end with {_END}; it may be cut off.", "Send it whole.")
    files: list[FilePatch] = []
    at = 1
    while at < last - 1:
        if not lines[at].strip():
            at += 1
            continue
        header = _FILE.fullmatch(lines[at].strip())
        if header is None:
            raise refused(first + at, f"expected {_HEADERS}, not {lines[at][:80]!r}.")
        end = at + 1
        # In an update a line that begins with a space is context, whatever stands behind it.
        padded = header[1] != "Update"
        while end < last - 1 and not _starts_file(lines[end].strip() if padded else lines[end]):
            end += 1
        files.append(_file(header, lines[at + 1 : end], first + at))
        at = end
    return files


def _starts_file(line: str) -> bool:
    return line.startswith("*** ") and not line.startswith((_END_OF_FILE, "*** Move to:"))


def _file(header: re.Match[str], body: Sequence[str], where: int) -> FilePatch:
    path = header[2]
    match header[1]:
        case "Add":
            return FilePatch("add", path, where, content=_content(body, where + 1))
        case "Delete":
            if any(line.strip() for line in body):
                raise refused(where + 1, "nothing may follow *** Delete File.")
            return FilePatch("delete", path, where)
        case _:
            return _update(path, body, where)


def _content(body: Sequence[str], where: int) -> str:
    """The lines of a new file, which ends with a line end; an empty last line stands for that line end."""
    count = len(body)
    while count and not body[count - 1].strip():
        count -= 1
    for number, line in enumerate(body[:count], where):
        if not line.startswith("+"):
            raise refused(number, f"every line of a new file begins with +, not {line[:80]!r}.")
    text = "\n".join(line[1:] for line in body[:count])
    if not count or text.endswith("\n"):
        return text
    return f"{text}\n" if text.endswith("\r") else text + line_end(text)


def _update(path: str, body: Sequence[str], where: int) -> FilePatch:
    patch = FilePatch("update", path, where)
    at = 0
    if body and (move := _MOVE.fullmatch(body[0])):
        patch.target, at = move[1], 1
    hunk: Hunk | None = None
    for number, line in enumerate(body[at:], where + 1 + at):
        if line.startswith("@@"):
            if hunk is None or hunk.lines:
                hunk = _opened(patch, number)
            _head(hunk, line.rstrip("\r"))
        elif line.rstrip() == _END_OF_FILE and hunk and hunk.lines:
            hunk.at_end, hunk = True, None
        elif not line.strip() and (hunk is None or not hunk.lines):
            continue
        else:
            hunk = hunk or _opened(patch, number)
            if not hunk.put(line):
                raise refused(number, f"a line of a hunk begins with a space, - or +, not {line[:80]!r}.")
    for each in patch.hunks:
        if not each.lines:
            raise refused(each.where, "the hunk has no lines.")
    if not patch.hunks and not patch.target:
        raise refused(where, f"the update of {path} has no hunk.")
    return patch


def _opened(patch: FilePatch, number: int) -> Hunk:
    hunk = Hunk(number)
    patch.hunks.append(hunk)
    return hunk


def _head(hunk: Hunk, line: str) -> None:
    if numbers := _NUMBERS.match(line):
        hunk.start = int(numbers[1])
        return
    anchor = line[2:].removeprefix(" ").removesuffix("@@").rstrip()
    if anchor.strip() not in _ELLIPSIS:
        hunk.anchors = (*hunk.anchors, anchor)


_HEREDOC = regex(r"\s*(?:apply_patch\s+)?<<-?\s*(['\"]?)(\w+)\1\s*")
_FENCE = regex(r"\s*(`{3,}|~{3,})\s*\w*\s*")
_FORMS = "Give a unified diff (--- a/file, +++ b/file, @@), or *** Begin Patch … *** End Patch."


def read_patch(text: str) -> list[FilePatch]:
    """The files of a patch, in its order.

    Raises:
        Failed: it is no patch, is cut off, or asks for what can't be done; says in which line.
    """
    lines, first = _unwrapped(text)
    if not lines:
        raise Failed("invalid_parameters", "The patch is empty.", _FORMS)
    files = read_envelope(lines, first) if lines[0].strip() == BEGIN else read_unified(lines, first)
    if not files:
        raise Failed("invalid_parameters", "The patch names no file.", _FORMS)
    return files


def _unwrapped(text: str) -> tuple[list[str], int]:
    """Its lines without blank ones, a code fence or a here-document around them, and the number of the first."""
    lines = text.split("\n")
    start, end = 0, len(lines)
    if end and lines[-1] == "":
        end -= 1
    while True:
        while start < end and not lines[start].strip():
            start += 1
        last = end
        while last > start and not lines[last - 1].strip():
            last -= 1
        if last - start < 2:
            break
        opening, closing = lines[start], lines[last - 1].strip()
        fence, here = _FENCE.fullmatch(opening), _HEREDOC.fullmatch(opening)
        if not (fence and closing == fence[1]) and not (here and closing == here[2]):
            break
        start, end = start + 1, last - 1
    return lines[start:end], start + 1
