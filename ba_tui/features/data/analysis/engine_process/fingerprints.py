"""Fingerprints of files: size, time and hash. Large files are hashed while they are loaded."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path

from ba_tui.core.ports.tables import Fingerprint
from ba_tui.features.data.analysis.engine_process.failures import unreadable
from ba_tui.processes.serving import RequestCancelled, WorkerRequest

PIECE = 4_000_000


class Fingerprinting:
    """Hashes ``paths`` in a thread of its own, which ends with the ``with``."""

    def __init__(self, request: WorkerRequest, paths: Sequence[Path]) -> None:
        self._request = request
        self._paths = paths
        self._stopped = threading.Event()
        self._made: list[Fingerprint] = []
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="fingerprints")

    def __enter__(self) -> Fingerprinting:
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._stopped.set()
        self._thread.join()

    def result(self) -> tuple[Fingerprint, ...]:
        """Wait, and return one fingerprint for each path. Raises HandlerFailed where a file can't be read."""
        self._thread.join()
        if self._failure:
            raise self._failure
        return tuple(self._made)

    def _run(self) -> None:
        try:
            for path in self._paths:
                self._made.append(self._fingerprint(path))
        except OSError as error:
            self._failure = unreadable(f"{Path(error.filename or '').name} can't be read: {error.strerror}.")
        except RequestCancelled as error:
            self._failure = error

    def _fingerprint(self, path: Path) -> Fingerprint:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            # Before the content: a write meanwhile is then noticed at the next look.
            state = path.stat()
            while data := file.read(PIECE):
                if self._stopped.is_set() or self._request.cancelled.is_set():
                    raise RequestCancelled
                digest.update(data)
        return Fingerprint(str(path), state.st_size, state.st_mtime_ns, digest.hexdigest())
