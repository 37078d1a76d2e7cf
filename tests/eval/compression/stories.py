"""The labelled conversations: written stories, with filler between their facts, as messages of an agent run.

In a story ``{kind|question|answer}`` marks a fact; ``U`` is the user, ``A`` the agent between calls, ``F`` its
answer, ``T`` a call with filler as its result (``+`` a line in it, ``T!`` a failed one), ``X`` steps of filler, ``L``
todos.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, user
from ba_tui.core.results import ToolResult, failure
from tests.eval.compression.filler import KINDS, TOOLS, TYPICAL, remark, target

FOLDER = Path(__file__).with_name("stories")
KINDS_OF_FACT = ("goal", "instruction", "todo", "decision", "path", "figure", "name", "date", "error")
_FACT = re.compile(r"\{(\w+)\|([^|{}]+)\|([^{}]+)\}")
_LINE = re.compile(r"([UAFXL]|T!?):? (.*)")
_TODO = {"[ ]": "pending", "[>]": "in_progress", "[x]": "completed"}


@dataclass(frozen=True)
class Label:
    """A fact that a reader of the conversation can be asked for; ``answer`` stands in it word for word."""

    kind: str
    question: str
    answer: str
    round: int


@dataclass
class Story:
    name: str
    messages: list[Message] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    rounds: int = 0


def stories(*, scale: float = 1.0) -> Iterator[Story]:
    """All of them; ``scale`` makes the filler shorter or longer."""
    for path in sorted(FOLDER.glob("*.txt")):
        for part in re.split(r"^# ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            name, _, script = part.partition("\n")
            yield _Telling(name.strip(), scale).told(script)


class _Telling:
    def __init__(self, name: str, scale: float) -> None:
        self._story = Story(name)
        self._scale = scale
        self._random = Random(name)
        self._chinese = not name.isascii()
        self._calls = 0
        self._said: list[str] = []

    def told(self, script: str) -> Story:
        lines = [line for line in script.splitlines() if line.strip()]
        for place, line in enumerate(lines):
            extra: list[str] = []
            for later in lines[place + 1 :]:
                if not later.startswith("+"):
                    break
                extra.append(self._plain(later[1:].removeprefix(" ")))
            self._line(line, extra)
        return self._story

    def _line(self, line: str, extra: list[str]) -> None:
        found = _LINE.match(line)
        assert found or line.startswith("+"), line
        mark, rest = found.groups() if found else ("+", "")
        match mark:
            case "U":
                self._story.rounds += 1
                self._story.messages.append(user(self._plain(rest)))
            case "A":
                self._said.append(self._around(self._plain(rest)))
            case "F":
                self._answer([Text(self._around(self._plain(rest)))])
            case "X":
                count, kind = rest.split()
                for _ in range(int(count)):
                    self._step(TOOLS[kind], target(self._random, kind), kind, [])
            case "T" | "T!":
                tool, name, filler = (part.strip() for part in rest.split(" | "))
                name = self._plain(name)
                if mark == "T":
                    self._step(tool, name, filler, extra)
                else:
                    self._call(tool, name, failure("execution_error", "\n".join(extra), hint="Look at the message."))
            case "L":
                self._todos(self._plain(rest))
            case _:
                pass

    def _plain(self, text: str) -> str:
        """``text`` without its marks, which are noted."""
        for kind, question, answer in _FACT.findall(text):
            assert kind in KINDS_OF_FACT, kind
            label = Label(kind, question, answer, self._story.rounds)
            if label not in self._story.labels:
                self._story.labels.append(label)
        return _FACT.sub(r"\3", text)

    def _around(self, text: str) -> str:
        before = [remark(self._random, chinese=self._chinese) for _ in range(self._random.randint(0, 3))]
        after = [remark(self._random, chinese=self._chinese) for _ in range(self._random.randint(0, 3))]
        return ("" if self._chinese else " ").join([*before, text, *after])

    def _step(self, tool: str, name: str, filler: str, extra: list[str]) -> None:
        kind, _, count = filler.partition(" ")
        if kind == "short":
            body = [f"Wrote {name}: {self._random.randint(2, 60)} lines changed."]
        else:
            wanted = int(count or TYPICAL[kind]) * self._scale * self._random.uniform(0.6, 1.4)
            body = KINDS[kind](self._random, max(3, int(wanted)))
        place = int(len(body) * self._random.uniform(0.2, 0.8))
        self._call(tool, name, ToolResult("\n".join([*body[:place], *extra, *body[place:]])))

    def _call(self, tool: str, name: str, result: ToolResult) -> None:
        self._calls += 1
        id = f"call_{self._calls}"
        said = self._said or [remark(self._random, chinese=self._chinese)]
        self._said = []
        given = "command" if tool in ("shell", "python") else "query" if tool == "sql" else "path"
        self._answer([Text("\n\n".join(said)), ToolUse(id, tool, {given: name})])
        self._story.messages.append(Message("user", (result.output(id),), origin="tool"))

    def _todos(self, text: str) -> None:
        self._calls += 1
        id = f"call_{self._calls}"
        items = [{"content": item[4:], "status": _TODO[item[:3]]} for item in text.split(" ; ")]
        self._answer([ToolUse(id, "todo_write", {"items": items})])
        words = f"The list now has {len(items)} items."
        self._story.messages.append(Message("user", (ToolOutput(id, words),), origin="tool"))

    def _answer(self, blocks: list[Text | ToolUse]) -> None:
        self._story.messages.append(Message("assistant", tuple(blocks), origin="assistant"))
