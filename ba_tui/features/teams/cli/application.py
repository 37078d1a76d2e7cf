"""``ba team``: runs a team of agents on a goal, and lists the roles. Calls that need approval are denied."""

from __future__ import annotations

import asyncio
import getpass
import json
import sys
import textwrap
import time
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO, get_args

import typer

from ba_tui.cli.application import Allow, MaxCost, Model, option
from ba_tui.cli.config import Cwd, folder_of, print_line, say
from ba_tui.cli.streams import output_failed
from ba_tui.cli.trust import untrusted
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import BaError, StorageError, UsageError, run_loop
from ba_tui.core.events import MAIN, ConflictChanged, Event, TeamChanged, TeamMessage
from ba_tui.core.services import Services, begin
from ba_tui.core.start import Start
from ba_tui.core.teamwork import Conflict, Pattern, Strategy, Team, TeamOrder, conflict_facts
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import correction, one_line
from ba_tui.core.turn import Turn
from ba_tui.faces.headless import Printer, print_turn
from ba_tui.faces.run_result import INFRASTRUCTURE, USAGE, RunResult
from ba_tui.features.teams.cli.worker import team_settings
from ba_tui.features.teams.engine.over_redis.bus import RedisBus
from ba_tui.features.teams.engine.over_redis.membership import Membership, open_bus
from ba_tui.features.teams.engine.over_redis.server import RedisServer
from ba_tui.features.teams.engine.over_redis.state import dead_letters, publish_revoked
from ba_tui.features.teams.engine.roles import Roles
from ba_tui.features.teams.session import TeamSession
from ba_tui.flags import FLAGS, ChatFlags
from ba_tui.resources import open_places, project_root
from ba_tui.settings import printable

# `ba team invite|join|revoke|rotate|members`: the members of this machine's team and their keys.

MOST = 4_000
"""Maximum characters of a token."""
Name = Annotated[str, typer.Argument(metavar="NAME", help="What the member is called, such as its machine.")]


def add_commands(app: typer.Typer) -> None:
    """Add the commands to ``ba team``."""
    for command in (invite, join, revoke, rotate, members):
        app.command()(command)


def invite(
    name: Name,
    lead: Annotated[bool, typer.Option("--lead", help="It may give tasks, as this machine may.")] = False,
) -> int:
    """Print a token by which another machine joins the team. It is secret: it holds the key of that member.

    The lead's key is made with the first invitation. Inviting a member again revokes its earlier key.
    """
    token = _membership().invite(name, "lead" if lead else "worker")
    say(f"Run `ba team join` on the machine of {name} and paste this line there. Keep it secret; it is shown once.")
    print_line(token)
    return 0


def join() -> int:
    """Read a token from standard input, or ask for it, and keep it: this machine then belongs to the team.

    \b
    Exit codes:
      0 ok · 1 the line is no token · 2 it can't be kept
    """
    prompt = "Token of ba team invite (it is not shown): "
    token = getpass.getpass(prompt) if sys.stdin.isatty() else sys.stdin.read(MOST)
    identity, place = _membership().join(token)
    member = identity.member
    print_line(f"This machine is the {member.role} {member.name} of the team now. Its key is kept in {place}.")
    return 0


def revoke(name: Name, cwd: Cwd = None) -> int:
    """Refuse what a member sends from now on, also on the other machines of the team.

    \b
    Exit codes:
      0 ok · 1 there is no such member · 2 the server can't be told
    """
    _membership().revoke(name)
    print_line(f"Revoked {name}. Messages of its keys are refused.")
    run_loop(_publish(folder_of(cwd)))
    say("Change the password of the Redis server too: whoever knows it can read what members send.")
    return 0


def rotate() -> int:
    """Give the lead a new key. All members must be invited again."""
    before = _membership().rotate()
    print_line("The lead has a new key. No member can use its old one.")
    for each in before.members.values():
        if not each.gone:
            print_line(f"Invite again: ba team invite {each.name}{' --lead' if each.role == 'lead' else ''}")
    return 0


