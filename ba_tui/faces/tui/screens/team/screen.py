"""The team: members and what they do, conflicts and how they were settled, and the messages between them as a log.

Live and from the journal. Heartbeats are no messages: how long a member has been silent stands behind its name.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Static

from ba_tui.core.errors import StorageError
from ba_tui.core.ports.teams import Teams
from ba_tui.core.results import Prose
from ba_tui.core.teamwork.teams import AgentMessage, Conflict, Member, Team
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count, one_line
from ba_tui.faces.tui.agents.painted import spent
from ba_tui.faces.tui.inspector.model import Inspected
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.replay import paced
from ba_tui.faces.tui.screens.overview.grouped import GroupedPicker, PickerGroup
from ba_tui.faces.tui.screens.picker import PickerChoice, app_of
from ba_tui.faces.tui.screens.team.fold import TeamCourse, TeamFold, claimed, first_line, named, receiver, settled

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import Actions

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
