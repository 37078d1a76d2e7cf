"""The sub-agents of a session as a fold over events: what each does, how far it is, how it ended.

Pure: the same live and from the journal. Words that stream are not looked at, so that an event costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from ba_tui.core.events import (
    MAIN,
    ActivityChanged,
    AgentPaused,
    AgentStarted,
    Answered,
    Asked,
    Ending,
    Event,
    MessageDone,
    PromptProgress,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message
from ba_tui.core.teamwork.agents import AgentActivity
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen

PASSING = (TextDelta, ThinkingDelta, ToolInputDelta, ToolProgress, PromptProgress)
"""Come by the thousand and change no line."""
LONGEST = 300
"""Characters of what an agent does or said that a line keeps."""
AgentState = Literal["waiting", "running", "ok", "failed", "cancelled"]
_STATES: dict[Ending, AgentState] = {
    "done": "ok",
    "error": "failed",
    "limit": "failed",
    "cancelled": "cancelled",
    "interrupted": "cancelled",
}


@frozen
class AgentLine:
    """One sub-agent, as far as its events say. ``began`` and ``ended`` in seconds since the epoch; ``ended`` is 0 while
    it runs. ``calls``: its own. ``tokens``: in and out, those of its own sub-agents included. ``doing``: its newest
    call or words, in a line. ``said``: how its newest answer begins. ``trouble``: why it did not finish.
    ``worktree``: the copy of the project that it works in."""

    agent_id: str
    kind: str
    description: str = ""
    call_id: str = ""
    began: float = 0.0
    ended: float = 0.0
    waits: float = 0.0
    """Since when it waits for the person; 0 while it does not."""
    waited: float = 0.0
    """Seconds that it has waited for the person so far."""
    asked: tuple[str, ...] = ()
    """The ids of its open questions to the person."""
    activity: AgentActivity = "idle"
    paused: bool = False
    background: bool = False
    worktree: str = ""
    model: str = ""
    doing: str = ""
    calls: int = 0
    tokens: int = 0
    ending: Ending | None = None
    said: str = ""
    trouble: str = ""

    @property
    def running(self) -> bool:
        return self.ending is None

    @property
    def name(self) -> str:
        """As people know it: ``explore-1``."""
        return self.agent_id.removeprefix(f"{MAIN}/")

    @property
    def state(self) -> AgentState:
        if self.ending is not None:
            return _STATES[self.ending]
        return "waiting" if self.activity == "awaiting_approval" else "running"

    @property
    def words(self) -> str:
        """What it does, or how it ended, in a line."""
        match self.ending:
            case "done":
                return self.said or "finished without words"
            case "limit" | "error":
                return self.trouble or ("stopped at a limit" if self.ending == "limit" else "ended with an error")
            case "cancelled":
                return "stopped"
            case "interrupted":
                return "interrupted"
            case None:
                return self._now

    @property
    def _now(self) -> str:
        if self.activity == "awaiting_approval":
            return "waiting for you"
        if self.paused:
            return "paused"
        return self.doing or ("starting" if self.activity == "idle" else self.activity)

    def seconds(self, now: float) -> float:
        """How long it has run, or ran, without the time in which it waited for the person."""
        return max(0.0, (self.ended or self.waits or now) - self.began - self.waited)

    def waiting(self, at: float) -> AgentLine:
        """The line when a question to the person is open: its clock stands still."""
        return replace(self, activity="awaiting_approval", waits=self.waits or at)

    def does(self, activity: AgentActivity, **more: Any) -> AgentLine:
        """The line of an agent that works on; beside its work a question may be open, which comes first."""
        return replace(self, activity=self.activity if self.asked else activity, **more)

    def going_on(self, at: float, activity: AgentActivity) -> AgentLine:
        """The line when no question is open any more."""
        waited = self.waited + max(0.0, at - self.waits) if self.waits else self.waited
        return replace(self, activity=activity, waits=0.0, waited=waited)


class Roster:
    """The sub-agents below ``above``, in the order in which they began."""

    def __init__(self, above: str = MAIN) -> None:
        self.lines: dict[str, AgentLine] = {}
        """By the name of the agent in events. One that goes on keeps its place."""
        self._above = above
        self._below = f"{above}/"

    def running(self) -> Sequence[AgentLine]:
        return [line for line in self.lines.values() if line.running]

    def apply(self, event: Event) -> AgentLine | None:
        """Take one event in; returns the line that it changed, of several the agent's own."""
        if isinstance(event, PASSING):
            return None
        if event.agent == self._above:
            if isinstance(event, TurnStarted | TurnEnded):
                self._close(event.at)
            return None
        if not event.agent.startswith(self._below):
            return None
        line = self._begun(event) if isinstance(event, AgentStarted | TurnStarted) else self.lines.get(event.agent)
        changed = _changed(line, event) if line is not None else None
        if changed is None:
            return None
        self.lines[event.agent] = changed
        if isinstance(event, MessageDone):
            self._spend(event.message, event.agent)
        return self.lines[event.agent]

    def end(self) -> None:
        """Nothing runs any more: those without an end were interrupted."""
        for line in self.running():
            self._stop(line, line.ended or line.began)

    def _begun(self, event: AgentStarted | TurnStarted) -> AgentLine:
        """The line of an agent that begins, or goes on."""
        known = self.lines.get(event.agent)
        if known is None:
            known = AgentLine(event.agent, event.agent.rpartition("/")[2].rpartition("-")[0], began=event.at)
        elif not known.running:
            known = replace(known, began=event.at, ended=0.0, ending=None, trouble="", said="", doing="", paused=False)
            known = replace(known, waits=0.0, waited=0.0, asked=())
        return known

    def _spend(self, message: Message, agent: str) -> None:
        """Count the tokens for the agent and for all above it."""
        spent = message.usage.prompt + message.usage.output if message.usage else 0
        while spent and (line := self.lines.get(agent)):
            self.lines[agent] = replace(line, tokens=line.tokens + spent)
            agent = agent.rpartition("/")[0]

    def _close(self, at: float) -> None:
        """No agent that is waited for outlives the turn that waits."""
        for line in self.running():
            if not line.background and not self._held(line):
                self._stop(line, at)

    def _held(self, line: AgentLine) -> bool:
        """Whether it belongs to an agent in the background."""
        above = line.agent_id.rpartition("/")[0]
        while parent := self.lines.get(above):
            if parent.background and parent.running:
                return True
            above = above.rpartition("/")[0]
        return False

    def _stop(self, line: AgentLine, at: float) -> None:
        self.lines[line.agent_id] = replace(line.going_on(at, line.activity), ending="interrupted", ended=at)


