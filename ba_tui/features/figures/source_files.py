"""The files that results were read from, and which of them changed since."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from ba_tui.core.ports.tables import Catalogue, Provenance
from ba_tui.core.text.figures import SourceFile


def files_of(catalogue: Catalogue) -> Mapping[str, Sequence[SourceFile]]:
    """Return the files behind each result by handle, including the files of results that its query read."""
    known = {result.handle: result.provenance for result in catalogue.results}
    return {handle: tuple(dict.fromkeys(_files(handle, known))) for handle in known}


def _files(handle: str, known: Mapping[str, Provenance]) -> Iterable[SourceFile]:
    waiting, seen = [handle], {handle}
    while waiting:
        provenance = known.get(waiting.pop())
        if provenance is None:
            continue
        for used in provenance.datasets:
            for file in used.files:
                yield SourceFile(file.path, file.size, file.mtime_ns)
        fresh = [name for name in provenance.results if name not in seen]
        seen.update(fresh)
        waiting += fresh


def changed(files: Iterable[SourceFile]) -> tuple[str, ...]:
    """Return the paths of ``files`` that are gone or have another size or modification time. Blocks."""
    return tuple(dict.fromkeys(file.path for file in files if _is_changed(file)))


def _is_changed(file: SourceFile) -> bool:
    try:
        found = os.stat(file.path)  # noqa: PTH116 - half the cost of Path.stat
    except OSError:
        return True
    return (found.st_size, found.st_mtime_ns) != (file.size, file.mtime_ns)
