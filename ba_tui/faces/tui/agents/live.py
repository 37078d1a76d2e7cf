"""What a person may do with a running agent: tell it something, pause it, stop it. Answers in words, for any screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ba_tui.core.ports.delegation import Delegation
from ba_tui.faces.tui.agents.roster import AgentLine

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import SessionActions

OVER = ("finished", "error", "cancelled")


class LiveAgents:
    """The agents of the open session, through its Delegation; those that it does not know only run with the turn."""

    def __init__(self, chat: SessionActions) -> None:
        self._chat = chat

    @property
    def _delegation(self) -> Delegation | None:
        conversation = self._chat.session.conversation
        return conversation.inventory.feature(Delegation) if conversation and not conversation.read_only else None

    def running(self, line: AgentLine) -> bool:
        """Whether it runs now: the journal may hold no end of one that ended with ba."""
        if not line.running:
            return False
        if self._chat.session.read_only:
            return True
        known = self._delegation.running() if self._delegation else ()
        mine = next((each for each in known if each.agent_id == line.agent_id), None)
        if mine is not None:
            return mine.activity not in OVER
        return self._chat.turns.busy or self._chat.turns.followed.outlived

    def tell(self, line: AgentLine, text: str) -> tuple[bool, str]:
        """Whether the words were taken, and what to say about it."""
        if self._delegation is not None and self._delegation.tell(line.agent_id, text):
            return True, f"Sent. {line.name} reads it before its next request."
        return False, self._why(line, "read messages")

    def pause(self, line: AgentLine) -> str:
        if self._delegation is None or not self._delegation.pause(line.agent_id, on=not line.paused):
            return self._why(line, "be paused")
        return f"{line.name} continues." if line.paused else f"{line.name} pauses before its next request."

    def stop(self, line: AgentLine) -> str:
        current = self._chat.turns.current
        if self._delegation is not None and self._delegation.cancel(line.agent_id):
            return f"Stopping {line.name} …"
        if current is not None and self.running(line):
            # Of a team or a plan: the turn knows every agent that works in it.
            current.cancel(line.agent_id)
            return f"Stopping {line.name} …"
        return self._why(line, "be stopped")

    def _why(self, line: AgentLine, what: str) -> str:
        if self._chat.session.read_only:
            return "This session is open in another process, so it is read-only here."
        return f"{line.name} can't {what}." if self.running(line) else f"{line.name} has ended."
