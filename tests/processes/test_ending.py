"""A program is asked to end, and goes on: what the supervisor sends it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PATIENT = """
import signal, sys
from ba_tui.processes import supervisor
tree = sys.modules["ba_tui.processes.process_tree"]
tree.LADDER = ((0.0, signal.SIGINT), (1e9, signal.SIGTERM))
supervisor.main()
"""
"""A supervisor that sends the TERM to all only after years."""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody knows who starts what")
@pytest.mark.parametrize(
    "loop",
    [
        "trap : INT; while :; do /bin/echo x; done",
        "trap : INT; while :; do /bin/echo x; done | cat; true",
        f"trap : INT; {sys.executable} -c 'import os\nwhile True: os.system(\"echo x\")'; true",
    ],
)
def test_a_loop_that_an_interrupt_does_not_end_writes_no_more_soon_afterwards(tmp_path: Path, loop: str) -> None:
    reader, status = os.pipe()
    words = (sys.executable, "-c", PATIENT, str(status), str(tmp_path), "", "/bin/bash", "-c", loop)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[status]) as supervisor:
        os.close(status)
        os.close(reader)
        assert supervisor.stdout
        assert supervisor.stdout.read(2) == b"x\n"
        try:
            # The end of the pipe comes when nobody can write to it any more.
            supervisor.communicate(timeout=30)
        finally:
            supervisor.kill()
    assert supervisor.returncode == 0
