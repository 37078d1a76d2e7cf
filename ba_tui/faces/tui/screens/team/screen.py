"""The team: members and what they do, conflicts and how they were settled, and the messages between them as a log.

Live and from the journal. Heartbeats are no messages: how long a member has been silent stands behind its name.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.binding import Binding, BindingType
from textual.widgets import Static

from ba_tui.core.errors import StorageError
from ba_tui.core.events import ConflictChanged, Event, TeamChanged, TeamMessage
from ba_tui.core.ports.teams import Teams
from ba_tui.core.results import Prose
from ba_tui.core.teamwork.teams import EVERYBODY, AgentMessage, Claim, Conflict, Member, Team
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count, one_line
from ba_tui.faces.tui.agents.painted import spent
from ba_tui.faces.tui.inspector.model import Inspected
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.replay import paced
from ba_tui.faces.tui.screens.overview.grouped import GroupedPicker, PickerGroup
from ba_tui.faces.tui.screens.picker import PickerChoice, app_of

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import Actions

LEAD = regex(r"^lead:[0-9a-f]+")
KEPT = 2_000
"""Messages of one team that are kept, the newest."""
LONGEST = 200
"""Characters of the first line of a message."""
STEPS = {
    "leased": "lends {borrower} {tool}",
    "called": "runs {tool} for {borrower}",
    "denied": "does not run {tool} for {borrower}",
    "expired": "lends {borrower} {tool} no longer: the time is over",
    "revoked": "took {tool} back from {borrower}",
}
"""Steps of a lease in words."""
TELLING = ("text", "task", "result", "summary", "status", "question", "answer", "error", "description")
"""Keys of a message's content that say what it is about, the first that is there."""


@dataclass
class TeamCourse:
    """One team as it is now. ``messages``: the oldest first; ``gone``: how many older ones are not kept."""

    team: Team
    messages: list[AgentMessage] = field(default_factory=list[AgentMessage])
    conflicts: dict[str, Conflict] = field(default_factory=dict[str, Conflict])
    gone: int = 0


class TeamFold:
    """All teams of the session, by id, the newest last."""

    def __init__(self) -> None:
        self.teams: dict[str, TeamCourse] = {}

    def apply(self, event: Event) -> bool:
        """Whether anything changed."""
        match event:
            case TeamChanged(team=team):
                self._of(team.id).team = team
            case TeamMessage(message=message):
                course = self._of(message.team or next(reversed(self.teams), ""))
                course.messages.append(message)
                if len(course.messages) > 2 * KEPT:
                    course.gone += KEPT
                    del course.messages[:KEPT]
            case ConflictChanged(team=id, conflict=conflict):
                self._of(id).conflicts[conflict.id] = conflict
            case _:
                return False
        return True

    def _of(self, id: str) -> TeamCourse:
        return self.teams.setdefault(id, TeamCourse(Team(id, "", "hierarchical")))


def named(name: str) -> str:
    """A member as people read it: inboxes of leads end in the id of their team."""
    return LEAD.sub("lead", name)


def receiver(message: AgentMessage) -> str:
    return "everybody" if message.receiver == EVERYBODY else named(message.receiver)


def first_line(message: AgentMessage) -> str:
    """What a message is about, in a line."""
    content = message.content
    if said := _shared(content) if message.type == "information_share" else _wanted(message):
        return one_line(said[: 4 * LONGEST], LONGEST)
    told = next((content[key] for key in TELLING if content.get(key)), None)
    if told is None:
        told = next((value for value in content.values() if value not in (None, "", [], {})), "")
    return one_line(told[: 4 * LONGEST] if isinstance(told, str) else str(told)[: 4 * LONGEST], LONGEST)


def _shared(content: dict[str, Any]) -> str:
    """What was shared; empty for what has no words of its own."""
    value = content.get("value")
    match content.get("kind"), value:
        case "leases", {"step": str(step), "borrower": str(borrower), "tool": str(tool)} if step in STEPS:
            held = cast("dict[str, Any]", value)
            why = " ".join(str(held.get(key) or "") for key in ("about", "reason")).strip()
            return STEPS[step].format(tool=tool, borrower=named(borrower)) + (f": {why}" if why else "")
        case "lenders", list():
            names = ", ".join(map(str, cast("list[Any]", value)))
            return f"tools to borrow at {names}" if names else "nobody lends tools"
        case "answer", {"choice": choice}:
            return "allowed once" if choice == "once" else "denied"
        case "item" | None, None:
            return ""
        case "item" | None, _:
            return f"{content.get('key', '')}: {value}"
        case _:
            return ""


