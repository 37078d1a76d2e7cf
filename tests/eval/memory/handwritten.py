"""The dialogues and facts beside this file, as cases.

A file names the speakers (``D = Devon``), begins a session with a date (``# 2023-03-04 12:10``) and has a line for each
turn (``A5: …``, with a number where a question refers to it). Questions follow: ``Q kind 5 9: …``. Facts have a speaker
without a name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.eval.memory.cases import Case, case_of

HERE = Path(__file__).parent
_NAME = re.compile(r"(\w+) = ?(.*)")
_SESSION = re.compile(r"# (\d{4}-\d\d-\d\d(?: \d\d:\d\d)?)")
_TURN = re.compile(r"([A-Z])(\d*): (.*)")
_QUESTION = re.compile(r"Q (\w+) ([\d ]+): (.*)")


def handwritten(*, bare: bool = False) -> list[Case]:
    """All cases; ``bare``: without speakers, sessions and times."""
    return [written(path, bare=bare) for path in sorted((*HERE.glob("dialogues/*.txt"), *HERE.glob("facts/*.txt")))]


def unrelated() -> list[str]:
    """Prompts of everyday work that no memory has anything to say about, in English, German and Chinese."""
    return (HERE / "unrelated.txt").read_text("utf-8").splitlines()


def written(path: Path, *, bare: bool = False) -> Case:
    """The case in ``path``."""
    memories: list[dict[str, Any]] = []
    questions: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    numbers: dict[str, str] = {}
    session, time = 0, ""
    for line in path.read_text("utf-8").splitlines():
        if found := _NAME.fullmatch(line):
            names[found[1]] = found[2]
        elif found := _SESSION.fullmatch(line):
            session, time = session + 1, found[1]
        elif found := _QUESTION.fullmatch(line):
            evidence = [numbers[each] for each in found[2].split()]
            questions.append({"text": found[3], "evidence": evidence, "kind": found[1]})
        elif found := _TURN.fullmatch(line):
            id = f"{path.stem}-{len(memories)}"
            if found[2]:
                numbers[found[2]] = id
            memory = {"id": id, "text": found[3], "time": time}
            if speaker := names.get(found[1], ""):
                memory |= {"speaker": speaker, "session": f"s{session}"}
            memories.append(memory)
    return case_of({"id": path.stem, "memories": memories, "questions": questions}, bare=bare)
