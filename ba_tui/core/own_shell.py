"""Commands and queries that the person runs beside the turns. What they share of them joins the next request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ba_tui.core.calls import run_call
from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import PERSON, Event, Steered, TurnEnded
from ba_tui.core.messages import Message, ToolUse, clean_text, new_id
from ba_tui.core.questions import Question, Reply
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.core.values import frozen

_SOURCE = regex(r"(?s)@(\w+)\s+(.+)")
"""A query on a source: ``@warehouse SELECT …``."""


class SharedCommands:
    """core.agent.Interceptor: tells the model what the person shared of their own commands."""

    async def before(self, branch: Branch) -> None:
        for message in branch.transcript.shared.waiting:
            branch.emit(Steered(message))

    async def after(self, reply: Message, branch: Branch) -> None:
        """A command that ended meanwhile is told with the next request."""


@frozen
class OwnTools:
    """What runs commands and queries; None where there is none."""

    shell: Tool | None = None
    query: Tool | None = None


class OwnShell:
    """Runs ``tools`` for the person, several calls at a time if they like; each is a turn to follow and to cancel.

    ``begin`` makes a turn whose events are kept, ``history`` reads those of the session so far. The commands have a
    folder of their own: it is the conversation's until one of them changes it.
    """

    def __init__(
        self,
        tools: OwnTools,
        begin: Callable[[], Turn],
        conversation: Transcript,
        history: Callable[[], Coroutine[None, None, list[Event]]],
    ) -> None:
        self._tools = tools
        self._begin = begin
        self._conversation = conversation
        self._history = history
        self._own: Transcript | None = None
        self._running: set[Turn] = set()

    @property
    def folder(self) -> str | None:
        """Where the next command starts; None: in the root of the workspace."""
        return (self._own.cwd if self._own else None) or self._conversation.cwd

    def run(self, command: str, *, private: bool) -> Turn:
        """Start ``command``. A private one is kept with the session, and no model is ever told of it.

        Raises:
            UsageError: there is no command, or no shell.
        """
        if self._tools.shell is None:
            raise UsageError("This session has no shell.", "Install bash to run commands.")
        if not command.strip():
            raise UsageError("There is no command after the “!”.", "Type one, such as !ls.")
        given = {"command": clean_text(command), **({"private": True} if private else {})}
        return self._started(self._tools.shell, given)

    def query(self, sql: str) -> Turn:
        """Run a query on the session's data, or on the source whose ``@NAME`` comes first. The model reads the result.

        Raises:
            UsageError: there is no query, or nothing that runs one.
        """
        if self._tools.query is None:
            raise UsageError("This session has no data engine.")
        if not sql.strip():
            raise UsageError("There is no query after /sql.", "Type one, such as /sql FROM 'sales.csv'")
        text = clean_text(sql).strip()
        found = _SOURCE.fullmatch(text)
        given = {"sql": found[2], "source": found[1]} if found else {"sql": text}
        return self._started(self._tools.query, given)

    def _started(self, tool: Tool, given: dict[str, Any]) -> Turn:
        turn = self._begin()
        self._running.add(turn)
        use = ToolUse(f"own-{new_id()[:12]}", tool.name, given)
        turn.run(asyncio.get_running_loop().create_task(self._run(tool, use, turn)))
        return turn

    async def _run(self, tool: Tool, use: ToolUse, turn: Turn) -> None:
        private = bool(use.input.get("private"))
        ending = TurnEnded("done")
        try:
            events = await self._history()
            if self._own is None:
                self._own = Transcript(PERSON, events)
            self._own.cwd = self._own.cwd or self._conversation.cwd
            await run_call(tool, use, Call(use.id, Branch(turn, self._own), consults=(_agreed,), private=private))
        except asyncio.CancelledError:
            ending = TurnEnded("cancelled")
        except BaError as error:
            ending = TurnEnded("error", error.info())
        finally:
            self._running.discard(turn)
            turn.deliver(ending)

    async def close(self) -> None:
        """Stop what runs."""
        running = tuple(self._running)
        for turn in running:
            turn.close()
        for turn in running:
            await turn.wait()


async def _agreed(question: Question) -> Reply:
    """The person said what to run, so nobody asks them again. Secrets are not shared without a word about them."""
    return Reply("deny" if question.kind != "permission" or "shares a secret" in question.risks else "once")