def _wanted(message: AgentMessage) -> str:
    """What a member asks for; empty for what is no question."""
    if message.type != "context_request":
        return ""
    query = message.content.get("query") or ""
    match message.content.get("kind"):
        case "capability":
            return f"who lends tools for {query}?" if query else "who lends tools?"
        case "question":
            return f"may {query} run?"
        case "context":
            return f"what is known of {query}?"
        case _:
            return ""


def settled(conflict: Conflict) -> str:
    """How a conflict ended, in a line; that it is open otherwise."""
    if conflict.winner is None:
        return f"open, {count(len(conflict.claims), 'claim')}"
    said = f"{conflict.winner.member}: {claimed(conflict.winner)}"
    return f"settled by {conflict.strategy} for {said}"


def claimed(claim: Claim) -> str:
    return one_line(str(claim.value), LONGEST)


SHOWN = 200
"""Messages that are listed, the newest."""
EMPTY = "No team yet. /team GOAL starts one: /team --roles researcher,writer Write a report on …"
WORKING = ("forming", "working", "synthesizing")
SILENT = 30.0
"""Seconds without a sign of life after which a working member stands out."""
OVER = ("finished", "error", "cancelled", "idle")


class TeamScreen(GroupedPicker):
    """The newest team; the arrows go to earlier ones. Enter opens a member's transcript, a message or a conflict."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "Pause the team, or continue"),
        Binding("left", "team(-1)", "Earlier team", show=False),
        Binding("right", "team(1)", "Later team", show=False),
    ]

    def __init__(self, chat: Actions) -> None:
        super().__init__("Team", keys="Esc close")
        self._chat = chat
        self._fold = TeamFold()
        self._back = 0
        """How many teams before the newest one is shown."""
        self._stirred = True
        self._read = False

    def on_mount(self) -> None:
        self.set_interval(1.0, self._tick)

    def action_reload(self) -> None:
        """Fold the session anew."""
        self._fold = TeamFold()
        self.run_worker(self._follow, group="team", exclusive=True, exit_on_error=False)

    async def _follow(self) -> None:
        _, conversation = self._chat.session.live
        fold = self._fold
        self._read, self._stirred = True, True
        try:
            async for number, event in paced(conversation.follow()):
                self._stirred = fold.apply(event) or self._stirred
                if number == 1:
                    # Drawn once all that was waiting is folded.
                    self.call_later(self._tick)
        except StorageError as error:
            self.say(error.with_hint)

    @property
    def course(self) -> TeamCourse | None:
        """The team that is shown."""
        teams = list(self._fold.teams.values())
        self._back = max(0, min(self._back, len(teams) - 1))
        return teams[-1 - self._back] if teams else None

    def _tick(self) -> None:
        course = self.course
        if self.is_mounted and (self._stirred or (course and course.team.state in WORKING)):
            self._stirred = False
            self._draw(course)

    def _draw(self, course: TeamCourse | None) -> None:
        self.empty = EMPTY if self._read else "Looking …"
        self.groups = _groups(course, time.time()) if course else ()
        self.query_one(".title", Static).update(self._title(course.team) if course else "Team")
        if (keys := self._keys(course)) != self.keys:
            # What was said stays where the keys stay the same.
            self.keys = keys
            self.say(keys)
        self.refill()

    def _keys(self, course: TeamCourse | None) -> str:
        """Only what a key can do now."""
        keys = (
            "Enter open" if course else "",
            ("p continue" if self._paused else "p pause") if course and course.team.state in WORKING else "",
            "← → other team" if len(self._fold.teams) > 1 else "",
            "Esc close",
        )
        return " · ".join(filter(None, keys))

    def _title(self, team: Team) -> str:
        teams = len(self._fold.teams)
        place = f"{teams - self._back} of {teams}" if teams > 1 else ""
        state = "paused" if self._paused and team.state in WORKING else team.state
        parts = ("Team", place, state, team.pattern, team.goal)
        return paintable(" · ".join(filter(None, parts)), newlines=False)

    def action_team(self, by: int) -> None:
        self._back -= by
        self._draw(self.course)

    def action_pause(self) -> None:
        """Let the running team stand still, or continue."""
        teams = self._chat.session.live[1].inventory.feature(Teams)
        pauses = not self._paused
        if teams is None or not teams.pause(on=pauses):
            self.say("No team is running.")
            return
        self._draw(self.course)
        self.say("The team pauses after its running requests: p continues." if pauses else "The team continues.")

    @property
    def _paused(self) -> bool:
        """The team may have been paused before this screen was opened."""
        teams = self._chat.session.live[1].inventory.feature(Teams)
        return teams is not None and teams.paused()

    def choose(self, id: str) -> None:
        course = self.course
        kind, _, name = id.partition(":")
        if course is None:
            return
        if kind == "member":
            self._member(next((each for each in course.team.members if each.name == name), None))
        elif kind == "conflict" and name in course.conflicts:
            app_of(self).push_screen(InspectorScreen(_conflict_page(course.conflicts[name])))
        elif message := next((each for each in course.messages if each.id == name), None):
            app_of(self).push_screen(InspectorScreen(_message_page(message)))

    def _member(self, member: Member | None) -> None:
        if member is None:
            return
        if not member.agent_id or member.where:
            where = f" works in {member.where}" if member.where else " has no transcript"
            self.say(f"{member.name}{where}: its messages are below.")
            return
        from ba_tui.faces.tui.agents.screen import AgentScreen  # noqa: PLC0415 - most views are only read

        app_of(self).push_screen(AgentScreen(self._chat, member.agent_id))


def _groups(course: TeamCourse, now: float) -> list[PickerGroup]:
    team, messages = course.team, course.messages[-SHOWN:]
    working = team.state in WORKING
    left = course.gone + len(course.messages) - len(messages)
    older = f", {count(left, 'older message')} not listed" if left else ""
    shown = [
        (f"Members ({len(team.members)})", [_member_row(each, now, working=working) for each in team.members]),
        (f"Conflicts ({len(course.conflicts)})", [_conflict_row(each) for each in course.conflicts.values()]),
        (f"Messages ({left + len(messages)}){older}", [_message_row(each) for each in messages]),
    ]
    return [PickerGroup(head, rows) for head, rows in shown if rows]


def _member_row(member: Member, now: float, *, working: bool) -> PickerChoice:
    heard = ""
    if working and member.heard:
        silent = max(0.0, now - member.heard)
        mark = "! " if silent > SILENT and member.activity not in OVER else ""
        heard = f"{mark}heard {spent(silent)} ago"
    called = named(member.name)
    name = called if called == member.role else f"{called} ({member.role})"
    where = f" on {member.where}" if member.where else ""
    doing = one_line(member.doing, 300)
    return PickerChoice(f"member:{member.name}", (f"{name}{where}", _activity(member), heard), doing)


def _activity(member: Member) -> str:
    return member.activity.replace("_", " ")


def _conflict_row(conflict: Conflict) -> PickerChoice:
    sign = "?" if conflict.winner is None else "✓"
    claims = " · ".join(f"{claim.member}: {claimed(claim)}" for claim in conflict.claims)
    return PickerChoice(f"conflict:{conflict.id}", (f"{sign} {conflict.key}: {settled(conflict)}",), claims)


def _message_row(message: AgentMessage) -> PickerChoice:
    kind = message.type.replace("_", " ")
    words = f"{named(message.sender)} → {receiver(message)}  {first_line(message)}"
    return PickerChoice(f"message:{message.id}", (words, kind, _clock(message.at)))


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S")


def _message_page(message: AgentMessage) -> Inspected:
    title = f"{message.type.replace('_', ' ')}: {named(message.sender)} → {receiver(message)}"
    long = {key: value for key, value in message.content.items() if isinstance(value, str) and "\n" in value}
    facts = {"at": _clock(message.at), **{key: value for key, value in message.content.items() if key not in long}}
    if message.correlation_id:
        facts["belongs to"] = message.correlation_id
    text = "\n\n".join(long.values()) if len(long) < 2 else "\n\n".join(f"## {key}\n\n{long[key]}" for key in long)
    return Inspected(title, facts, Prose(text, markdown=True) if text else None)


def _conflict_page(conflict: Conflict) -> Inspected:
    claims = [f"- **{claim.member}** (confidence {claim.confidence:.0%}): {claim.value}" for claim in conflict.claims]
    ended = settled(conflict)
    words = "\n".join([*claims, "", f"{ended[:1].upper()}{ended[1:]}.", "", conflict.reason])
    return Inspected(
        f"Conflict on {conflict.key}", {"strategy": conflict.strategy}, Prose(words.strip(), markdown=True)
    )