def members(json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> int:
    """Print what this machine is in a team, and the members that it invited."""
    found = _membership()
    given, leads, roster = found.given(), bool(found.lead_key()), found.roster()
    if json_:
        own = {"name": given.member.name, "role": given.member.role} if given else None
        rows = [
            {"name": each.name, "role": each.role, "invited": each.at, "revoked": each.revoked if each.gone else None}
            for each in roster.members.values()
        ]
        print_line(json.dumps({"joined": own, "leads": leads, "members": rows}, indent=2))
        return 0
    if given:
        print_line(f"This machine joined a team as the {given.member.role} {given.member.name}.")
    if leads:
        print_line("This machine has the key of a lead.")
    if not given and not leads:
        print_line("This machine belongs to no team. See ba guide workers.")
    for each in roster.members.values():
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(max(each.revoked, each.at)))
        print_line(f"{each.name}  {each.role}  {'revoked' if each.gone else 'invited'} {at}")
    return 0


def _membership() -> Membership:
    return Membership(open_places())


async def _publish(folder: Path) -> None:
    """Publish the revocations to other machines. Raises StorageError, whose message says that they do not know them
    yet.
    """
    settings = team_settings({}, folder)
    if settings.bus_url is None:
        say("No Redis server is set (team.bus_url): workers learn it when the next team of this lead starts.")
        return
    bus = open_bus(settings, str, say)
    assert isinstance(bus, RedisBus)
    try:
        await bus.reach(waits=False)
        await publish_revoked(bus)
    except StorageError as error:
        hint = "This lead refuses the member already; workers learn it when its next team starts."
        raise StorageError(str(error), hint) from error
    finally:
        await bus.close()


BRIEF = 100
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
    model: Model = None,
    permission_mode: Annotated[Mode | None, option(FLAGS["--permission-mode"])] = None,
    allow: Allow = None,
    max_cost: MaxCost = None,
    cwd: Cwd = None,
) -> int:
    """Have a team of agents work on a goal; progress goes to stderr, the answer to stdout.

    \b
    Exit codes:
      0 ok · 1 a role, pattern or the goal is wrong · 2 the team failed
      3 a part is missing, or a limit was reached
      4 an approval was denied · 130 interrupted
    """
    from ba_tui.assembly import connect  # noqa: PLC0415 - a quarter of a second, and --help needs none

    folder = folder_of(cwd)
    order = TeamOrder(
        goal,
        tuple(name for each in roles.split(",") if (name := each.strip())),
        _one_of(pattern, get_args(Pattern), "pattern"),
        _one_of(conflicts, get_args(Strategy), "strategy for conflicts"),
        deadline,
    )
    if not resume and not goal.strip():
        raise UsageError("The goal is empty.", 'Say what the team is to reach: ba team run "GOAL".')
    if resume and goal.strip():
        raise UsageError("A team that goes on keeps its goal.", "Leave the goal or --resume out.")
    flags = ChatFlags(model=model, permission_mode=permission_mode, allow=allow or None, max_cost=max_cost)
    services = connect(flags.settings(), folder, strict=True)
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
    return run_loop(print_dead_letters(folder_of(cwd), as_json=json_))


def _one_of(given: str | None, known: tuple[Any, ...], what: str) -> Any:
    """Return ``given`` if it is one of ``known``. Raises UsageError with the nearest one."""
    if given is None or given in known:
        return given
    raise UsageError(f"There is no {what} {given!r}.", correction(given, known, f"Choose one of {', '.join(known)}."))


async def _run(services: Services, order: TeamOrder, start: Start, printer: TeamPrinter) -> int:
    for notice in services.notices:
        printer.event(notice)
    conversation: Conversation | None = None
    try:
        conversation = begin(services.library, start)
        await conversation.history()
        if missing := services.setup.missing(conversation.model):
            raise UsageError(missing)
        teams = conversation.inventory.feature(TeamSession)
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


