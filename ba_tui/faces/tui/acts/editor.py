"""The prompt in the person's own editor. The terminal is the editor's meanwhile; the turn that runs goes on.

Which prompt is edited and what becomes of it is the chat's.
"""

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

from textual.app import SuspendNotSupported

from ba_tui.core.errors import UsageError
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.commands import SlashCommand

EDITORS = ("nano", "vim", "vi")


async def editor(chat: Actions, _: str) -> None:
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or next(filter(shutil.which, EDITORS), "")
    if not command:
        raise UsageError("No editor is known.", "Set $VISUAL or $EDITOR.")
    fault: UsageError | None = None
    text = ""
    try:
        with chat.ba.suspend():
            try:
                text = await edited(chat.composer.text, command)
            except UsageError as error:
                # Raised in here, it would leave the terminal to nobody.
                fault = error
    except SuspendNotSupported as error:
        raise UsageError("An editor can't be opened here.", "Shift+Enter makes new lines in the input.") from error
    if fault:
        raise fault
    chat.composer.prompt.set_value(text)
    if not (chat.ask and chat.ask.waiting):
        chat.composer.prompt.focus()


async def edited(text: str, command: str) -> str:
    """What ``command`` makes of ``text``, through a file that only the person can read.

    Raises:
        UsageError: it could not be run, or ended with an error.
    """
    handle, name = tempfile.mkstemp(prefix="ba-prompt-", suffix=".md")
    os.close(handle)
    path = Path(name)
    try:
        path.write_text(text, "utf-8")
        with _ctrl_c_is_the_editors():
            process = await asyncio.create_subprocess_exec(*shlex.split(command), name)
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                process.terminate()
                raise
        if code:
            raise UsageError(f"{command} ended with {code}.", "The prompt is as it was.")
        return path.read_text("utf-8", "replace").rstrip("\n")
    except (OSError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise UsageError(f"{command} could not be started: {why}.", "Set $VISUAL or $EDITOR.") from error
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


EDITOR = Room({SlashCommand("editor", "Write the prompt in $EDITOR", keys="ctrl+g"): editor})
