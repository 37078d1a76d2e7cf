"""Commands for sub-agents: the list, and the transcript of each."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ba_tui.core.errors import UsageError
from ba_tui.core.events import AgentStarted, Event, Notice, TurnEnded
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.roster import Roster, RosterEntry
from ba_tui.faces.tui.transcript.records import Record, ToolRow

NEWS = 15.0
"""Seconds for which Enter opens an agent after its end was reported."""
OPENS = "Press Enter to open it."


def agents(chat: Actions, words: str) -> None:
    """Show the list; with a name that agent's transcript; with ``files`` the agent files."""
    _, conversation = chat.session.live
    files = conversation.inventory.agents
    name = words.strip()
    if name and name not in {"files", "file"}:
        open_agent(chat, name if name.startswith("main/") else f"main/{name}")
        return
    from ba_tui.features.agents.tui.screen import AgentBrowser, AgentList  # noqa: PLC0415 - most runs never show it

    if not name:
        chat.ba.push_screen(AgentList(chat))
    elif files is None:
        raise UsageError("This session has no agent files.")
    else:
        chat.ba.push_screen(AgentBrowser(files))


def open_record(chat: Actions, record: Record | None) -> bool:
    """Open the agents of a row; for None the agent whose end was reported last. Return whether there were any."""
    if record is None:
        return open_news(chat)
    if not isinstance(record, ToolRow) or not record.agents:
        return False
    open_agents(chat, record.agents)
    return True


def open_agents(chat: Actions, lines: Sequence[RosterEntry]) -> None:
    """Open the transcript of a row's agent; for several agents the list of all."""
    if len(lines) == 1:
        open_agent(chat, lines[0].agent_id)
    else:
        agents(chat, "")


def open_agent(chat: Actions, agent_id: str) -> None:
    """Open the transcript of one agent. Raises UsageError until there is a session."""
    from ba_tui.features.agents.tui.screen import AgentScreen  # noqa: PLC0415 - most runs never show it

    _ = chat.session.live
    chat.ba.push_screen(AgentScreen(chat, agent_id))


def open_news(chat: Actions) -> bool:
    """Open the agent whose end was just reported; return False if there is none, or the input has text."""
    news, chat.session.news[:] = list(chat.session.news), []
    if chat.turns.waiting or not news or time.monotonic() - news[-1][1] > NEWS:
        return False
    open_agent(chat, news[-1][0])
    return True


class RunningAgents:
    """The number of running agents, in the status line; reports the end of background agents."""

    def __init__(self, chat: Actions) -> None:
        self._chat = chat
        self._roster = Roster()

    def reset(self) -> None:
        self._roster = Roster()
        self._count()

    def apply(self, event: Event) -> None:
        line = self._roster.apply(event)
        if isinstance(event, AgentStarted | TurnEnded):
            self._count()
        if line is not None and line.background and isinstance(event, TurnEnded):
            self._tell(line)

    def _count(self) -> None:
        self._chat.status.show(agents=len(self._roster.running()))

    def _tell(self, line: RosterEntry) -> None:
        self._chat.session.news.append((line.agent_id, time.monotonic()))
        done = line.ending == "done"
        words = f"{line.name} has finished." if done else f"{line.name} did not finish: {line.words}"
        self._chat.tell(Notice(words, "info" if done else "warning", OPENS))
