"""The teams of a session as a fold over events: members, messages in order, conflicts. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from ba_tui.core.events import ConflictChanged, Event, TeamChanged, TeamMessage
from ba_tui.core.teamwork.teams import EVERYBODY, AgentMessage, Claim, Conflict, Team
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line

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
