"""A program at the other end of a conversation in Claude Code's lines, in the same process."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ba_tui.core.conversation import Conversation
from ba_tui.core.provider import ModelInfo
from ba_tui.core.questions import Question
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.services import Services
from ba_tui.core.start import Start
from ba_tui.core.tool import Call, Tool
from ba_tui.features.compat.host import ClaudeHost, HostOptions
from ba_tui.features.compat.lines import ClaudeWords
from tests.script import Script, conversation

Line = dict[str, Any]
React = Callable[[Line, "Program"], None]


def prompt(content: Any = "go", **more: Any) -> Line:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def control(subtype: str, id: str = "r1", **fields: Any) -> Line:
    return {"type": "control_request", "request_id": id, "request": {"subtype": subtype, **fields}}


@dataclass
class Program(io.TextIOBase):
    """What ``ba`` writes to and reads from. ``react`` sees each line; input ends after the last result that is due."""

    react: React | None = None
    turns: int = 1
    lines: list[Line] = field(default_factory=list[Line])
    waiting: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue[bytes | None])

    def send(self, *lines: Line | bytes) -> None:
        for line in lines:
            self.waiting.put_nowait(line if isinstance(line, bytes) else json.dumps(line).encode())

    def close(self) -> None:
        self.waiting.put_nowait(None)

    def write(self, text: str, /) -> int:
        line = json.loads(text)
        self.lines.append(line)
        if self.react:
            self.react(line, self)
        if line["type"] == "result" and len(self.of("result")) == self.turns:
            self.close()
        return len(text)

    def of(self, type: str, subtype: str = "") -> list[Line]:
        return [each for each in self.lines if each["type"] == type and subtype in {"", each.get("subtype")}]

    async def typed(self) -> AsyncIterator[bytes]:
        while (line := await self.waiting.get()) is not None:
            yield line


class Shelf:
    """A library with one new conversation."""

    def __init__(self, talk: Conversation) -> None:
        self.talk = talk

    def create(self) -> Conversation:
        return self.talk


class Ready:
    def __init__(self, missing: str = "") -> None:
        self._missing = missing

    def missing(self, model: str) -> str:
        return self._missing

    def models(self) -> list[ModelInfo]:
        return [ModelInfo("test/model", "test", "model")]


@dataclass
class Ran:
    code: int
    program: Program
    err: str
    talk: Conversation


async def hosted(program: Program, *steps: Any, missing: str = "", rule: str | None = None, **options: Any) -> Ran:
    """Run the lines that wait in ``program`` with a scripted model and a tool ``write_file`` that asks."""

    async def write(args: Mapping[str, Any], call: Call) -> ToolResult:
        question = Question(
            "permission", "Allow write_file?", call.id, "write_file", dict(args), reason="Edits ask.", rule=rule
        )
        reply = await call.ask(question)
        if reply.choice == "deny":
            return failure("permission_denied", reply.text)
        return ToolResult(f"wrote {reply.edited or args} ({reply.choice}, {reply.rule})")

    out, tool = io.StringIO(), Tool("write_file", "Writes.", {"type": "object"}, write)
    talk = conversation(Script(*steps), tool, max_loops=5)
    ready: Any = Ready(missing)
    services = Services(Shelf(talk), ready, ready, max_turns=options.pop("max_turns", None))  # type: ignore[arg-type]
    host = ClaudeHost(services, ClaudeWords(Path("/srv")), program, out)  # type: ignore[arg-type]
    code = await host.run(Start(), program.typed(), HostOptions(**options))
    return Ran(code, program, out.getvalue(), talk)
