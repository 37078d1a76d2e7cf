"""The tasks, and whether one is done: judged by the answer and by the files that stand there afterwards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

TASKS = Path(__file__).with_name("tasks.yaml")


@dataclass(frozen=True)
class Task:
    """See tasks.yaml for what each part means."""

    id: str
    ask: str
    files: dict[str, str] = field(default_factory=dict[str, str])
    answer: str = ""
    wrong: str = ""
    result: dict[str, str] = field(default_factory=dict[str, str])
    adds: bool = False

    def lay_out(self, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")

    def complaint(self, answer: str, folder: Path) -> str:
        """What is wrong with the outcome; empty when it is right."""
        if self.answer and not re.search(self.answer, answer):
            return "the answer lacks the value"
        if self.wrong and re.search(self.wrong, answer):
            return "the answer says something wrong"
        found = _texts(folder)
        for name, wanted in self.result.items():
            if name not in found:
                return f"{name} is missing"
            if not re.fullmatch(wanted, found[name]):
                return f"{name} is not as asked"
        kept = {name: text for name, text in self.files.items() if name not in self.result}
        if any(found.get(name) != text for name, text in kept.items()):
            return "another file was changed"
        added = found.keys() - self.files.keys() - self.result.keys()
        return f"{sorted(added)[0]} was added" if added and not self.adds else ""


def read_tasks(path: Path) -> Sequence[Task]:
    raw: list[dict[str, Any]] = yaml.safe_load(path.read_text("utf-8"))
    return [Task(**each) for each in raw]


def _texts(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8", "replace") for path in files}
