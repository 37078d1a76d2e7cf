"""The command of teams, and the screen of a team: its members, its conflicts and settlements, and a log of messages.

Live and from the journal. Heartbeats are not listed: the time of silence is shown after a member's name.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, TypeAlias, cast, get_args

from textual.binding import Binding, BindingType

from ba_tui.core.errors import UsageError
from ba_tui.core.events import ConflictChanged, Event, TeamChanged, TeamMessage
from ba_tui.core.results import Prose
from ba_tui.core.teamwork import EVERYBODY, AgentMessage, Claim, Conflict, Member, Pattern, Strategy, Team, TeamOrder
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line, suggestion
from ba_tui.faces.tui.acts.port import Actions, inventory_of, needed
from ba_tui.faces.tui.inspector.model import InspectorValue
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.roster import spent
from ba_tui.faces.tui.screens.list_screen import ListContent, ListRow
from ba_tui.faces.tui.screens.live_list import LiveList
from ba_tui.faces.tui.screens.sheet import app_of
from ba_tui.features.teams.session import TeamSession

Row: TypeAlias = "ListRow[Member | Conflict | AgentMessage]"
LEAD = regex(r"^lead:[0-9a-f]+")
KEPT = 2_000
"""Maximum messages of one team in memory, the newest."""
LONGEST = 200
"""Maximum characters of the first line of a message."""
STEPS = {
    "leased": "lends {borrower} {tool}",
    "called": "runs {tool} for {borrower}",
    "denied": "does not run {tool} for {borrower}",
    "expired": "lends {borrower} {tool} no longer: the time is over",
    "revoked": "took {tool} back from {borrower}",
}
"""Steps of a lease in words."""
TELLING = ("text", "task", "result", "summary", "status", "question", "answer", "error", "description")
"""Keys of a message's content that describe its subject; the first existing one is used."""


@dataclass
class TeamCourse:
    """The present state of one team. ``messages``: oldest first; ``gone``: the number of dropped older ones."""

    team: Team
    messages: list[AgentMessage] = field(default_factory=list[AgentMessage])
    conflicts: dict[str, Conflict] = field(default_factory=dict[str, Conflict])
    gone: int = 0


class TeamFold:
    """All teams of the session by id, the newest last."""

    def __init__(self) -> None:
        self.teams: dict[str, TeamCourse] = {}

    def apply(self, event: Event) -> bool:
        """Process an event; return whether anything changed."""
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
    """Return a member's name for display: inboxes of leads end in the id of their team."""
    return LEAD.sub("lead", name)


def receiver(message: AgentMessage) -> str:
    return "everybody" if message.receiver == EVERYBODY else named(message.receiver)


def first_line(message: AgentMessage) -> str:
    """Return the subject of a message, in one line."""
    content = message.content
    if said := _shared(content) if message.type == "information_share" else _wanted(message):
        return one_line(said[: 4 * LONGEST], LONGEST)
    told = next((content[key] for key in TELLING if content.get(key)), None)
    if told is None:
        told = next((value for value in content.values() if value not in (None, "", [], {})), "")
    return one_line(told[: 4 * LONGEST] if isinstance(told, str) else str(told)[: 4 * LONGEST], LONGEST)


def _shared(content: dict[str, Any]) -> str:
    """Return a text for a shared item; empty if it has no words of its own."""
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
    """Return a text for a member's question; empty for other messages."""
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
    """Return how a conflict was settled, or that it is open, in one line."""
    if conflict.winner is None:
        return f"open, {count(len(conflict.claims), 'claim')}"
    said = f"{conflict.winner.member}: {claimed(conflict.winner)}"
    return f"settled by {conflict.strategy} for {said}"


def claimed(claim: Claim) -> str:
    return one_line(str(claim.value), LONGEST)


SHOWN = 200
"""Maximum messages in the list, the newest."""
WORKING = ("forming", "working", "synthesizing")
SILENT = 30.0
"""Seconds without a sign of life after which a working member is highlighted."""
OVER = ("finished", "error", "cancelled", "idle")


