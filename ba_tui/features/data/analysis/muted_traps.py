"""Kinds of traps that the user has muted, by file. Saved in ba's state folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError
from ba_tui.core.ports.settings import ALL, KINDS
from ba_tui.core.ports.tables import TrapFinding
from ba_tui.resources import exclusive, read_regular, save_whole

log = logging.getLogger(__name__)
LARGEST = 1_000_000
MUTED = "muted_traps.json"


class MutedTraps:
    """Muted kinds by the absolute path of each file, saved in ``store`` (None: not saved). ``always``: kinds muted for
    all data, or ``all``. All methods but ``marked`` block."""

    def __init__(self, store: Path | None = None, always: Sequence[str] = ()) -> None:
        self._store = store
        self._always = frozenset(KINDS) if ALL in always else frozenset(always)
        self._kept: dict[str, list[str]] | None = None

    def marked(self, findings: Iterable[TrapFinding], paths: Iterable[str]) -> tuple[TrapFinding, ...]:
        """Return the findings of a dataset read from ``paths``, with muted ones marked."""
        kinds = self._kinds(paths)
        return tuple(replace(each, muted=each.trap in kinds) for each in findings)

    def mute(self, trap: str, paths: Iterable[str], *, muted: bool) -> None:
        """Mute or unmute a kind for the data of these files. Raises StorageError."""
        own = tuple(paths)
        if self._store is None:
            self._kept = _changed(self._known(), trap, own, muted=muted)
            return
        try:
            with exclusive(self._store.parent):
                self._kept = _changed(self._read(), trap, own, muted=muted)
                save_whole(self._store, json.dumps(self._kept))
        except OSError as error:
            raise StorageError(f"The list of muted traps can't be saved: {error.strerror}.") from error

    def _kinds(self, paths: Iterable[str]) -> frozenset[str]:
        kept = self._known()
        return self._always | {kind for path in paths for kind in kept.get(path, ())}

    def _known(self) -> dict[str, list[str]]:
        if self._kept is None:
            self._kept = self._read()
        return self._kept

    def _read(self) -> dict[str, list[str]]:
        try:
            data: Any = json.loads(read_regular(self._store, LARGEST)) if self._store else {}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            log.warning("the list of muted traps can't be read: %s", error)
            return {}
        if not isinstance(data, dict):
            return {}
        known = cast("dict[str, Any]", data)
        lists = {path: cast("list[Any]", kinds) for path, kinds in known.items() if isinstance(kinds, list)}
        return {path: [str(kind) for kind in kinds] for path, kinds in lists.items()}


def _changed(kept: dict[str, list[str]], trap: str, paths: Iterable[str], *, muted: bool) -> dict[str, list[str]]:
    made = dict(kept)
    for path in paths:
        kinds = {*made.pop(path, ()), trap} if muted else set(made.pop(path, ())) - {trap}
        if kinds:
            made[path] = sorted(kinds)
    return made
