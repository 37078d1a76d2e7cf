"""`ba team invite|join|revoke|rotate|members`: who belongs to the team of this machine's lead, and with which key."""

from __future__ import annotations

import getpass
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ba_tui.cli.config import Cwd, folder_of, print_line, say
from ba_tui.core.errors import StorageError, run_loop
from ba_tui.resources import open_places

if TYPE_CHECKING:
    from ba_tui.features.teams.engine.over_redis.membership import Membership

MOST = 4_000
"""Characters of a token that are read."""
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
    from ba_tui.features.teams.engine.over_redis.membership import Membership  # noqa: PLC0415 - --help must not pay for it

    return Membership(open_places())


async def _publish(folder: Path) -> None:
    """Tell the other machines. Raises StorageError, whose words say that they do not know yet."""
    from ba_tui.features.teams.cli.worker import team_settings  # noqa: PLC0415 - see _membership
    from ba_tui.features.teams.engine.open_bus import open_bus  # noqa: PLC0415
    from ba_tui.features.teams.engine.over_redis.bus import RedisBus  # noqa: PLC0415
    from ba_tui.features.teams.engine.over_redis.state import publish_revoked  # noqa: PLC0415

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
