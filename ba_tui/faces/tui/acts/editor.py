"""Open the prompt, a file or the session in the user's editor or pager, which uses the terminal while turns run."""

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
from ba_tui.faces.tui.acts.port import Actions

# Running the editor or pager. The caller lends the terminal first.

EDITORS = ("nano", "vim", "vi")
NO_EDITOR = ("No editor was found.", "Set $VISUAL or $EDITOR.")


def editor_command() -> str:
    """Return the user's editor. Raises UsageError when none is known."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or next(filter(shutil.which, EDITORS), "")
    if not command:
        raise UsageError(*NO_EDITOR)
    return command


async def edited(text: str, command: str, suffix: str = ".md") -> str:
    """Return ``text`` as edited by ``command``, in a temporary file that only the user can read.

    Raises:
        UsageError: the editor could not be started, or ended with an error.
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
    """Yield a temporary file with ``text`` that only the user can read."""
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
    """Ignore SIGINT: the terminal sends it to all its processes, and it must not end ba."""
    before = signal.signal(signal.SIGINT, _unheeded)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _unheeded(_number: int, _frame: object) -> None:
    """Not SIG_IGN: the editor would inherit that."""


PAGERS = ("less", "more")
T = TypeVar("T")


async def editor(chat: Actions, _: str) -> None:
    text = await _lent(chat, edited(chat.composer.text, editor_command()))
    chat.composer.prompt.set_value(text)
    if not (chat.ask and chat.ask.waiting):
        chat.composer.prompt.focus()


async def edit_file(chat: Actions, path: Path) -> None:
    """Open ``path`` in the user's editor; a missing folder is created. Raises UsageError."""
    command = editor_command()
    try:
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent} can't be made: {error.strerror or error}.") from error
    await _lent(chat, run_program(command, path, "Set $VISUAL or $EDITOR."))


async def page(chat: Actions, text: str, suffix: str) -> None:
    """Show ``text`` in the user's pager. Raises UsageError when none is known."""
    command = os.environ.get("PAGER") or next(filter(shutil.which, PAGERS), "")
    if not command:
        raise UsageError("No pager was found.", "Set $PAGER, or write the text to a file: /export")
    await _lent(chat, _paged(text, command, suffix))


async def _paged(text: str, command: str, suffix: str) -> None:
    with own_file(text, "ba-transcript-", suffix) as path:
        await run_program(command, path, "Set $PAGER to another pager.")


async def _lent(chat: Actions, work: Coroutine[None, None, T]) -> T:
    """Suspend the app and return the result of ``work``. Raises UsageError from ``work``, or if suspending fails."""
    fault: UsageError | None = None
    try:
        with chat.ba.suspend():
            try:
                return await work
            except UsageError as error:
                # Raised here, it would leave the app suspended.
                fault = error
    except SuspendNotSupported as error:
        work.close()
        raise UsageError("Another program can't be opened here.", "Shift+Enter makes a new line.") from error
    raise fault


async def transcript(chat: Actions, _: str) -> None:
    """Show the whole session as Markdown in the user's pager."""
    services, conversation = chat.session.live
    if not chat.session.started:
        raise UsageError("This session is still empty.", "Read it after the first turn.")
    text = await asyncio.to_thread(lambda: "".join(services.library.export(conversation.id, "md")))
    await page(chat, text, ".md")
