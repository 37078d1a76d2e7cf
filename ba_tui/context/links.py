"""Links to folders: no search follows them, because they may lead in circles, to files that were searched already, or
out of the workspace. So each search names those that it came upon.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from ba_tui.processes.brief import BriefRun, run_briefly, run_in_thread

SECONDS = 2.0
MOST_LINKS, MOST_NAMED, MOST_WALKED = 200, 5, 20_000
MOST_BYTES = 1_000_000
SKIPPED = (".git", "node_modules", "__pycache__", ".venv")


async def linked_folders(root: Path) -> Sequence[Path]:
    """Return the links to folders below ``root``; of a large folder those that are found within two seconds."""
    run = _search(root)
    return _folders(_split((await run_in_thread(run)).output) if run else _walked(root))


def linked_folders_now(root: Path) -> Sequence[Path]:
    """Return the same as ``linked_folders``. Blocks."""
    run = _search(root)
    return _folders(_split(run_briefly(run).output) if run else _walked(root))


def not_followed(links: Sequence[Path], place: Path, shown: Callable[[Path], str]) -> str:
    """Return a line that names links which a search of ``place`` did not follow; empty without links. Blocks."""
    real = Path(os.path.realpath(place))
    # What leads back to the folder itself has nothing more to find.
    left = [link for link in links if not real.is_relative_to(os.path.realpath(link))]
    if not left:
        return ""
    names = ", ".join(shown(link).replace("\n", "\\n") for link in left[:MOST_NAMED])
    more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
    return f"[links are not followed: {names}{more}; name one as path to look below it]"


def _search(root: Path) -> BriefRun | None:
    """Return a run of find, which takes a tenth of the time that Python takes; None where there is none."""
    find = shutil.which("find")
    skipped = [word for name in SKIPPED for word in ("-o", "-name", name)][1:]
    words = ("(", *skipped, ")", "-prune", "-o", "-type", "l", "-print0")
    return BriefRun((find, str(root), *words), SECONDS, most=MOST_BYTES) if find else None


def _split(output: bytes) -> Iterator[str]:
    return map(os.fsdecode, output.split(b"\0")[:-1])


def _walked(root: Path) -> Iterator[str]:
    def below() -> Iterator[tuple[str, str]]:
        for folder, folders, _ in os.walk(root):
            folders[:] = [name for name in folders if name not in SKIPPED]
            yield from ((folder, name) for name in folders)

    paths = (os.path.join(*each) for each in islice(below(), MOST_WALKED))  # noqa: PTH118 - a walk's inner loop
    return (path for path in paths if os.path.islink(path))  # noqa: PTH114 - as above


def _folders(links: Iterator[str]) -> Sequence[Path]:
    return sorted(Path(link) for link in islice(links, MOST_LINKS) if os.path.isdir(link))  # noqa: PTH112 - must not raise
