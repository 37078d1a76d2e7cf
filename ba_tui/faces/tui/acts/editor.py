"""The prompt, or a file, in the person's own editor or pager. The terminal is theirs meanwhile; a turn goes on.

Which prompt is edited and what becomes of it is the chat's.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from textual.app import SuspendNotSupported

from ba_tui.core.errors import UsageError
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.commands import SlashCommand

EDITORS = ("nano", "vim", "vi")
PAGERS = ("less", "more")
NO_EDITOR = ("No editor is known.", "Set $VISUAL or $EDITOR.")
T = TypeVar("T")


async def editor(chat: Actions, _: str) -> None:
    text = await _lent(chat, edited(chat.composer.text, editor_command()))
    chat.composer.prompt.set_value(text)
    if not (chat.ask and chat.ask.waiting):
        chat.composer.prompt.focus()


def editor_command() -> str:
    """The person's editor. Raises UsageError when none is known."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or next(filter(shutil.which, EDITORS), "")
    if not command:
        raise UsageError(*NO_EDITOR)
    return command


async def edit_file(chat: Actions, path: Path) -> None:
    """Open ``path`` in the person's editor; its folder is made when there is none. Raises UsageError."""
    command = editor_command()
    try:
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent} can't be made: {error.strerror or error}.") from error
    await _lent(chat, _run(command, path, "Set $VISUAL or $EDITOR."))


async def page(chat: Actions, text: str, suffix: str) -> None:
    """Show ``text`` in the person's pager. Raises UsageError when none is known."""
    command = os.environ.get("PAGER") or next(filter(shutil.which, PAGERS), "")
    if not command:
        raise UsageError("No pager is known.", "Set $PAGER, or write the text to a file: /export")
    await _lent(chat, _paged(text, command, suffix))


async def _paged(text: str, command: str, suffix: str) -> None:
    with _own_file(text, "ba-transcript-", suffix) as path:
        await _run(command, path, "Set $PAGER to another pager.")


async def _lent(chat: Actions, work: Coroutine[None, None, T]) -> T:
    """What ``work`` gives while the terminal is its own. Raises UsageError of it, and where no terminal can be lent."""
    fault: UsageError | None = None
    try:
        with chat.ba.suspend():
            try:
                return await work
            except UsageError as error:
                # Raised in here, it would leave the terminal to nobody.
                fault = error
    except SuspendNotSupported as error:
        work.close()
        raise UsageError("Another program can't be opened here.", "Shift+Enter makes a new line.") from error
    raise fault


async def edited(text: str, command: str, suffix: str = ".md") -> str:
    """What ``command`` makes of ``text``, through a file that only the person can read.

    Raises:
        UsageError: it could not be run, or ended with an error.
    """
    with _own_file(text, "ba-prompt-", suffix) as path:
        await _run(command, path, "Set $VISUAL or $EDITOR.", kept="Your text is as it was.")
        return path.read_text("utf-8", "replace").rstrip("\n")


async def _run(command: str, path: Path, cure: str, kept: str = "") -> None:
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
def _own_file(text: str, prefix: str, suffix: str) -> Generator[Path]:
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


EDITOR = Room({SlashCommand("editor", "Write the prompt in $EDITOR", keys="ctrl+g"): editor})
