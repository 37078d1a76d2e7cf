"""Tries what the sandbox promises, with a program that attempts everything it must not be able to do. For the doctor.

Works in a throwaway folder; nothing of the person's is touched.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import BaError
from ba_tui.core.profiles import READING, WORKING, Profile
from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.processes.children import Process
from ba_tui.processes.scratch import scratch
from ba_tui.processes.supervised import Program

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
    """One profile as it was tried: ``broken`` says what a program could do that it must not; ``trouble`` why it could
    not be tried."""

    profile: str
    broken: tuple[str, ...] = ()
    trouble: str = ""


def try_out(sandbox: Sandbox) -> list[Trial]:
    """What holds of the profiles *reading* and *working*. Blocks for about a second."""
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
        # A setuid file of one's own gives nobody more rights.
        wanted.add("setid")
    broken = [TOLD[name] for name in TOLD if found.get(name) and name not in wanted]
    broken += [f"does not {TOLD['write'].replace('writes', 'write')}"] if "write" in wanted and not did["write"] else []
    return Trial(profile.name, tuple(broken))
