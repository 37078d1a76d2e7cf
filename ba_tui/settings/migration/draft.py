"""What was found of one assistant, and the changes to the person's config.yaml that follow from it.

Only reading: ``writing`` makes the changes. What keys of other assistants mean stands in a file for each of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.ingress import shown
from ba_tui.settings.document import printable

FindingState: TypeAlias = Literal["already", "write", "by hand", "no"]
"""ba goes by a finding already, it will be written, the person can do something, or nobody can."""
MOST_FILES = 100_000
SHOWN = 60
LONGEST_NAME = 200


@frozen
class Finding:
    """One thing of another assistant. ``line`` of the file ``where``, 0 when unknown."""

    what: str
    state: FindingState
    text: str
    where: str = ""
    line: int = 0


@frozen
class Change:
    """``value`` for the dotted ``key`` of config.yaml; ``adds``: it is a further item of a list."""

    key: str
    value: Any
    adds: bool = False

    @property
    def text(self) -> str:
        """The change for people, without what may be private."""
        name, value = self.key, self.value if isinstance(self.value, str) else json.dumps(self.value)
        return name if name.startswith("environment.set.") else f"{name}: {one_line(value, SHOWN)}"


class Draft:
    """Collects for one assistant. ``own``: what the person's config.yaml says now; ``before``: drafts whose changes are
    made first; ``secret`` tells whether a text holds a key or a password."""

    def __init__(
        self, tool: str, own: Mapping[str, Any], before: Sequence[Draft], secret: Callable[[str], bool]
    ) -> None:
        self.tool = tool
        self._secret = secret
        self._own = own
        self._before = tuple(change for draft in before for change in draft.changes)
        self.findings: list[Finding] = []
        self.changes: list[Change] = []
        self.problems: list[str] = []
        self.file: Path | None = None
        """The file that is being read."""

    def note(self, what: str, state: FindingState, text: str, line: int = 0) -> None:
        where = shown(self.file) if self.file else ""
        self.findings.append(Finding(printable(one_line(what, LONGEST_NAME)), state, printable(text), where, line))

    def no(self, what: str, why: str, line: int = 0) -> None:
        self.note(what, "no", f"not supported: {why}", line)

    def set(self, key: str, value: Any, what: str) -> None:
        """Write ``value`` unless config.yaml sets the key already."""
        change, now = Change(key, value), self._at(key)
        if self._secret(str(value)):
            self.note(what, "by hand", f"it holds a key or a password, which is never copied: set {key} yourself")
        elif now == value or change in self._before:
            self.note(what, "already", f"your config.yaml says {change.text}")
        elif now is not None or any(each.key == key for each in self._before):
            self.note(what, "already", f"your config.yaml sets {key} otherwise, and that stays")
        elif not any(each.key == key for each in self.changes):
            self.changes.append(change)
            self.note(what, "write", change.text)

    def add(self, key: str, item: Any, what: str) -> None:
        """Write ``item`` into the list ``key`` unless it is there."""
        change, now = Change(key, item, adds=True), self._at(key)
        if (isinstance(now, list) and item in now) or change in self._before:
            self.note(what, "already", f"your config.yaml has {change.text}")
        elif change not in self.changes:
            self.changes.append(change)
            self.note(what, "write", change.text)

    def has(self, key: str) -> bool:
        """Whether config.yaml sets ``key`` or something in it, or will."""
        return self._at(key) is not None or any(
            f"{each.key}.".startswith(f"{key}.") for each in (*self._before, *self.changes)
        )

    def count(self, what: str, folder: Path, pattern: str, state: FindingState, text: str) -> None:
        """Note the files in ``folder`` that fit ``pattern``, if there are any."""
        if number := sum(1 for _ in islice(folder.rglob(pattern), MOST_FILES)):
            self.note(what, state, f"{number:,} in {shown(folder)}: {text}")

    def read(self, what: str, folder: Path, pattern: str, known: Collection[Path], otherwise: str) -> None:
        """Count the files of a folder: ba reads them where it is one of ``known``, else the person can do something."""
        if folder in known:
            self.count(what, folder, pattern, "already", "ba reads them")
        else:
            self.count(what, folder, pattern, "by hand", otherwise)

    def _at(self, key: str) -> Any:
        data: Any = self._own
        for part in key.split("."):
            data = cast("Mapping[str, Any]", data).get(part) if isinstance(data, Mapping) else None
        return data