class TeamScreen(LiveList[Member | Conflict | AgentMessage]):
    """The newest team; the arrow keys show earlier ones. Enter opens a member's transcript, a message or a conflict."""

    EMPTY: ClassVar[str] = "No team yet. /team GOAL starts one: /team --roles researcher,writer Write a report on …"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "pause"),
        Binding("left", "team(-1)", "Earlier team", show=False),
        Binding("right", "team(1)", "Later team", show=False),
    ]

    def __init__(self, chat: Actions) -> None:
        super().__init__(chat, "Team")
        self._fold = TeamFold()
        self._back = 0
        """How many teams before the newest one is shown."""

    def restart(self) -> None:
        self._fold = TeamFold()

    def fold(self, event: Event) -> bool:
        return self._fold.apply(event)

    def is_live(self) -> bool:
        return self.course is not None and self.course.team.state in WORKING

    @property
    def course(self) -> TeamCourse | None:
        """Return the team that is shown."""
        teams = list(self._fold.teams.values())
        self._back = max(0, min(self._back, len(teams) - 1))
        return teams[-1 - self._back] if teams else None

    def draw(self) -> None:
        course = self.course
        self.show(
            ListContent(_rows(course, time.time()) if course else (), self._title(course.team) if course else "Team")
        )

    def footer(self) -> list[str]:
        """Return the keys that have an effect now."""
        course = self.course
        keys = (
            "Enter open" if course else "",
            ("p continue" if self._paused else "p pause") if course and course.team.state in WORKING else "",
            "← → other team" if len(self._fold.teams) > 1 else "",
            "Esc close",
        )
        return list(filter(None, keys))

    def _title(self, team: Team) -> str:
        teams = len(self._fold.teams)
        place = f"{teams - self._back} of {teams}" if teams > 1 else ""
        state = "paused" if self._paused and team.state in WORKING else team.state
        parts = ("Team", place, state, team.pattern, team.goal)
        return " · ".join(filter(None, parts))

    def action_team(self, by: int) -> None:
        self._back -= by
        self.draw()

    def action_pause(self) -> None:
        """Pause the running team, or let it continue."""
        teams = self._chat.session.live[1].inventory.feature(TeamSession)
        pauses = not self._paused
        if teams is None or not teams.pause(on=pauses):
            self.say("No team is running.")
            return
        self.draw()
        self.say("The team pauses after its running requests: p continues." if pauses else "The team continues.")

    @property
    def _paused(self) -> bool:
        """Whether the team is paused, perhaps before this screen was opened."""
        teams = self._chat.session.live[1].inventory.feature(TeamSession)
        return teams is not None and teams.paused()

    def choose(self, row: Row) -> None:
        match row.value:
            case Member() as member:
                self._open_member(member)
            case Conflict() as conflict:
                app_of(self).push_screen(InspectorScreen(_conflict_page(conflict)))
            case AgentMessage() as message:
                app_of(self).push_screen(InspectorScreen(_message_page(message)))
            case None:
                pass

    def _open_member(self, member: Member) -> None:
        if not member.agent_id or member.where:
            where = f" works in {member.where}" if member.where else " has no transcript"
            self.say(f"{member.name}{where}: its messages are below.")
            return
        self._chat.call_command("agents", member.agent_id)


def _rows(course: TeamCourse, now: float) -> list[Row]:
    team, messages, conflicts = course.team, course.messages[-SHOWN:], course.conflicts.values()
    working = team.state in WORKING
    left = course.gone + len(course.messages) - len(messages)
    older = f", {count(left, 'older message')} not listed" if left else ""
    rows = [_member_row(each, now, f"Members ({len(team.members)})", working=working) for each in team.members]
    rows += [_conflict_row(each, f"Conflicts ({len(conflicts)})") for each in conflicts]
    return [*rows, *(_message_row(each, f"Messages ({left + len(messages)}){older}") for each in messages)]


def _member_row(member: Member, now: float, group: str, *, working: bool) -> Row:
    heard = ""
    if working and member.heard:
        silent = max(0.0, now - member.heard)
        mark = "! " if silent > SILENT and member.activity not in OVER else ""
        heard = f"{mark}heard {spent(silent)} ago"
    called = named(member.name)
    name = called if called == member.role else f"{called} ({member.role})"
    where = f" on {member.where}" if member.where else ""
    cells = (f"{name}{where}", _activity(member), heard)
    return ListRow(f"member:{member.name}", cells, one_line(member.doing, 300), value=member, group=group)


def _activity(member: Member) -> str:
    return member.activity.replace("_", " ")


def _conflict_row(conflict: Conflict, group: str) -> Row:
    sign = "?" if conflict.winner is None else "✓"
    claims = " · ".join(f"{claim.member}: {claimed(claim)}" for claim in conflict.claims)
    cells = (f"{sign} {conflict.key}: {settled(conflict)}",)
    return ListRow(f"conflict:{conflict.id}", cells, claims, value=conflict, group=group)


