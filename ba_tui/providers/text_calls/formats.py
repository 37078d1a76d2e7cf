"""What was learnt of models that write calls as text, kept in one small file: which of them do, and in which form.

A file that is missing or damaged costs only what it said. How calls are written is not known here.
"""

from __future__ import annotations

import json
import logging
import threading
from contextlib import suppress
from pathlib import Path
from typing import cast, get_args

from ba_tui.core.errors import StorageError
from ba_tui.core.provider import ToolCalling
from ba_tui.core.values import frozen
from ba_tui.providers.wire.shapes import fields, text_of
from ba_tui.resources import exclusive, read_regular, save_whole

log = logging.getLogger(__name__)
LARGEST = 262_144
MODELS = 500


@frozen
class Learnt:
    """``form`` is the one that the model writes calls in; ``why`` says in a few words how that was found out."""

    form: ToolCalling
    why: str


class Formats:
    """Read once, when it is first asked. ``learn`` takes as long as a disk does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.version = 0
        """Grows with each model that something was learnt of."""
        self._lock = threading.Lock()
        self._models: dict[str, Learnt] | None = None

    def of(self, model: str) -> Learnt | None:
        """What is known of the model with this id; None while it is asked as its server offers it."""
        with self._lock:
            if self._models is None:
                self._models = self._read()
            return self._models.get(model)

    def learn(self, model: str, learnt: Learnt) -> None:
        """From now on, and in later runs. What can't be saved holds for now."""
        self.of(model)
        with self._lock:
            now = self._models = {**(self._models or {}), model: learnt}
            self.version += 1
        with suppress(StorageError), exclusive(self.path.parent):
            # Another process may have learnt something meanwhile.
            kept = list({**self._read(), **now}.items())[-MODELS:]
            lines = {id: {"form": each.form, "why": each.why} for id, each in kept}
            save_whole(self.path, json.dumps(lines, ensure_ascii=False, indent=1) + "\n", mode=0o600)

    def _read(self) -> dict[str, Learnt]:
        found: dict[str, Learnt] = {}
        try:
            read: object = json.loads(read_regular(self.path, LARGEST))
        except (FileNotFoundError, NotADirectoryError):
            return found
        except (OSError, ValueError, RecursionError) as error:
            log.warning("%s can't be read: %s", self.path.name, error)
            return found
        for id, raw in fields(read).items():
            if (form := text_of(fields(raw).get("form"))) in get_args(ToolCalling):
                found[id] = Learnt(cast("ToolCalling", form), text_of(fields(raw).get("why")))
        return found
