"""Files that rules keep from being read, among those that a command goes through without naming them.

What commands go through is found in ``judgement``; rules stand in ``rules``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from ba_tui.core.tool import Effect
from ba_tui.permissions.egress.domains import PREFIX
from ba_tui.permissions.paths import TouchedPath, Workspace
from ba_tui.permissions.rules.conditions import NO_TERMS
from ba_tui.permissions.rules.covering import KeptFiles
from ba_tui.permissions.rules.rule import CLASSES, Rule, Subject
from ba_tui.permissions.shell.programs.word_paths import MOST_LOOKED_AT, has_names
from ba_tui.permissions.shell.resolved_command import FolderRead

MOST_KEPT = 100
"""Files kept by rules that are hidden from one command; each one costs time."""


def keeper(workspace: Workspace, rules: Sequence[Rule]) -> Callable[[FolderRead], KeptFiles]:
    """Says which files rules keep. It looks at the disk only where a rule names files, and once for each folder."""
    strict = [
        rule
        for rule in rules
        if rule.verdict != "allow"
        and (rule.pattern or rule.terms.when)
        and rule.pattern not in CLASSES
        and not (rule.pattern or "").startswith(PREFIX)
        and replace(rule, terms=NO_TERMS).meant(Subject("read_file", Effect.READ))
    ]

    @cache
    def kept(below: FolderRead) -> KeptFiles:
        found, why = list[Path](), ""
        for count, path in enumerate(_files(below)) if strict else ():
            if count > MOST_LOOKED_AT:
                return KeptFiles(why="more files than ba can check")
            places = workspace.places(path)
            seen = TouchedPath(path, workspace.relative(path), places, bool(places), secret=False, guarded=False)
            subject = Subject("read_file", Effect.READ, paths=(seen,), args={"path": seen.shown})
            if rule := next((rule for rule in strict if rule.covers(subject)), None):
                found.append(path)
                why = why or f"{workspace.shown(path)}, which is covered by the rule {rule.text}"
                # What is no file with one name can't be hidden for certain.
                if len(found) > MOST_KEPT or path.is_symlink() or has_names(path):
                    return KeptFiles(why=why)
        return KeptFiles(tuple(found), why)

    return kept


def _files(below: FolderRead) -> Iterator[Path]:
    names = [name.lower().rsplit("/", 1)[-1] for name in below.names]
    if below.folder.is_file():
        yield below.folder
    for folder, folders, files in os.walk(below.folder):
        if not below.hidden and not names:
            folders[:] = [each for each in folders if not each.startswith(".")]
            files = [each for each in files if not each.startswith(".")]
        for file in files:
            if not names or any(fnmatchcase(file.lower(), name) for name in names):
                yield Path(folder, file)
