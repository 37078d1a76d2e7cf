"""The agents that a session had, from its events: which can go on, and with what they know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ba_tui.core.errors import UsageError
from ba_tui.core.events import MAIN, Event, Rewound, TurnStarted
from ba_tui.core.events.teamwork import AgentStarted
from ba_tui.core.text.wording import nearest
from ba_tui.core.transcript import Transcript
from ba_tui.features.agents.tools.lineage import kind_of


@dataclass
class PastAgent:
    """``turn`` of main in which it was begun, from 1. ``gone``: that turn was taken back. ``worktree``: the copy
    that it works in."""

    agent_id: str
    kind: str
    turn: int
    gone: bool = False
    worktree: str = ""
    events: list[Event] = field(default_factory=list[Event])

    def transcript(self) -> Transcript:
        """All that it was told, said and did. Takes as long as its events are many."""
        return Transcript(self.agent_id, self.events)


def past_agents(events: Sequence[Event]) -> dict[str, PastAgent]:
    """Every sub-agent by its name. Call it off the loop."""
    found: dict[str, PastAgent] = {}
    turn = last = 0
    # The turn that stood last when each one began: what was taken back may be brought back.
    before = {0: -1}
    for event in events:
        name = event.agent
        if name == MAIN:
            match event:
                case TurnStarted():
                    turn += 1
                    before[turn], last = last, turn
                case Rewound(turns=int(kept)):
                    last = kept
                case _:
                    pass
            continue
        if not name.startswith(f"{MAIN}/"):
            continue
        if name not in found:
            if not isinstance(event, AgentStarted | TurnStarted):
                continue
            found[name] = PastAgent(name, kind_of(name), turn)
        agent = found[name]
        if isinstance(event, AgentStarted):
            agent.kind, agent.worktree = event.kind, event.worktree
        agent.events.append(event)
        # What its own agents began counts for the names that it gives them.
        above = found.get(name.rpartition("/")[0])
        if above and isinstance(event, TurnStarted):
            above.events.append(event)
    standing = set[int]()
    while last in before:
        standing.add(last)
        last = before[last]
    for agent in found.values():
        agent.gone = agent.turn not in standing
    return found


def resumable(events: Sequence[Event], agent_id: str, parent: str) -> PastAgent:
    """Return the agent with that id, which ``parent`` started. Raises UsageError. Call it off the loop."""
    found = past_agents(events)
    known = [name for name, agent in found.items() if name.rpartition("/")[0] == parent and not agent.gone]
    wanted = found.get(agent_id) or found.get(f"{parent}/{agent_id}")
    if wanted is None:
        close = nearest(agent_id, known)
        hint = f"The nearest is {close}." if close else f"There are: {', '.join(known[-8:]) or 'none'}."
        raise UsageError(f"There is no agent {agent_id!r} to resume.", hint)
    if wanted.gone:
        message = f"{wanted.agent_id} can't be resumed: the turn that started it was taken back with /rewind."
        raise UsageError(message, "Start a new agent.")
    if wanted.agent_id.rpartition("/")[0] != parent:
        raise UsageError(f"{wanted.agent_id} was started by another agent.", "Start a new agent.")
    return wanted
