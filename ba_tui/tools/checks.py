"""Checks of `ba doctor`: the sandbox, tried out with a program that attempts what it must not do, and own tools."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.effects import READING, WORKING, Profile
from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.ports.contributions import CheckResult
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.confinement import Sandbox, sandbox_for
from ba_tui.processes.children import Process
from ba_tui.processes.scratch import scratch
from ba_tui.processes.values import Program
from ba_tui.resources import UserFolders
from ba_tui.settings import Settings
from ba_tui.tools.registry import Registry


def tool_checks(found: Callable[[], AbstractContextManager[Registry]]) -> Iterator[CheckResult]:
    """Report tools that can't be used. Reports nothing when the settings are invalid, which another check reports."""
    try:
        with found() as registry:
            problems = registry.problems()
    except UsageError:
        return
    for problem in problems:
        yield CheckResult(
            "tools", "warn", str(problem), "Correct the file; ba tools list shows the rest.", problem.trace
        )
    if not problems:
        yield CheckResult("tools", "ok", "all tools can be used")


CURES = {
    "required": "Install bubblewrap (its program is bwrap); until then commands are refused. See ba guide sandbox.",
    "auto": "Install bubblewrap (its program is bwrap); until then ba asks before each command that no rule allows. "
    "See ba guide sandbox.",
}
FORBIDDEN = (
    "This system blocks user namespaces. Installing your distribution's bubblewrap package usually helps. "
    "See ba guide sandbox."
)
BROKEN = "Please report it, with your kernel and distribution; until then set sandbox to off, so that commands ask."
SHORT_LIST = "without a sandbox only a short list of commands that read runs without asking"
HOLDS = {
    "reading": "writes nothing, sees no secrets, no network and no settings of yours",
    "working": "writes the workspace but no protected files, sees no secrets, no network and no settings of yours",
}
ROOT = "; as root it changes no kernel settings, makes no setuid files and starts no more processes than allowed"


def sandbox_checks(settings: Settings, where: UserFolders) -> Iterator[CheckResult]:
    """Report how well commands are confined here, measured by a trial, and how to improve it."""
    if settings.sandbox == "off":
        text = "turned off in the settings: commands run with all your rights"
        yield CheckResult("sandbox", "warn", text, "ba config set sandbox auto")
        return
    sandbox = sandbox_for(settings, where, Workspace(Path(tempfile.gettempdir())))
    found = sandbox.found
    troubles = "; ".join(found.troubles)
    forbidden = any(word in troubles.lower() for word in ("uid map", "namespace", "not permitted", "denied"))
    if found.mechanism is None:
        why = f": {troubles}" if troubles else ""
        fix = FORBIDDEN if forbidden else CURES[settings.sandbox]
        state = "fail" if settings.sandbox == "required" else "warn"
        yield CheckResult("sandbox", state, f"no sandbox works here{why}", fix)
        yield CheckResult("sandbox", "warn", SHORT_LIST, fix)
        return
    closed = "off, but for hosts that you allow" if found.mechanism.walled else "off"
    network = "on" if settings.commands.network else closed
    text = f"{found.mechanism.name} confines commands ({found.mechanism.guards}); their network is {network}"
    weak = not found.mechanism.separate and sys.platform == "linux"
    fix = (FORBIDDEN if forbidden else CURES["auto"]) if weak else ""
    if weak:
        text = f"{text}; {troubles or 'there is no bubblewrap'}"
    yield CheckResult("sandbox", "warn" if weak else "ok", text, fix)
    yield from _tried(sandbox, fix)


def _tried(sandbox: Sandbox, fix: str) -> Iterator[CheckResult]:
    """Report the trial of each profile."""
    trials = try_out(sandbox)
    if all(trial.profile != "reading" for trial in trials):
        yield CheckResult("sandbox", "warn", SHORT_LIST, fix)
    for trial in trials:
        profile = f"the profile {trial.profile}"
        if trial.trouble:
            yield CheckResult("sandbox", "fail", f"{profile} could not be tested: {trial.trouble}", fix or BROKEN)
        elif trial.broken:
            text = f"{profile} was tested and does not hold: it {', '.join(trial.broken)}"
            yield CheckResult("sandbox", "warn" if fix else "fail", text, fix or BROKEN)
        else:
            more = ROOT if os.geteuid() == 0 else ""
            text = f"{profile} was tested and holds: {HOLDS[trial.profile]}{more}"
            yield CheckResult("sandbox", "ok", text, "")


