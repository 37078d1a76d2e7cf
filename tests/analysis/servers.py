"""Real servers of other engines for tests: PostgreSQL from the system's packages, and Spark Connect by pysail."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PASSWORD = "s3cret/&pass"
PATIENCE = 30.0
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
NEEDED = "BA_NEEDS_SERVERS"
"""Set where a server that can't be had is a failure, as in continuous integration."""


def missing(what: str) -> None:
    """Skip the test, or fail it where it must run."""
    if os.environ.get(NEEDED):
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def postgres_server() -> Generator[str]:
    """A new server on loopback; gives the address of its superuser, with ``${PGPASSWORD}`` for the password."""
    packaged = (str(each / "initdb") for each in PROGRAMS if (each / "initdb").exists())
    found = shutil.which("initdb") or next(packaged, "")
    if not found:
        missing("PostgreSQL is not installed: apt install postgresql")
    programs = Path(os.path.realpath(found)).parent
    folder = Path(tempfile.mkdtemp(prefix="ba-pg-"))
    (folder / "password").write_text(PASSWORD)
    # PostgreSQL refuses to run as root.
    user = None
    if os.geteuid() == 0:
        user = "postgres"
        entry = pwd.getpwnam(user)
        for path in (folder, folder / "password"):
            os.chown(path, entry.pw_uid, entry.pw_gid)
    data, port = folder / "data", free_port()
    wanted = ("-A", "scram-sha-256", "-U", "postgres", "--locale=C", "-E", "UTF8", "--no-sync")
    made = subprocess.run(
        [str(programs / "initdb"), "-D", str(data), *wanted, f"--pwfile={folder / 'password'}"],
        user=user, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    options = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=20")
    with (folder.parent / f"{folder.name}.log").open("w") as log:
        server = subprocess.Popen(
            [str(programs / "postgres"), "-D", str(data), "-p", str(port), *(w for o in options for w in ("-c", o))],
            user=user, cwd=folder, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        await_port(port, server)
        yield f"postgresql://postgres:${{PGPASSWORD}}@127.0.0.1:{port}/postgres"
    finally:
        # A fast shutdown, which waits for no client.
        server.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            server.wait(PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)
        Path(log.name).unlink(missing_ok=True)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def await_port(port: int, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and server.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    pytest.fail("PostgreSQL did not start")
