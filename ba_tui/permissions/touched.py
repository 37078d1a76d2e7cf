"""Paths that a call touches, as the rules judge them."""

from __future__ import annotations

from pathlib import Path

from ba_tui.core.values import frozen


@frozen
class TouchedPath:
    """One path of a call. ``relative``: from the root; ``places``: from each folder of the workspace it lies in."""

    path: Path
    relative: str | None
    places: tuple[str, ...]
    inside: bool
    secret: bool
    guarded: bool

    @property
    def shown(self) -> str:
        return self.path.as_posix() if self.relative is None else self.relative