SECRET = "trial-secret"  # noqa: S105 - of a file made for the trial
MOST_PROCESSES = 40
SECONDS = 20
PROBE = """
import json, os, socket, sys, time
port, hidden = int(sys.argv[1]), sys.argv[2]
did = {}
def attempt(name, work):
    try:
        did[name] = bool(work())
    except Exception:
        did[name] = False
def append(path):
    with open(path, "ab"):
        return True
def setid():
    with open("/tmp/trial", "wb") as file:
        os.fchmod(file.fileno(), 0o4755)
    return True
attempt("write", lambda: append("new"))
attempt("git", lambda: append(".git/config"))
attempt("tools", lambda: append(".envrc"))
attempt("secret", lambda: "trial-secret" in open(".env").read())
attempt("kernel", lambda: append("/proc/sys/kernel/core_pattern"))
attempt("network", lambda: socket.create_connection(("127.0.0.1", port), 2))
attempt("settings", lambda: os.listdir(hidden))
attempt("setid", setid)
attempt("root", lambda: os.readlink("/proc/self/ns/user") == sys.argv[3])
print(json.dumps(did), flush=True)
try:
    for _ in range(int(sys.argv[4])):
        if not os.fork():
            time.sleep(5)
            os._exit(0)
    time.sleep(1)
    print("unlimited", flush=True)
except OSError:
    pass
"""
TOLD = {
    "write": "writes the workspace",
    "git": "writes .git/config",
    "tools": "writes .envrc",
    "secret": "reads .env",
    "kernel": "writes settings of the kernel",
    "network": "reaches the network",
    "settings": "sees ba's settings",
    "setid": "makes setuid files",
    "root": "has no user namespace of its own",
    "processes": "starts any number of processes",
}


@frozen
class Trial:
    """The trial of one profile. ``broken``: what the program could do although it must not; ``trouble``: why the trial
    failed."""

    profile: str
    broken: tuple[str, ...] = ()
    trouble: str = ""


def try_out(sandbox: Sandbox) -> list[Trial]:
    """Try the profiles *reading* and *working* in a temporary folder. Blocks for about a second."""
    with scratch("trial") as root, socket.create_server(("127.0.0.1", 0)) as server:
        (root / ".git").mkdir()
        for name in (".git/config", ".git/HEAD", ".envrc"):
            (root / name).touch()
        (root / ".env").write_text(f"{SECRET}\n")
        tried = Sandbox(replace(sandbox.reach, roots=(root,), network=False), sandbox.mode, lambda: sandbox.found)
        try:
            return [
                asyncio.run(_try(tried, root, profile, server.getsockname()[1]))
                for profile in (READING, WORKING)
                if profile.name == "working" or not tried.unheld()
            ]
        finally:
            tried.close()


async def _try(sandbox: Sandbox, root: Path, profile: Profile, port: int) -> Trial:
    hidden = next(iter(sandbox.reach.hidden), Path("/nonexistent"))
    space = str(Path("/proc/self/ns/user").readlink()) if sys.platform == "linux" else ""
    count = str(MOST_PROCESSES + 20) if sys.platform == "linux" else "0"
    words = (sys.executable, "-I", "-S", "-c", PROBE, str(port), str(hidden), space, count)
    try:
        confinement = sandbox.confine(profile)
        limits = {"nproc": MOST_PROCESSES}
        process = Process(Program(words, root, {"PATH": os.defpath}, limits, confinement))
    except (BaError, OSError) as error:
        return Trial(profile.name, trouble=str(error))
    try:
        async with asyncio.timeout(SECONDS):
            await process.ended.wait()
    except TimeoutError:
        process.let_go(keep=True)
        await process.ended.wait()
    return _read(profile, process.output.text())


def _read(profile: Profile, output: str) -> Trial:
    first, _, rest = output.partition("\n")
    did: Mapping[str, Any] = {}
    with suppress(ValueError):
        did = cast("Mapping[str, Any]", json.loads(first))
    if not did:
        return Trial(profile.name, trouble=" ".join(output.split())[:200] or "the test program printed nothing")
    found = {**did, "processes": "unlimited" in rest, "root": did.get("root") and os.geteuid() == 0}
    wanted = {"write"} if profile.name == "working" else set[str]()
    if os.geteuid() != 0:
        # A setuid file of an ordinary user grants no further rights.
        wanted.add("setid")
    broken = [TOLD[name] for name in TOLD if found.get(name) and name not in wanted]
    broken += [f"does not {TOLD['write'].replace('writes', 'write')}"] if "write" in wanted and not did["write"] else []
    return Trial(profile.name, tuple(broken))
