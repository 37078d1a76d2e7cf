"""Sub-agents of a session: fold their events, assign agents to rows of calls, and paint those rows.

Pure, and equal for live events and the journal. Streamed text is ignored, so that events stay cheap. Widths are cells.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment

from ba_tui.core import events
from ba_tui.core.events import MAIN, Ending, Event
from ba_tui.core.messages import Message
from ba_tui.core.teamwork import AgentActivity
from ba_tui.core.text.cells import clip
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.values import frozen
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.transcript.lines import Segments
from ba_tui.faces.tui.transcript.palette import Palette

PASSING = (events.TextDelta, events.ThinkingDelta, events.ToolInputDelta, events.ToolProgress, events.PromptProgress)
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
class RosterEntry:
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
    """Since when it waits for the user; 0 while it does not."""
    waited: float = 0.0
    """Seconds that it has waited for the user so far."""
    asked: tuple[str, ...] = ()
    """The ids of its open questions to the user."""
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
        """Return the name for display: ``explore-1``."""
        return self.agent_id.removeprefix(f"{MAIN}/")

    @property
    def state(self) -> AgentState:
        if self.ending is not None:
            return _STATES[self.ending]
        return "waiting" if self.activity == "awaiting_approval" else "running"

    @property
    def words(self) -> str:
        """Return the agent's current work, or how the agent ended, in one line."""
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
        """Return how long it has run, or ran, without the time in which it waited for the user."""
        return max(0.0, (self.ended or self.waits or now) - self.began - self.waited)

    def waiting(self, at: float) -> RosterEntry:
        """Return the entry while a question to the user is open: its clock is stopped."""
        return replace(self, activity="awaiting_approval", waits=self.waits or at)

    def does(self, activity: AgentActivity, **more: Any) -> RosterEntry:
        """Return the entry with a new activity, unless a question is open: that is shown first."""
        return replace(self, activity=self.activity if self.asked else activity, **more)

    def going_on(self, at: float, activity: AgentActivity) -> RosterEntry:
        """Return the line when no question is open any more."""
        waited = self.waited + max(0.0, at - self.waits) if self.waits else self.waited
        return replace(self, activity=activity, waits=0.0, waited=waited)


class Roster:
    """The sub-agents below ``above``, in the order in which they began."""

    def __init__(self, above: str = MAIN) -> None:
        self.lines: dict[str, RosterEntry] = {}
        """By the agent's name in events. An agent that is resumed keeps its place."""
        self._above = above
        self._below = f"{above}/"

    def running(self) -> Sequence[RosterEntry]:
        return [line for line in self.lines.values() if line.running]

    def apply(self, event: Event) -> RosterEntry | None:
        """Process one event; return the entry that it changed, of several that of the event's agent."""
        if isinstance(event, PASSING):
            return None
        if event.agent == self._above:
            if isinstance(event, events.TurnStarted | events.TurnEnded):
                self._close(event.at)
            return None
        if not event.agent.startswith(self._below):
            return None
        line = (
            self._begun(event)
            if isinstance(event, events.AgentStarted | events.TurnStarted)
            else self.lines.get(event.agent)
        )
        changed = _changed(line, event) if line is not None else None
        if changed is None:
            return None
        self.lines[event.agent] = changed
        if isinstance(event, events.MessageDone):
            self._spend(event.message, event.agent)
        return self.lines[event.agent]

    def end(self) -> None:
        """Mark agents without an end as interrupted."""
        for line in self.running():
            self._stop(line, line.ended or line.began)

    def _begun(self, event: events.AgentStarted | events.TurnStarted) -> RosterEntry:
        """Return the entry of an agent that starts or is resumed."""
        known = self.lines.get(event.agent)
        if known is None:
            known = RosterEntry(event.agent, event.agent.rpartition("/")[2].rpartition("-")[0], began=event.at)
        elif not known.running:
            known = replace(known, began=event.at, ended=0.0, ending=None, trouble="", said="", doing="", paused=False)
            known = replace(known, waits=0.0, waited=0.0, asked=())
        return known

    def _spend(self, message: Message, agent: str) -> None:
        """Add the tokens to the agent and to all agents above it."""
        spent = message.usage.prompt + message.usage.output if message.usage else 0
        while spent and (line := self.lines.get(agent)):
            self.lines[agent] = replace(line, tokens=line.tokens + spent)
            agent = agent.rpartition("/")[0]

    def _close(self, at: float) -> None:
        """End agents in the foreground with the turn that waits for them."""
        for line in self.running():
            if not line.background and not self._held(line):
                self._stop(line, at)

    def _held(self, line: RosterEntry) -> bool:
        """Return whether it belongs to an agent in the background."""
        above = line.agent_id.rpartition("/")[0]
        while parent := self.lines.get(above):
            if parent.background and parent.running:
                return True
            above = above.rpartition("/")[0]
        return False

    def _stop(self, line: RosterEntry, at: float) -> None:
        self.lines[line.agent_id] = replace(line.going_on(at, line.activity), ending="interrupted", ended=at)


