"""Commands about sub-agents: who works and who has ended, and the transcript of each."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ba_tui.core.errors import UsageError
from ba_tui.core.events import AgentStarted, Event, Notice, TurnEnded
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.agents.roster import AgentLine, Roster
from ba_tui.faces.tui.commands import SlashCommand

NEWS = 15.0
"""Seconds for which Enter opens an agent whose end was told."""
OPENS = "Press Enter to open it."


def agents(chat: Actions, words: str) -> None:
    """The list; with the name of an agent, its transcript; with ``files``, the agents that files describe."""
    services, conversation = chat.session.live
    del services
    files = conversation.inventory.agents
    name = words.strip()
    if name in ("files", "file"):
        if files is None:
            raise UsageError("This session has no agent files.")
        from ba_tui.faces.tui.screens.agents import AgentBrowser  # noqa: PLC0415 - most runs never show it

        chat.ba.push_screen(AgentBrowser(files))
    elif name:
        open_agent(chat, name if name.startswith("main/") else f"main/{name}")
    else:
        from ba_tui.faces.tui.agents.listing import AgentList  # noqa: PLC0415 - most runs never show it

        chat.ba.push_screen(AgentList(chat))


def open_agents(chat: Actions, lines: Sequence[AgentLine]) -> None:
    """The transcript of the agent of a row; of several, the list of all."""
    if len(lines) == 1:
        open_agent(chat, lines[0].agent_id)
    else:
        agents(chat, "")


def open_agent(chat: Actions, agent_id: str) -> None:
    """The transcript of one agent. Raises UsageError until there is a session."""
    from ba_tui.faces.tui.agents.screen import AgentScreen  # noqa: PLC0415 - most runs never show it

    _ = chat.session.live
    chat.ba.push_screen(AgentScreen(chat, agent_id))


def open_news(chat: Actions) -> bool:
    """Open the agent whose end was just told; False when there is none, or a prompt waits to be sent."""
    news, chat.session.news[:] = list(chat.session.news), []
    if chat.turns.waiting or not news or time.monotonic() - news[-1][1] > NEWS:
        return False
    open_agent(chat, news[-1][0])
    return True


class RunningAgents:
    """How many agents run, in the status line; the end of one in the background is told."""

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

    def _tell(self, line: AgentLine) -> None:
        self._chat.session.news.append((line.agent_id, time.monotonic()))
        done = line.ending == "done"
        words = f"{line.name} has finished." if done else f"{line.name} did not finish: {line.words}"
        self._chat.tell(Notice(words, "info" if done else "warning", OPENS))


AGENTS = Room(
    {
        SlashCommand(
            "agents",
            "List running and ended agents, and agent files",
            "[NAME|files]",
            aliases=("agent",),
            keys="f5",
            choices=lambda: [("files", "Search the agents that files describe")],
        ): agents
    },
    panes=(RunningAgents,),
)
