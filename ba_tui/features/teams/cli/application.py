"""``ba team``: runs a team of agents on a goal, and lists the roles there are. Nobody is asked: what asks is denied."""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer

from ba_tui.cli.config import Cwd, folder_of, print_line, say
from ba_tui.cli.streams import output_failed
from ba_tui.cli.trust import untrusted
from ba_tui.core.errors import BaError, UsageError, run_loop
from ba_tui.core.events import MAIN, ConflictChanged, Event, TeamChanged, TeamMessage
from ba_tui.core.ports.teams import TeamOrder, Teams
from ba_tui.core.services import Services, begin
from ba_tui.core.start import Start
from ba_tui.core.teamwork.teams import conflict_facts
from ba_tui.core.text.wording import nearest, one_line
from ba_tui.faces.headless import Printer, print_turn
from ba_tui.faces.run_result import INFRASTRUCTURE, USAGE, RunResult
from ba_tui.features.teams.cli.membership import add_commands
from ba_tui.resources import project_root

if TYPE_CHECKING:
    from ba_tui.core.conversation import Conversation
    from ba_tui.core.teamwork.teams import Conflict, Team
    from ba_tui.core.turn import Turn

BRIEF = 100
PATTERNS = ("hierarchical", "committee", "market")
STRATEGIES = ("majority", "confidence", "authority", "verifier", "person")
Format = Literal["text", "json", "stream-json"]
Mode = Literal["default", "accept-edits", "plan", "auto"]

app = typer.Typer(no_args_is_help=True)
add_commands(app)


@app.command("run")
def run(  # noqa: PLR0913 - typer reads one parameter a flag
    goal: Annotated[str, typer.Argument(metavar="GOAL", help="What the team is to reach.")] = "",
    roles: Annotated[
        str, typer.Option(metavar="A,B,C", help="Roles or agents, in order; analyst*3 is three of them.")
    ] = "",
    pattern: Annotated[str | None, typer.Option(metavar="NAME", help="hierarchical, committee or market.")] = None,
    conflicts: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Settle conflicts by majority, confidence, authority, verifier or person."),
    ] = None,
    deadline: Annotated[float | None, typer.Option(metavar="SECONDS", help="Stop the whole team after this.")] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", "-r", metavar="ID", help="Go on with the interrupted team of a session.")
    ] = None,
    output_format: Annotated[Format, typer.Option(help="What is printed.")] = "text",
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="PROVIDER/MODEL", help="The model to ask.")
    ] = None,
    permission_mode: Annotated[Mode | None, typer.Option(help="What may run without asking.")] = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Allow, e.g. 'edit_file(src/**)'. Repeatable.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0001, metavar="USD", help="Stop once the session has cost this much.")
    ] = None,
    cwd: Cwd = None,
) -> int:
    """Have a team of agents work on a goal; progress goes to stderr, the answer to stdout.

    \b
    Exit codes:
      0 ok · 1 a role, pattern or the goal is wrong · 2 the team failed
      3 a part is missing, or a limit was reached
      4 an approval was denied · 130 interrupted
    """
    from ba_tui.assembly import connect  # noqa: PLC0415 - --help must not wait for it

    folder = folder_of(cwd)
    order = TeamOrder(
        goal,
        tuple(name for each in roles.split(",") if (name := each.strip())),
        _one_of(pattern, PATTERNS, "pattern"),
        _one_of(conflicts, STRATEGIES, "strategy for conflicts"),
        deadline,
    )
    if not resume and not goal.strip():
        raise UsageError("The goal is empty.", 'Say what the team is to reach: ba team run "GOAL".')
    if resume and goal.strip():
        raise UsageError("A team that goes on keeps its goal.", "Leave the goal or --resume out.")
    flags = {"model": model, "permission_mode": permission_mode, "permissions.allow": allow, "max_cost": max_cost}
    services = connect({key: value for key, value in flags.items() if value}, folder, strict=True)
    printer = TeamPrinter(output_format, sys.stdout, sys.stderr)
    code = run_loop(_run(services, order, Start(resume=resume, all=True), printer))
    return output_failed(printer.lost, wanted=True) if printer.lost else code


@app.command("roles")
def roles_(
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    cwd: Cwd = None,
) -> int:
    """Print every role that a team can have; agents can be used as roles too. Broken files say why."""
    from ba_tui.assembly import tools_alone  # noqa: PLC0415 - see run
    from ba_tui.features.teams.engine.roles import Roles  # noqa: PLC0415 - see run
    from ba_tui.settings import printable  # noqa: PLC0415 - see run

    folder = folder_of(cwd)
    with tools_alone(folder, {}) as tools:
        found = Roles(tools.agents).look()
    if json_:
        rows = [
            {
                "name": each.role.name,
                "kind": "agent" if each.agent else "role",
                "source": each.source,
                "path": str(each.path),
                "description": each.role.description,
                "agent": each.role.agent,
                "capabilities": list(each.role.capabilities),
                "tools": None if each.role.tools is None else list(each.role.tools),
                "model": each.role.model or "",
                "max_loops": each.role.max_loops,
                "authority": each.role.authority,
                "members": each.role.members,
                "warnings": list(each.warnings),
                "trouble": each.trouble,
            }
            for each in found
        ]
        print_line(json.dumps(rows, indent=2))
    else:
        widest = max((len(each.role.name) for each in found), default=0)
        for each in found:
            kind = "broken" if each.trouble else "agent" if each.agent else "role"
            words = textwrap.shorten(each.trouble or each.role.description, BRIEF, placeholder=" …")
            print_line(printable(f"{each.role.name:<{widest}}  {kind:<6}  {each.source:<7}  {words}"))
        for each in found:
            for text in (*((each.trouble,) if each.trouble else ()), *each.warnings):
                say(f"{each.path}: {text}")
    if note := untrusted(project_root(folder)):
        say(note)
    return 0


