"""The context files of one conversation as a list: what is read, what is not and why, where one could be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ba_tui.context.imports import name_of
from ba_tui.context.instruction_files import InstructionPlace
from ba_tui.context.instructions import Instructions, read_instructions
from ba_tui.context.touched import TouchedFiles
from ba_tui.core.instruction_names import AGENTS, LOADED
from ba_tui.core.ledger import rough
from ba_tui.core.ports.instructions import ContextFile
from ba_tui.core.values import frozen
from ba_tui.ingress import Ingress
from ba_tui.resources import there

CLOSED = "not read: this folder is not trusted (/trust)"


@frozen
class InstructionList:
    """core.ports.instructions.ContextFiles. ``tokens`` estimates a text."""

    place: InstructionPlace
    ingress: Ingress
    touched: TouchedFiles
    tokens: Callable[[str], int] = rough

    def files(self) -> Sequence[ContextFile]:
        """See core.ports.instructions.ContextFiles."""
        touched = self.touched.files
        whole = replace(self.place, closed=False)
        found = [self._file(each, touched) for each in read_instructions(whole, self.ingress, touched)]
        return [*found, *self._missing()]

    def _file(self, item: Instructions, touched: Sequence[Path]) -> ContextFile:
        owner = "user" if item.owner == "user" else "project"
        note = item.note or ("" if item.text else "it is empty")
        off = not item.text
        if owner == "project" and self.place.closed:
            note, off = CLOSED, True
        elif not item.concerns(touched, self.place.root):
            note, off = "counts once the agent touches one of its files", True
        tokens = 0 if off else self.tokens(item.text)
        return ContextFile(item.path, item.shown, owner, "off" if off else "read", tokens, note, _details(item))

    def _missing(self) -> Sequence[ContextFile]:
        """AGENTS.md of the project and of the person, where nothing of the kind is there."""
        folders = ((self.place.person, "user"), (self.place.root, "project"))
        found: list[ContextFile] = []
        for folder, whose in folders:
            owner = "user" if whose == "user" else "project"
            if folder and not any(there(folder / name) for name in LOADED):
                path = folder / AGENTS
                found.append(ContextFile(path, name_of(path, owner, self.ingress), owner, "missing"))
        return found


def _details(item: Instructions) -> tuple[str, ...]:
    lines = [f"for {', '.join(item.paths)}"] if item.paths else []
    lines += [f"imports {name}" for name in item.imports] + list(item.refused)
    return (*lines, f"a link to {item.target}") if item.target else tuple(lines)
