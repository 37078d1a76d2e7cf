"""What a program prints: head and tail in memory, and once it is large, a file for it.

The file itself is sessions/artifacts.py; who reads the program's pipe is children.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from ba_tui.core.errors import StorageError
from ba_tui.core.results import Kind
from ba_tui.core.text.wording import byte_size
from ba_tui.processes.terminal_text import Capture


class Stored(Protocol):
    @property
    def ref(self) -> str: ...


class OutputSpill(Protocol):
    """A file that a large output goes into while it comes. Each method may raise OSError or StorageError."""

    @property
    def largest(self) -> int: ...

    @property
    def left_out(self) -> int: ...

    def write(self, data: bytes) -> None: ...

    def finish(self, kind: Kind) -> Stored: ...

    def drop(self) -> None: ...


NewSpill = Callable[[], OutputSpill]


class Output:
    """What a program prints: head and tail in memory, and once it is large all of it in a file. Thread-safe."""

    def __init__(self, new_spill: NewSpill | None = None) -> None:
        self.ref: str | None = None
        self.trouble = ""
        """Why the whole is not stored although it should be."""
        self._new_spill = new_spill
        self._spill: OutputSpill | None = None
        self._capture = Capture()
        self._lock = threading.Lock()

    @property
    def total(self) -> int:
        return self._capture.total

    @property
    def lines(self) -> int:
        return self._capture.lines

    def feed(self, data: bytes) -> None:
        with self._lock:
            self._capture.feed(data)
        if self._new_spill is None or self._capture.total <= Capture.HEAD:
            return
        try:
            if self._spill is None:
                self._spill = self._new_spill()
                data = self._capture.after(0)[1]
            self._spill.write(data)
            if self._spill.left_out and not self.trouble:
                self.trouble = f"more than {byte_size(self._spill.largest)}: only head and tail are stored"
        except (OSError, StorageError) as error:
            self._forget(error)

    def close(self, *, keep: bool) -> None:
        """No more will come. ``keep``: the stored whole is wanted."""
        if self._spill is None:
            return
        try:
            if keep:
                self.ref = self._spill.finish("text").ref
            else:
                self._spill.drop()
        except (OSError, StorageError) as error:
            self._forget(error)

    def _forget(self, error: Exception) -> None:
        self.trouble = f"the whole could not be stored: {error}"
        self._new_spill = None
        if self._spill:
            with suppress(OSError, StorageError):
                self._spill.drop()

    def text(self) -> str:
        """As text with colours, its middle left out when it is large."""
        with self._lock:
            return self._capture.text()

    def after(self, offset: int) -> tuple[int, bytes]:
        """How many bytes from ``offset`` on are no longer in memory, and the rest."""
        with self._lock:
            return self._capture.after(offset)
