"""A Redis server of a test's own, which it may kill and start again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from ba_tui.features.teams.engine.over_redis.signing import Identity, Signer, identity_of_lead, invited, token_of
from tests.analysis.servers import await_port, free_port, missing

PASSWORD = "s3cret-of-redis"
LEAD_KEY = "A" * 43
"""The private key of the lead of all teams here, in all processes."""


def lead_signing() -> Signer:
    """Return what the lead, and the members in its process, sign with."""
    return Signer(identity_of_lead(LEAD_KEY))


def member(name: str = "box") -> Identity:
    """Return a new member of the lead's."""
    return invited(LEAD_KEY, name)


def token(name: str = "box") -> str:
    """Return what a worker's machine is given."""
    return token_of(member(name))


class RedisProcess:
    """``keeps``: it writes every change to its file, so that a restart loses nothing."""

    def __init__(self, folder: Path, *, keeps: bool = False) -> None:
        self.port = free_port()
        self._folder = folder
        self.keeps = keeps
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        program = shutil.which("redis-server")
        if not program:
            missing("Redis is not installed: apt install redis-server")
        keeping = ["--appendonly", "yes", "--appendfsync", "always"] if self.keeps else []
        options = f"--port {self.port} --bind 127.0.0.1 --requirepass {PASSWORD} --dir {self._folder} --save".split()
        command = [str(program), *options, "", *keeping]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        await_port(self.port, self._process)

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait(10)
        self._process = None
