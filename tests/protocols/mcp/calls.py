"""Calls whose questions are answered at once, and servers without a session around them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ba_tui.core.events import Asked, Event, Notice, ToolProgress
from ba_tui.core.ports.mcp import ServerConfig, ServerState
from ba_tui.core.questions import Question, Reply
from ba_tui.core.tool import Call
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.features.mcp.client.host import ServerHost
from ba_tui.features.mcp.client.server import Servers
from ba_tui.features.mcp.client.values import Sample
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.tools.command_runner import UNCONFINED

Answer = Callable[[Question], Reply]


def empty(question: Question) -> Reply:
    """Return an empty answer: what the server proposes is taken."""
    del question
    return Reply("text", "")


class Answered:
    """A call; ``asked``, ``reports`` and ``notices`` are what it was asked and told."""

    def __init__(self, answer: Answer = empty) -> None:
        self.asked: list[Question] = []
        self.reports: list[str] = []
        self.notices: list[str] = []
        self.reported = asyncio.Event()
        self._answer = answer
        self._turn = Turn(self._hear)
        self.call = Call("call-1", Branch(self._turn, Transcript()))

    def _hear(self, event: Event) -> None:
        match event:
            case Asked(ask_id=id, question=question):
                self.asked.append(question)
                self._turn.answer(id, self._answer(question))
            case ToolProgress(text=text):
                self.reports.append(text)
                self.reported.set()
            case Notice(text=text):
                self.notices.append(text)
            case _:
                pass


def means(folder: Path, store: Path | None = None, sample: Sample | None = None) -> ServerHost:
    """Return how servers are started in ``folder``, as they are."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return ServerHost(Policy(Workspace(folder)), UNCONFINED, environment, sample=sample, store=store)


def servers(folder: Path, *configs: ServerConfig, store: Path | None = None, sample: Sample | None = None) -> Servers:
    """Return servers of no session."""
    return Servers(configs, means(folder, store, sample))


async def until(found: Servers, holds: Callable[[Sequence[ServerState]], bool]) -> None:
    """Wait until the servers stand so."""
    changed = asyncio.Event()
    stop = found.listen(changed.set)
    while not holds(found.listed()):
        changed.clear()
        await changed.wait()
    stop()
