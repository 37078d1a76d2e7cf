"""A program of the person's own, run on a file: their editor or pager. The terminal has to be lent before."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ba_tui.core.errors import UsageError

EDITORS = ("nano", "vim", "vi")
NO_EDITOR = ("No editor is known.", "Set $VISUAL or $EDITOR.")


def editor_command() -> str:
    """The person's editor. Raises UsageError when none is known."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or next(filter(shutil.which, EDITORS), "")
    if not command:
        raise UsageError(*NO_EDITOR)
    return command


async def edited(text: str, command: str, suffix: str = ".md") -> str:
    """What ``command`` makes of ``text``, through a file that only the person can read.

    Raises:
        UsageError: it could not be run, or ended with an error.
    """
    with own_file(text, "ba-prompt-", suffix) as path:
        await run_program(command, path, "Set $VISUAL or $EDITOR.", kept="Your text is as it was.")
        return path.read_text("utf-8", "replace").rstrip("\n")


async def run_program(command: str, path: Path, cure: str, kept: str = "") -> None:
    """Run ``command`` on ``path`` to its end. Raises UsageError, with ``cure`` when it could not be started and with
    ``kept`` when it failed."""
    try:
        with _ctrl_c_is_the_editors():
            process = await asyncio.create_subprocess_exec(*shlex.split(command), str(path))
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                process.terminate()
                raise
    except (OSError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise UsageError(f"{command} could not be started: {why}.", cure) from error
    if code:
        raise UsageError(f"{command} ended with {code}.", kept)


@contextmanager
def own_file(text: str, prefix: str, suffix: str) -> Generator[Path]:
    """A file with ``text`` that only the person can read, and that is gone afterwards."""
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=suffix)
    os.close(handle)
    path = Path(name)
    try:
        path.write_text(text, "utf-8")
        yield path
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _ctrl_c_is_the_editors() -> Generator[None]:
    """A Ctrl+C that the terminal makes a signal of reaches all its processes; it must not end ba."""
    before = signal.signal(signal.SIGINT, _unheeded)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _unheeded(_number: int, _frame: object) -> None:
    """Not SIG_IGN: the editor would inherit that."""