class TeamPrinter(Printer):
    """Prints a run as ``ba -p`` does, with lines about the team."""

    def __init__(self, format: str, out: TextIO, err: TextIO) -> None:
        super().__init__(format, out, err)
        self._kind = format
        self._team: Team | None = None
        self._messages = 0
        self._conflicts: dict[str, Conflict] = {}
        self._members: tuple[str, ...] = ()

    def event(self, event: Event) -> None:
        match event:
            case TeamChanged(team=team):
                self._team = team
                self._of_team("team", f"Team: {self._joined(team)}.", team=self._facts())
            case TeamMessage(message=message):
                self._messages += 1
                fields = {"from": message.sender, "to": message.receiver, "kind": message.type}
                self._of_team(
                    "team_message", "", **fields, content=message.content, correlation_id=message.correlation_id
                )
            case ConflictChanged(conflict=conflict):
                self._conflicts[conflict.id] = conflict
                self._of_team("conflict", conflict_line(conflict), **conflict_facts(conflict))
            case _:
                super().event(event)

    def _facts(self) -> dict[str, Any]:
        """Return the part ``team`` of the JSON output."""
        if self._team is None:
            return {}
        members = [
            {"name": each.name, "role": each.role, "activity": each.activity, "agent_id": each.agent_id}
            for each in self._team.members
        ]
        return {
            "id": self._team.id,
            "pattern": self._team.pattern,
            "state": self._team.state,
            "members": members,
            "messages": self._messages,
            "conflicts": [conflict_facts(each) for each in self._conflicts.values()],
        }

    def _joined(self, team: Team) -> str:
        """Report the members once; nothing while they stay the same."""
        names = tuple(each.name for each in team.members)
        before, self._members = self._members, names
        return ", ".join(name for name in names if name not in before)

    def _of_team(self, type: str, words: str, /, **fields: Any) -> None:
        if self._kind == "stream-json":
            self._line(type, agent=MAIN, **fields)
        elif words and words != "Team: .":
            self.say(words)

    def finish(self, outcome: RunResult) -> None:
        if self._kind == "json" and (facts := self._facts()):
            self._write(json.dumps({**outcome.report(self._started), "team": facts}, default=str) + "\n")
        else:
            super().finish(outcome)


def conflict_line(conflict: Conflict) -> str:
    """Return one line for a conflict: the claims, or the settlement."""
    if conflict.winner:
        return f"Settled {conflict.key}: {conflict.winner.value} ({conflict.reason})"
    said = ", ".join(f"{each.member} says {one_line(str(each.value), 60)}" for each in conflict.claims)
    return f"Conflict about {conflict.key}: {said}"


LINE = 160
"""Maximum characters of a reason."""


async def print_dead_letters(folder: Path, *, as_json: bool) -> int:
    """Print the dead letters. Raises UsageError if no server is set, StorageError if it can't be used."""
    settings = team_settings({}, folder)
    if settings.bus_url is None:
        hint = "Set team.bus_url. Within one process they last as long as the team."
        raise UsageError("Messages that nobody could handle are kept on a Redis server, and none is set.", hint)
    server = RedisServer(settings.bus_url)
    try:
        letters = await dead_letters(server)
    finally:
        await server.close()
    if as_json:
        rows = [
            {
                "topic": each.topic,
                "group": each.group,
                "reason": each.reason,
                "id": each.message.id,
                "from": each.message.sender,
                "type": each.message.type,
                "team": each.message.team,
                "at": each.message.at,
            }
            for each in letters
        ]
        print_line(json.dumps(rows, indent=2))
        return 0
    for each in letters:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.message.at))
        words = f"{at}  {each.topic}  {each.message.type} from {each.message.sender}: {one_line(each.reason, LINE)}"
        print_line(paintable(words, newlines=False))
    if not letters:
        print_line("Nothing was set aside.")
    return 0