def _changed(line: RosterEntry, event: Event) -> RosterEntry | None:
    """Return the line after an event of its agent; None when it stays as it is."""
    match event:
        case events.AgentStarted():
            return replace(line, **_facts(event))
        case events.TurnStarted(prompt=prompt):
            return replace(line, activity="thinking", description=line.description or one_line(prompt.text, LONGEST))
        case events.ActivityChanged(activity="awaiting_approval", at=at) if line.running:
            return line.waiting(at)
        case events.ActivityChanged(activity=activity, at=at) if line.running:
            return None if line.asked else line.going_on(at, activity)
        case events.AgentPaused(paused=paused):
            return replace(line, paused=paused)
        case events.Asked(ask_id=id, at=at):
            return replace(line.waiting(at), asked=(*line.asked, id))
        case events.Answered(ask_id=id, at=at):
            left = tuple(each for each in line.asked if each != id)
            return replace(line if left else line.going_on(at, "acting"), asked=left)
        case events.ToolStarted(call=call, target=target):
            doing = one_line(f"{call.name} {target}", LONGEST)
            return line.does("acting", calls=line.calls + 1, doing=doing)
        case events.ToolFinished():
            return line.does("observing")
        case events.MessageDone(message=message):
            said = _first_line(message.text)
            return replace(line, doing=said or line.doing, said=said or line.said)
        case events.TurnEnded(reason=reason, error=error, at=at):
            trouble = one_line(error.message, LONGEST) if error else ""
            line = line.going_on(at, "finished")
            return replace(line, ending=reason, ended=at, paused=False, trouble=trouble, asked=())
        case _:
            return None


def _first_line(text: str) -> str:
    """Return the first line with words, without Markdown marks around them."""
    lines = (line.strip("#>*- \t`") for line in text[: 8 * LONGEST].split("\n"))
    return one_line(next(filter(None, lines), "").replace("**", "").replace("`", ""), LONGEST)


def _facts(event: events.AgentStarted) -> dict[str, Any]:
    """Return the fields of an agent's row from the event of its start. The call is the newest one of the agent."""
    return {
        "kind": event.kind,
        "description": event.description,
        "call_id": event.call_id,
        "model": event.model,
        "background": event.background,
        "worktree": event.worktree,
    }


class AgentRows:
    """The agents that the calls of ``agent`` started, by call. An agent that no call started has
    its own row, under the agent's name.

    ``take`` applies changes to the rows when the transcript is painted: agents send thousands of events.
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
        """Return whether a row shows an outdated state."""
        return bool(self._stirred)

    def apply(self, event: Event, calls: Container[str] = ()) -> RosterEntry | None:
        """Process an event of a sub-agent. Return its entry if it needs a row of its own because none of ``calls``
        started it.
        """
        line = self._roster.apply(event)
        if line is None:
            return None
        wanted = None
        if isinstance(event, events.AgentStarted):
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
        before = self._roster.running() if isinstance(event, events.TurnEnded) else ()
        self._roster.apply(event)
        for line in before:
            if not self._roster.lines[line.agent_id].running:
                self._stir(line.agent_id)

    def end(self) -> None:
        """Mark all agents as ended."""
        for line in self._roster.running():
            self._stir(line.agent_id)
        self._roster.end()

    def alive(self, id: str) -> bool:
        """Return whether an agent of the row runs."""
        return any(self._roster.lines[name].running for name in self._shown.get(id, ()) if self._row[name] == id)

    def take(self) -> Iterator[tuple[str, tuple[RosterEntry, ...]]]:
        """Yield the rows that changed, by their ids, with their agents as they are now."""
        stirred, self._stirred = self._stirred, set()
        for id in sorted(stirred):
            yield id, tuple(self._roster.lines[name] for name in self._shown[id])

    def _stir(self, agent: str) -> None:
        """Note that the row of ``agent``, or of the one that it works for, has changed."""
        while agent and agent not in self._row:
            agent = agent.rpartition("/")[0]
        if agent:
            self._stirred.add(self._row[agent])


NAME = 11
CALLS, TOKENS, TIME = 10, 7, 8
NARROW = 64
"""Cells from which calls are counted; below, what an agent is for needs the room."""
MOST = 6
"""Agents of one call that a folded row lists."""


class AgentSpace(NamedTuple):
    """``width`` in cells; ``now`` in seconds since the epoch."""

    width: int
    palette: Palette
    now: float


def spent(seconds: float) -> str:
    """Return ``12s``, ``2m05s``, ``1h07m``: whole seconds, so that nothing flickers."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02}s" if whole < 3_600 else f"{whole // 3_600}h{whole // 60 % 60:02}m"


