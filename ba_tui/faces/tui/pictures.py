"""Pictures from the clipboard: from the platform's own tool, or from the terminal where it hands them over.

What becomes of a picture is acts/pasting.py's business; text goes the other way in clipboard.py.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ba_tui.core.errors import UsageError
from ba_tui.core.text.patterns import regex
from ba_tui.faces.tui.terminal_clipboard import KINDS, ClipboardPart
from ba_tui.processes.brief import BriefRun, run_in_thread

PATIENCE = 3.0
"""Seconds for a clipboard tool."""
ASKED = 20.0
"""Seconds for a terminal, which may ask its person first."""
LARGEST = 50_000_000
OTHERWISE = "Or save the picture and type, or drop, its path."
_HEX = regex(r"«data \w{4}([0-9A-Fa-f]+)»")


class NoPicture(UsageError):
    """The clipboard was read, and holds no picture."""

    def __init__(self) -> None:
        super().__init__("The clipboard holds no picture.", "Text comes in by your terminal's own paste key.")


def put_together(parts: Sequence[ClipboardPart]) -> bytes:
    """The picture that the terminal sent: of the best kind, if it sent several.

    Raises:
        UsageError: it sent none, and why.
    """
    status = parts[-1].fields.get("status", "") if parts else ""
    if status != "DONE":
        why = {"EPERM": "The terminal does not let programs read its clipboard.", "EBUSY": "The clipboard is in use."}
        raise UsageError(why.get(status, "The terminal can't read its clipboard."), OTHERWISE)
    pieces: dict[str, list[bytes]] = {}
    try:
        for part in parts:
            if part.fields.get("status") == "DATA":
                kind = base64.b64decode(part.fields.get("mime", "")).decode("ascii", "replace")
                pieces.setdefault(kind, []).append(base64.b64decode(part.payload))
    except (binascii.Error, ValueError) as error:
        raise UsageError("What the terminal sent of its clipboard can't be read.", OTHERWISE) from error
    found = next((b"".join(pieces[kind]) for kind in KINDS if pieces.get(kind)), b"")
    if not found:
        raise NoPicture
    return found


Ask = Callable[[], Awaitable[Sequence[ClipboardPart]]]


async def picture(platform: str, environment: Mapping[str, str], ask: Ask | None = None) -> bytes:
    """The picture in the clipboard. ``ask`` the terminal for it.

    Raises:
        UsageError: there is none, or the clipboard can't be read; says what would help.
    """
    if platform == "darwin":
        return await _mac(environment)
    lacking = ""
    for variable, program, package in (("WAYLAND_DISPLAY", "wl-paste", "wl-clipboard"), ("DISPLAY", "xclip", "xclip")):
        if environment.get(variable):
            if tool := shutil.which(program, path=environment.get("PATH")):
                return await (_wayland(tool) if program == "wl-paste" else _x11(tool))
            lacking = lacking or package
    if ask and speaks_kitty(environment):
        try:
            async with asyncio.timeout(ASKED):
                return put_together(await ask())
        except TimeoutError as error:
            raise UsageError("The terminal did not answer about its clipboard.", OTHERWISE) from error
    if lacking:
        raise UsageError(f"Pictures can't be pasted here: install {lacking}.", OTHERWISE)
    raise UsageError("ba can't reach a clipboard from here, as over SSH.", OTHERWISE)


def speaks_kitty(environment: Mapping[str, str]) -> bool:
    """Whether the terminal hands pictures over by kitty's protocol; not through tmux or screen."""
    kitty = environment.get("TERM", "") == "xterm-kitty" or bool(environment.get("KITTY_WINDOW_ID"))
    return kitty and not (environment.get("TMUX") or environment.get("STY"))


async def _wayland(tool: str) -> bytes:
    kinds = (await _printed(tool, "--list-types")).decode("utf-8", "replace").split()
    return await _printed(tool, "--no-newline", "--type", _best(kinds))


async def _x11(tool: str) -> bytes:
    kinds = (await _printed(tool, "-selection", "clipboard", "-t", "TARGETS", "-o")).decode("utf-8", "replace").split()
    return await _printed(tool, "-selection", "clipboard", "-t", _best(kinds), "-o")


async def _mac(environment: Mapping[str, str]) -> bytes:
    if tool := shutil.which("pngpaste", path=environment.get("PATH")):
        return await _printed(tool, "-")
    printed = await _printed("osascript", "-e", "get the clipboard as «class PNGf»")
    found = _HEX.search(printed.decode("utf-8", "replace"))
    if not found:
        raise NoPicture
    return bytes.fromhex(found[1])


def _best(kinds: Sequence[str]) -> str:
    found = next((kind for kind in KINDS if kind in kinds), "")
    if not found:
        raise NoPicture
    return found


async def _printed(*command: str) -> bytes:
    """What a clipboard tool prints. They all fail where the clipboard holds nothing of what is asked for."""
    try:
        done = await run_in_thread(BriefRun(command, PATIENCE, most=LARGEST))
    except OSError as error:
        raise UsageError(f"{command[0]} did not start: {error.strerror}.", OTHERWISE) from error
    if done.trouble:
        raise UsageError(f"{command[0]} did not answer.", OTHERWISE)
    if done.code or not done.output:
        raise NoPicture
    return done.output