def _message_row(message: AgentMessage, group: str) -> Row:
    kind = message.type.replace("_", " ")
    words = f"{named(message.sender)} → {receiver(message)}  {first_line(message)}"
    return ListRow(f"message:{message.id}", (words, kind, _clock(message.at)), value=message, group=group)


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S")


def _message_page(message: AgentMessage) -> InspectorValue:
    title = f"{message.type.replace('_', ' ')}: {named(message.sender)} → {receiver(message)}"
    long = {key: value for key, value in message.content.items() if isinstance(value, str) and "\n" in value}
    facts = {"at": _clock(message.at), **{key: value for key, value in message.content.items() if key not in long}}
    if message.correlation_id:
        facts["belongs to"] = message.correlation_id
    text = "\n\n".join(long.values()) if len(long) < 2 else "\n\n".join(f"## {key}\n\n{long[key]}" for key in long)
    return InspectorValue(title, facts, Prose(text, markdown=True) if text else None)


def _conflict_page(conflict: Conflict) -> InspectorValue:
    claims = [f"- **{claim.member}** (confidence {claim.confidence:.0%}): {claim.value}" for claim in conflict.claims]
    ended = settled(conflict)
    words = "\n".join([*claims, "", f"{ended[:1].upper()}{ended[1:]}.", "", conflict.reason])
    return InspectorValue(
        f"Conflict on {conflict.key}", {"strategy": conflict.strategy}, Prose(words.strip(), markdown=True)
    )


USE = "For example: /team --roles researcher,writer --pattern committee Write a report on …"
PAUSE, CONTINUE, RESUME = "pause", "continue", "resume"
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


def team(chat: Actions, words: str) -> None:
    """Show the team without words; pause, continue or resume one; else start a turn that a new team answers."""
    if not words.strip():
        _ = chat.session.live
        chat.ba.push_screen(TeamScreen(chat))
        return
    teams = needed(inventory_of(chat).feature(TeamSession), "This session can't run teams.")
    word = words.strip()
    if word in (PAUSE, CONTINUE):
        if not teams.pause(on=word == PAUSE):
            raise UsageError("No team is running.", "/team resume goes on with one that was interrupted.")
        told = "The team pauses after its running requests." if word == PAUSE else "The team continues."
        chat.activity.hint(told, 5.0)
        return
    if chat.turns.missing:
        raise UsageError(chat.turns.missing, "/setup connects a model.")
    if word == RESUME:
        chat.turns.watch(chat.session.say("Go on with the team.", teams.resume()))
    else:
        order = ordered(words)
        chat.turns.watch(chat.session.say(order.goal, teams.run(order)))
    chat.activity.hint("A team works on it. /team shows its members and messages.", 5.0)


def ordered(words: str) -> TeamOrder:
    """Parse the arguments of /team: options first, then the goal. Raises UsageError."""
    given: dict[str, str] = {}
    rest = words.strip()
    while rest.startswith("--"):
        option, rest = (*rest.split(None, 1), "")[:2]
        name, equals, value = option.removeprefix("--").partition("=")
        if name not in ("roles", "pattern", "conflicts"):
            known = ("roles", "pattern", "conflicts")
            raise UsageError(f"/team has no option --{name}: {suggestion(name, known)}.", USE)
        if not equals:
            value, rest = (*rest.split(None, 1), "", "")[:2]
        if not value or value.startswith("--"):
            raise UsageError(f"--{name} needs a value.", USE)
        given[name] = _unquoted(value)
    if not rest.strip():
        raise UsageError("/team needs a goal.", USE)
    roles = tuple(filter(None, (role.strip() for role in given.get("roles", "").split(","))))
    pattern = _one_of("pattern", given.get("pattern", ""), PATTERNS)
    conflicts = _one_of("conflicts", given.get("conflicts", ""), STRATEGIES)
    return TeamOrder(rest.strip(), roles, cast("Pattern | None", pattern), cast("Strategy | None", conflicts))


def _unquoted(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:
        return value


def _one_of(option: str, value: str, known: tuple[str, ...]) -> str | None:
    if value and value not in known:
        raise UsageError(f"There is no {option} {value!r}: {suggestion(value, known)}.", USE)
    return value or None
