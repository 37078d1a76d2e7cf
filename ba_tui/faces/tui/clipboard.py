"""The clipboard: copy text through the terminal (OSC 52) and the platform's tool; read pictures from either."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from textual.message import Message

from ba_tui.core.errors import UsageError
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.processes.programs import BriefRun, run_in_thread

PATIENCE = 2.0
"""Seconds that a tool may take; some wait for a display that is not there."""
MOST_BY_TERMINAL = 75_000
"""Bytes; beyond it many terminals drop the sequence, and some show its letters."""


@dataclass
class CopyToClipboard(Message):
    """Request to copy ``text``; ``note`` names the whole that the text is a part of."""

    text: str
    note: str = ""


class TerminalClipboard(Protocol):
    """The part of the app that copying needs."""

    def copy_to_clipboard(self, text: str) -> None: ...


async def copy(app: TerminalClipboard, text: str) -> str:
    """Put ``text`` on the clipboard and say in a few words how it went. Never waits longer than ``PATIENCE``."""
    data = text.encode("utf-8", "replace")
    by_terminal = len(data) <= MOST_BY_TERMINAL
    if by_terminal:
        app.copy_to_clipboard(data.decode())
    size = count(len(text), "character")
    fault = ""
    for command in tools(sys.platform, os.environ):
        fault = await _hand_over(command, data)
        if not fault:
            return f"Copied {size}."
    if by_terminal:
        return f"Copied {size} through the terminal."
    return f"Not copied: {size} are too many for the terminal, and {fault or 'no clipboard tool was found'}."


def tools(platform: str, environment: Mapping[str, str]) -> list[list[str]]:
    """Return the clipboard tools that are installed and fit the display, best first."""
    wanted: list[list[str]] = []
    if platform == "darwin":
        wanted.append(["pbcopy"])
    if environment.get("WAYLAND_DISPLAY"):
        wanted.append(["wl-copy"])
    if environment.get("DISPLAY"):
        wanted += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    if environment.get("WSL_DISTRO_NAME"):
        wanted.append(["clip.exe"])
    path = environment.get("PATH")
    return [[found, *command[1:]] for command in wanted if (found := shutil.which(command[0], path=path))]


async def _hand_over(command: Sequence[str], data: bytes) -> str:
    """Return why ``command`` did not take the text; empty when it did."""
    name = os.path.basename(command[0])  # noqa: PTH119 - only its name is said
    if name == "clip.exe":
        data = data.decode().encode("utf-16")
    try:
        # It stays in the background as long as it owns the clipboard.
        done = await run_in_thread(BriefRun(command, PATIENCE, input=data, lasting=True))
    except OSError as error:
        return f"{name} did not start ({error.strerror})"
    if done.trouble:
        return f"{name} did not answer"
    return "" if done.code == 0 else f"{name} failed ({done.code})"


# Pictures through the terminal: OSC 5522, kitty's protocol.

KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Best first."""


@frozen
class ClipboardPart:
    """A part of the terminal's answer about its clipboard (OSC 5522): its ``fields`` and its data, still encoded."""

    fields: Mapping[str, str]
    payload: str = ""

    @property
    def last(self) -> bool:
        """Return whether it is the last part: all data was sent, or the request was refused."""
        return self.fields.get("status") not in {"OK", "DATA"}


def part_of(fields: str, payload: str) -> ClipboardPart:
    """Parse ``type=read:status=DATA:mime=…`` and the data behind it."""
    pairs = (each.partition("=") for each in fields.split(":"))
    return ClipboardPart({key: value for key, _, value in pairs}, payload)


def request() -> str:
    """Return what asks the terminal for a picture."""
    wanted = base64.b64encode(" ".join(KINDS).encode()).decode()
    return f"\x1b]5522;type=read;{wanted}\x1b\\"


PICTURE_PATIENCE = 3.0
"""Seconds for a clipboard tool."""
ASKED = 20.0
"""Seconds for a terminal, which may ask its user first."""
LARGEST = 50_000_000
OTHERWISE = "Or save the picture and type, or drop, its path."
_HEX = regex(r"«data \w{4}([0-9A-Fa-f]+)»")


class NoPicture(UsageError):
    """The clipboard has no picture."""

    def __init__(self) -> None:
        super().__init__("The clipboard holds no picture.", "Paste text with your terminal's own paste key.")


def put_together(parts: Sequence[ClipboardPart]) -> bytes:
    """Return the picture that the terminal sent: of the best kind, if it sent several.

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
        raise UsageError("The clipboard data from the terminal can't be read.", OTHERWISE) from error
    found = next((b"".join(pieces[kind]) for kind in KINDS if pieces.get(kind)), b"")
    if not found:
        raise NoPicture
    return found


Ask = Callable[[], Awaitable[Sequence[ClipboardPart]]]


async def picture(platform: str, environment: Mapping[str, str], ask: Ask | None = None) -> bytes:
    """Return the picture in the clipboard. ``ask`` the terminal for it.

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
    """Return whether the terminal hands pictures over by kitty's protocol; not through tmux or screen."""
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
    """Return the output of a clipboard tool; empty if the clipboard has no data of this kind."""
    try:
        done = await run_in_thread(BriefRun(command, PICTURE_PATIENCE, most=LARGEST))
    except OSError as error:
        raise UsageError(f"{command[0]} did not start: {error.strerror}.", OTHERWISE) from error
    if done.trouble:
        raise UsageError(f"{command[0]} did not answer.", OTHERWISE)
    if done.code or not done.output:
        raise NoPicture
    return done.output
