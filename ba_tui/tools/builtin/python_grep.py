"""The search of grep without ripgrep: a script that prints matches as ``rg --null`` does.

It runs as a child process, so that a slow expression can be ended; no module imports it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ba_tui.core.messages import clean_text
from ba_tui.tools.editing.documents import binary_kind, detect, plain_lines
from ba_tui.tools.folder_walk import FolderWalk, Glob, walked

LARGEST = 20_000_000


def main(flags: str, pattern: str, place: str, glob: str) -> int:
    mode, ignore_case, context, columns = flags.split(",")
    try:
        wanted = re.compile(pattern, re.IGNORECASE if int(ignore_case) else 0)
    except re.error as error:
        sys.stderr.write(f"{error}\n")
        return 2
    found = False
    for path in _files(Path(place), glob):
        lines = _lines(path)
        hits = [index for index, line in enumerate(lines) if wanted.search(line)]
        if not hits:
            continue
        found = True
        match mode:
            case "files":
                sys.stdout.write(f"{path}\0")
            case "count":
                sys.stdout.write(f"{path}\0{len(hits)}\n")
            case _:
                _print_hits(path, lines, hits, (int(context), int(columns)))
    return 0 if found else 1


def _files(place: Path, glob: str) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    wanted = Glob(glob.removeprefix("!")) if glob else None
    for entry in walked(place, FolderWalk()):
        if entry.folder or entry.link is not None:
            continue
        path = Path(entry.path)
        if wanted is None or wanted.fits(str(path.relative_to(place)), folder=False) is not glob.startswith("!"):
            yield path


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        return []
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST)
    except OSError:
        return []
    if binary_kind(data[:8192]):
        return []
    lines = plain_lines(detect(data).decode(data)).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _print_hits(path: Path, lines: Sequence[str], hits: Sequence[int], limits: tuple[int, int]) -> None:
    context, columns = limits
    matching = set(hits)
    last = -1
    for hit in hits:
        first = max(hit - context, last + 1)
        if context and 0 <= last < first - 1:
            sys.stdout.write("--\n")
        for index in range(first, min(hit + context + 1, len(lines))):
            if index > last and (index <= hit or index not in matching):
                sign = ":" if index in matching else "-"
                sys.stdout.write(f"{path}\0{index + 1}{sign}{clean_text(lines[index][:columns])}\n")
                last = index
            elif index in matching:
                break


if __name__ == "__main__":
    # Names are bytes; the content of files is decoded text.
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    sys.exit(main(*sys.argv[1:]))
