"""Which rows of a transcript show which sub-agents. Pure; what a row looks like stands in ``painted``."""

from __future__ import annotations

from collections.abc import Container, Iterator

from ba_tui.core.events import MAIN, AgentStarted, Event, TurnEnded
from ba_tui.faces.tui.agents.roster import AgentLine, Roster


class AgentRows:
    """The agents that the calls of ``agent`` started, by call. One that no call started has a row of its own, which
    goes by the agent's name.

    Rows are told of changes by ``take``, when the transcript is painted: events of agents come by the thousand.
    """

    def __init__(self, agent: str = MAIN) -> None:
        self._agent = agent
        self._roster = Roster(agent)
        self._shown: dict[str, list[str]] = {}
        """The agents of a row, by its id."""
        self._row: dict[str, str] = {}
        """The id of the row that shows an agent now."""
        self._stirred: set[str] = set()

    @property
    def stirred(self) -> bool:
        """Whether a row shows something that is over."""
        return bool(self._stirred)

    def apply(self, event: Event, calls: Container[str] = ()) -> AgentLine | None:
        """Take in an event of an agent below; returns the line of one that needs a row of its own, as none of ``calls``
        started it."""
        line = self._roster.apply(event)
        if line is None:
            return None
        wanted = None
        if isinstance(event, AgentStarted):
            known = event.call_id in calls
            id = event.call_id if known else line.agent_id
            mine = line.agent_id.rpartition("/")[0] == self._agent
            wanted = line if mine and not known else None
            if mine:
                self._shown.setdefault(id, [])
                self._shown[id] = [name for name in self._shown[id] if name != line.agent_id] + [line.agent_id]
                self._row[line.agent_id] = id
        self._stir(line.agent_id)
        return wanted

    def own(self, event: Event) -> None:
        """Take in an event of the transcript's own agent: its turn takes those along that are waited for."""
        before = self._roster.running() if isinstance(event, TurnEnded) else ()
        self._roster.apply(event)
        for line in before:
            if not self._roster.lines[line.agent_id].running:
                self._stir(line.agent_id)

    def end(self) -> None:
        """Nothing runs any more."""
        for line in self._roster.running():
            self._stir(line.agent_id)
        self._roster.end()

    def alive(self, id: str) -> bool:
        """Whether an agent of the row runs."""
        return any(self._roster.lines[name].running for name in self._shown.get(id, ()) if self._row[name] == id)

    def take(self) -> Iterator[tuple[str, tuple[AgentLine, ...]]]:
        """The rows that changed, by their ids, with their agents as they are now."""
        stirred, self._stirred = self._stirred, set()
        for id in sorted(stirred):
            yield id, tuple(self._roster.lines[name] for name in self._shown[id])

    def _stir(self, agent: str) -> None:
        """The row that shows ``agent`` or the one that it works for."""
        while agent and agent not in self._row:
            agent = agent.rpartition("/")[0]
        if agent:
            self._stirred.add(self._row[agent])