def head(lines: Sequence[RosterEntry], name: str, target: str, space: AgentSpace) -> Segments:
    """Return the first line: who works on what; then calls, tokens and time in columns."""
    if len(lines) == 1:
        return _columns(lines[0], _shown(lines[0]), lines[0].description or target, space)
    first = min(line.began for line in lines)
    last = 0.0 if any(line.running for line in lines) else max(line.ended for line in lines)
    whole = RosterEntry(
        "", "", began=first, ended=last, calls=sum(each.calls for each in lines), tokens=sum(_own(lines))
    )
    return _columns(whole, name, f"{count(len(lines), 'agent')}: {target}" if target else "", space)


def below(lines: Sequence[RosterEntry], space: AgentSpace, *, everything: bool = False) -> list[Segments]:
    """Return the lines below: what an agent does or how it ended; for several a line each, running ones first."""
    palette = space.palette
    if len(lines) == 1:
        return [(_words(lines[0], space.width, palette),)]
    shown = sorted(lines, key=lambda line: not line.running)
    left = 0 if everything else max(0, len(lines) - MOST)
    rows = [_member(line, space) for line in shown[: len(lines) - left]]
    if left:
        words = f"{palette.glyphs.more} {count(left, 'more agent')}, /agents lists all"
        rows.append((Segment(clip(words, space.width, palette.glyphs.more), palette.dim),))
    return rows


def _own(lines: Sequence[RosterEntry]) -> Sequence[int]:
    """Return the tokens of each that are not in those of another one above it."""
    names = {line.agent_id for line in lines}
    return [line.tokens for line in lines if line.agent_id.rpartition("/")[0] not in names]


def _shown(line: RosterEntry) -> str:
    return line.agent_id.rpartition("/")[2]


def _columns(line: RosterEntry, name: str, target: str, space: AgentSpace) -> Segments:
    palette, more = space.palette, space.palette.glyphs.more
    name = clip(paintable(name, newlines=False), max(NAME, space.width // 4), more)
    name += " " * (NAME - cell_len(name))
    calls = count(line.calls, "call") if line.calls and space.width >= NARROW else ""
    tokens = short_count(line.tokens) if line.tokens else ""
    figures = f"{calls:>{CALLS if space.width >= NARROW else 0}}{tokens:>{TOKENS}}"
    timed = f"{spent(line.seconds(space.now)):>{TIME}}"
    room = max(0, space.width - cell_len(name) - 1 - len(figures) - len(timed))
    target = clip(paintable(target, newlines=False), room, more)
    return (
        Segment(name + " ", palette.name),
        Segment(target + " " * (room - cell_len(target)), palette.target),
        Segment(figures, palette.dim),
        Segment(timed, palette.dim),
    )


def _words(line: RosterEntry, width: int, palette: Palette) -> Segment:
    words = line.words
    if line.background and line.running:
        words = f"in the background: {words}"
    if line.worktree and line.running:
        words = f"in a copy: {words}"
    said = clip(paintable(words, newlines=False), width, palette.glyphs.more)
    tone = palette.dim if line.state in ("running", "ok") else getattr(palette, line.state, palette.dim)
    return Segment(said, tone)


def _member(line: RosterEntry, space: AgentSpace) -> Segments:
    """Return the line of one of several agents: sign, name, activity, tokens."""
    palette = space.palette
    sign = getattr(palette.glyphs, line.state)
    name = clip(paintable(_shown(line), newlines=False), 16, palette.glyphs.more)
    tokens = f"{short_count(line.tokens) if line.tokens else '':>{TOKENS}}{spent(line.seconds(space.now)):>{TIME}}"
    room = max(8, space.width - 2 - 17 - len(tokens) - 1)
    words = _words(line, room, palette)
    gap = " " * max(1, room + 1 - cell_len(words.text))
    return (
        Segment(f"{sign} ", getattr(palette, line.state, palette.dim)),
        Segment(f"{name}{' ' * (17 - cell_len(name))}", palette.name),
        words,
        Segment(gap + tokens, palette.dim),
    )
