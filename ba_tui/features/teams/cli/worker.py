"""``ba worker``: joins the teams on a Redis server and does their work of one role, until it is stopped.

How work is pulled and answered stands in ``ba_tui.features.teams.engine.worker``.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ba_tui.cli.config import folder_of, print_line
from ba_tui.core.errors import UsageError, run_loop
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count, with_hint
from ba_tui.resources import open_places, project_root

if TYPE_CHECKING:
    from ba_tui.core.services import Services
    from ba_tui.settings.sections.team import TeamSettings

Mode = Literal["default", "accept-edits", "plan", "auto"]


def worker(  # noqa: PLR0913 - typer reads one parameter a flag
    role: Annotated[str, typer.Option(metavar="NAME", help="The role to work in: ba team roles lists them.")],
    bus_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The Redis server of the team; by default the setting team.bus_url."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End after one task.")] = False,
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="PROVIDER/MODEL", help="The model.")] = None,
    permission_mode: Annotated[Mode | None, typer.Option(help="What may run without asking.")] = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Allow, e.g. 'edit_file(src/**)'. Repeatable.")
    ] = None,
    cwd: Annotated[Path | None, typer.Option(metavar="DIR", help="Work in this folder.")] = None,
) -> int:
    """Do a team's work of one role, on this machine: pull tasks from the team's Redis server and answer them.

    Nobody attends, so whatever would ask for approval is denied: your rules and the mode decide what runs. With the
    setting team.worker_questions: ask, the user at the team's lead is asked. Ctrl+C ends after the current task, a
    second one at once; another worker then does the task.

    \b
    Exit codes:
      0 ok · 1 usage or configuration · 2 the server can't be used
    """
    from ba_tui.assembly import connect  # noqa: PLC0415 - --help must not pay for it

    folder = folder_of(cwd)
    given = {"team.bus_url": bus_url, "model": model, "permission_mode": permission_mode, "permissions.allow": allow}
    flags: dict[str, object] = {key: value for key, value in given.items() if value}
    settings = team_settings(flags, folder)
    if settings.bus_url is None:
        hint = "Set team.bus_url in your settings, or pass --bus-url redis://HOST:6379/0."
        raise UsageError("A worker needs the Redis server of its team.", hint)
    services = connect(flags, folder, strict=True)
    for notice in services.notices:
        if notice.level != "info":
            say(with_hint(notice.text, notice.hint))
    return run_loop(_work(services, settings, role, once=once))


async def _work(services: Services, settings: TeamSettings, role: str, *, once: bool) -> int:
    # What is heavy waits until the flags are right.
    from ba_tui import __version__  # noqa: PLC0415
    from ba_tui.features.teams.cli.worker_tasks import TaskSessions  # noqa: PLC0415
    from ba_tui.features.teams.engine.leases import Lender  # noqa: PLC0415
    from ba_tui.features.teams.engine.open_bus import open_worker_bus  # noqa: PLC0415
    from ba_tui.features.teams.engine.over_redis.state import RedisAccepted, RedisItems  # noqa: PLC0415
    from ba_tui.features.teams.engine.worker import Worker, WorkerFacts  # noqa: PLC0415
    from ba_tui.permissions.secrets.scanner import redact  # noqa: PLC0415
    from ba_tui.processes.signals import interrupts  # noqa: PLC0415

    sessions = await asyncio.to_thread(TaskSessions, services, role)

    def tell(text: str) -> None:
        # Its lines may end in a log file.
        say(redact(text))

    host = socket.gethostname()
    bus = open_worker_bus(settings, host, redact, tell)
    found = sessions.role
    name = f"{found.name}@{bus.signing.identity.member.name}-{os.getpid()}-{secrets.token_hex(2)}"
    lending = await asyncio.to_thread(sessions.lending, settings.heartbeat)
    lender = Lender(name, bus, lending) if lending else None
    facts = WorkerFacts(
        name, found.name, found.capabilities, host, os.getpid(), __version__, sessions.model,
        settings.heartbeat, settings.lease, sessions.reads,
        found.messages, partial(RedisItems, bus), settings.patience, lender, settings.worker_questions == "ask",
    )  # fmt: skip
    member = Worker(facts, bus, RedisAccepted(bus), sessions.do, tell)
    try:
        if await bus.reach(waits=not once):
            if found.lends and not lender:
                say("It lends no tools: its role may not send bids and shared information.")
            say(f"{name} waits for work of the role {found.name} at {bus.server.place}. Ctrl+C ends it.")
        with interrupts(member.stop):
            done = await member.run(once=once)
        say(f"Ended: {count(done, 'task')} done.")
    finally:
        await sessions.close()
        await bus.close()
    return 0


def team_settings(flags: dict[str, object], folder: Path) -> TeamSettings:
    """Raises UsageError when a flag or a settings file is wrong."""
    from ba_tui.permissions.trust.grants import Trust  # noqa: PLC0415 - --help must not pay for it
    from ba_tui.settings import load_settings  # noqa: PLC0415

    where, root = open_places(), project_root(folder)
    loaded = load_settings(flags, where, root, trusted=Trust(where).trusted(root))
    loaded.check()
    return loaded.settings.team


def say(text: str) -> None:
    """A line of what the worker does, with the time. Words of other processes can't draw."""
    print_line(f"{time.strftime('%H:%M:%S')}  {paintable(text, newlines=False)}")
    sys.stdout.flush()