@app.command("dead")
def dead(
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    cwd: Cwd = None,
) -> int:
    """Print messages that nobody could handle: they lie on the Redis server of team.bus_url.

    \b
    Exit codes:
      0 ok · 1 no server is set · 2 the server can't be used
    """
    from ba_tui.features.teams.cli.dead_letters import print_dead_letters  # noqa: PLC0415 - see run

    return run_loop(print_dead_letters(folder_of(cwd), as_json=json_))


def _one_of(given: str | None, known: tuple[Any, ...], what: str) -> Any:
    """``given`` when it is one of ``known``. Raises UsageError, naming the nearest."""
    if given is None or given in known:
        return given
    close = nearest(given, known)
    raise UsageError(
        f"There is no {what} {given!r}.", f"Did you mean {close}?" if close else f"Choose one of {', '.join(known)}."
    )


async def _run(services: Services, order: TeamOrder, start: Start, printer: TeamPrinter) -> int:
    for notice in services.notices:
        printer.event(notice)
    conversation: Conversation | None = None
    try:
        conversation = begin(services.library, start)
        await conversation.history()
        if missing := services.setup.missing(conversation.model):
            raise UsageError(missing)
        teams = conversation.inventory.feature(Teams)
        if teams is None:
            raise UsageError("Teams can't be used here.")
        work = await asyncio.to_thread(teams.resume if start.resume else lambda: teams.run(order))
        turn = conversation.say(order.goal or "Go on with the team's goal.", work)
    except BaError as error:
        if conversation:
            await conversation.close()
        printer.failed(error)
        return USAGE if error.kind in {"usage", "session_not_found"} else INFRASTRUCTURE
    return await _followed(conversation, turn, printer)


async def _followed(conversation: Conversation, turn: Turn, printer: TeamPrinter) -> int:
    outcome = RunResult(conversation.id, conversation.model)
    await print_turn(conversation, turn, printer, outcome)
    if outcome.ending == "cancelled":
        printer.say(f"To go on: ba team run -r {conversation.id}")
    return outcome.code


@dataclass
class Story:
    """What is to be told of the team at its end."""

    team: Team | None = None
    messages: int = 0
    conflicts: dict[str, Conflict] | None = None

    def facts(self) -> dict[str, Any]:
        """The part ``team`` of the JSON."""
        if self.team is None:
            return {}
        members = [
            {"name": each.name, "role": each.role, "activity": each.activity, "agent_id": each.agent_id}
            for each in self.team.members
        ]
        return {
            "id": self.team.id,
            "pattern": self.team.pattern,
            "state": self.team.state,
            "members": members,
            "messages": self.messages,
            "conflicts": [conflict_facts(each) for each in (self.conflicts or {}).values()],
        }


class TeamPrinter(Printer):
    """Prints a run as ``ba -p`` does, with lines about the team."""

    def __init__(self, format: str, out: TextIO, err: TextIO) -> None:
        super().__init__(format, out, err)
        self._kind = format
        self.story = Story()
        self._members: tuple[str, ...] = ()

    def event(self, event: Event) -> None:
        match event:
            case TeamChanged(team=team):
                self.story.team = team
                self._of_team("team", f"Team: {self._joined(team)}.", team=self.story.facts())
            case TeamMessage(message=message):
                self.story.messages += 1
                fields = {"from": message.sender, "to": message.receiver, "kind": message.type}
                self._of_team(
                    "team_message", "", **fields, content=message.content, correlation_id=message.correlation_id
                )
            case ConflictChanged(conflict=conflict):
                self.story.conflicts = {**(self.story.conflicts or {}), conflict.id: conflict}
                self._of_team("conflict", conflict_line(conflict), **conflict_facts(conflict))
            case _:
                super().event(event)

    def _joined(self, team: Team) -> str:
        """The members, once; nothing while they stay the same."""
        names = tuple(each.name for each in team.members)
        before, self._members = self._members, names
        return ", ".join(name for name in names if name not in before)

    def _of_team(self, type: str, words: str, /, **fields: Any) -> None:
        if self._kind == "stream-json":
            self._line(type, agent=MAIN, **fields)
        elif words and words != "Team: .":
            self.say(words)

    def finish(self, outcome: RunResult) -> None:
        if self._kind == "json" and (facts := self.story.facts()):
            self._write(json.dumps({**outcome.report(self._started), "team": facts}, default=str) + "\n")
        else:
            super().finish(outcome)


def conflict_line(conflict: Conflict) -> str:
    """The conflict in a line: who says what, or what settled it."""
    if conflict.winner:
        return f"Settled {conflict.key}: {conflict.winner.value} ({conflict.reason})"
    said = ", ".join(f"{each.member} says {one_line(str(each.value), 60)}" for each in conflict.claims)
    return f"Conflict about {conflict.key}: {said}"