def _changed(line: AgentLine, event: Event) -> AgentLine | None:
    """The line after an event of its agent; None when it stays as it is."""
    match event:
        case AgentStarted():
            return replace(line, **_facts(event))
        case TurnStarted(prompt=prompt):
            return replace(line, activity="thinking", description=line.description or one_line(prompt.text, LONGEST))
        case ActivityChanged(activity="awaiting_approval", at=at) if line.running:
            return line.waiting(at)
        case ActivityChanged(activity=activity, at=at) if line.running:
            return None if line.asked else line.going_on(at, activity)
        case AgentPaused(paused=paused):
            return replace(line, paused=paused)
        case Asked(ask_id=id, at=at):
            return replace(line.waiting(at), asked=(*line.asked, id))
        case Answered(ask_id=id, at=at):
            left = tuple(each for each in line.asked if each != id)
            return replace(line if left else line.going_on(at, "acting"), asked=left)
        case ToolStarted(call=call, target=target):
            doing = one_line(f"{call.name} {target}", LONGEST)
            return line.does("acting", calls=line.calls + 1, doing=doing)
        case ToolFinished():
            return line.does("observing")
        case MessageDone(message=message):
            said = _first_line(message.text)
            return replace(line, doing=said or line.doing, said=said or line.said)
        case TurnEnded(reason=reason, error=error, at=at):
            trouble = one_line(error.message, LONGEST) if error else ""
            line = line.going_on(at, "finished")
            return replace(line, ending=reason, ended=at, paused=False, trouble=trouble, asked=())
        case _:
            return None


def _first_line(text: str) -> str:
    """The first line that says something, without the marks of Markdown around words."""
    lines = (line.strip("#>*- \t`") for line in text[: 8 * LONGEST].split("\n"))
    return one_line(next(filter(None, lines), "").replace("**", "").replace("`", ""), LONGEST)


def _facts(event: AgentStarted) -> dict[str, Any]:
    """What its start says of an agent; the call is the newest one that it works for."""
    return {
        "kind": event.kind,
        "description": event.description,
        "call_id": event.call_id,
        "model": event.model,
        "background": event.background,
        "worktree": event.worktree,
    }
