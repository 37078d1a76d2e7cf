"""Which files instruct a model: those of the person, and of the project from its root down to where work is done.

Their names are those that coding assistants share: AGENTS.md, and the files of Claude Code, Codex, Gemini and Cursor.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from ba_tui.core.instruction_names import AGENTS, FOREIGN, LOADED, OVERRIDE, RULES, ForeignAssistant
from ba_tui.core.values import frozen
from ba_tui.ingress import Owner
from ba_tui.resources import there

MOST_RULES = 100
"""Files of one folder of rules that are read."""


@frozen
class InstructionPlace:
    """Whose files are looked for: the ``person``'s folder and those in ``home``, None for nobody's, and the project
    from ``root`` down to ``cwd`` unless that is ``closed``, because nobody has agreed to it yet. ``held`` returns why a
    file with these first bytes is not read; empty for none: a tool wrote it, and the user has not accepted it."""

    cwd: Path
    root: Path
    person: Path | None
    home: Path | None = None
    closed: bool = False
    foreign: Collection[ForeignAssistant] = ()
    held: Callable[[Path, bytes], str] = lambda path, raw: ""

    def files(self, touched: Collection[Path] = ()) -> Iterator[tuple[Path, Owner]]:
        """What stands nearest comes last: the person's files, the project's down to ``cwd``, then those of the folders
        above each of the files ``touched``, which lie below ``root``. A file may be given twice."""
        for path in self._own():
            yield path, "user"
        for path in self._of_project(touched):
            yield path, "project"

    def _own(self) -> Iterator[Path]:
        if self.person:
            yield from self._of(self.person)
        if self.home:
            yield from self._of(self.home / ".claude", ("CLAUDE.md",), "rules")

    def _of_project(self, touched: Collection[Path]) -> Iterator[Path]:
        if self.closed:
            return
        top = self.root if self.cwd.is_relative_to(self.root) else self.cwd
        folders = dict.fromkeys(_between(top, self.cwd))
        for file in touched:
            if file != top and file.is_relative_to(top):
                folders.update(dict.fromkeys(_between(top, file.parent)))
        for folder in folders:
            yield from self._of(folder)

    def _of(self, folder: Path, names: Sequence[str] = LOADED, rules: str = RULES[0]) -> Iterator[Path]:
        found = [path for name in names if there(path := folder / name) and not path.is_dir()]
        overridden = folder / OVERRIDE in found
        yield from (path for path in found if not (overridden and path.name == AGENTS))
        yield from _rules(folder / rules, RULES[1])
        for which in self.foreign:
            files, (place, suffix) = FOREIGN[which]
            yield from (path for name in files if there(path := folder / name) and not path.is_dir())
            if place:
                yield from _rules(folder / place, suffix)


def _between(top: Path, bottom: Path) -> Iterator[Path]:
    yield top
    for part in bottom.relative_to(top).parts:
        top /= part
        yield top


def _rules(folder: Path, suffix: str) -> Sequence[Path]:
    """The files of a folder of rules and of the folders in it, by their names."""
    found: list[Path] = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        found += [Path(place) / name for name in sorted(names) if name.endswith(suffix)]
        if len(found) >= MOST_RULES:
            break
    return found[:MOST_RULES]
