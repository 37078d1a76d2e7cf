"""Runs the command of one hook: JSON in, what it printed out, bounded in time and size whatever it does.

What its words mean is ``answers``' business.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ba_tui.core.messages import clean_text
from ba_tui.core.values import frozen
from ba_tui.processes.brief import BriefRun, run_in_thread

MAX_OUTPUT_BYTES = 65_536
"""Bytes that a hook may print on either stream."""
TROUBLES = {
    "timeout": "took longer than {seconds:g} s and was ended.",
    "flood": f"printed more than {MAX_OUTPUT_BYTES // 1024} KB and was ended.",
    "stopped": "was ended together with the turn.",
}


@frozen
class HookCommand:
    """A shell command, what it reads, where it runs and for how many seconds at most. With ``args`` it is a program."""

    command: str
    args: tuple[str, ...] | None
    data: bytes
    folder: Path
    environment: Mapping[str, str]
    timeout: float


@frozen
class Completed:
    """``trouble``: why it did not come to an end of its own, in words that follow its name; ``code`` is None then."""

    code: int | None
    out: str = ""
    err: str = ""
    trouble: str = ""


async def run_command(command: HookCommand) -> Completed:
    """Run it to its end. Cancelling ends it, and all that it started."""
    run = BriefRun(
        (_shell(), "-c", command.command) if command.args is None else (command.command, *command.args),
        command.timeout,
        command.folder,
        command.environment,
        command.data,
        MAX_OUTPUT_BYTES,
    )
    try:
        done = await run_in_thread(run)
    except (OSError, ValueError) as error:
        return Completed(None, trouble=f"could not be started: {getattr(error, 'strerror', None) or error}.")
    if done.trouble:
        return Completed(None, trouble=TROUBLES[done.trouble].format(seconds=command.timeout))
    return Completed(done.code, _text(done.output), _text(done.errors))


@cache
def _shell() -> str:
    """bash where it is installed: hooks are written for it, and what sh can't read would let a call pass."""
    return shutil.which("bash") or "/bin/sh"


def _text(data: bytes) -> str:
    return clean_text(data.decode("utf-8", "replace"))
