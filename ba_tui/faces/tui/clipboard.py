"""Text to the clipboard: through the terminal (OSC 52) and the platform's own tool. Reading it is nobody's business."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol

from textual.message import Message

from ba_tui.core.text.wording import count
from ba_tui.processes.brief import BriefRun, run_in_thread

PATIENCE = 2.0
"""Seconds that a tool may take; some wait for a display that is not there."""
MOST_BY_TERMINAL = 75_000
"""Bytes; beyond it many terminals drop the sequence, and some show its letters."""


class CopyToClipboard(Message):
    """``text`` should reach the clipboard; ``note`` says what it is a part of."""

    def __init__(self, text: str, note: str = "") -> None:
        super().__init__()
        self.text = text
        self.note = note


class TerminalClipboard(Protocol):
    """What is needed of the app."""

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
    """Clipboard tools that are installed and fit the display, best first."""
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
    """Why ``command`` did not take the text; empty when it did."""
    name = os.path.basename(command[0])  # noqa: PTH119 - only its name is said
    if name == "clip.exe":
        data = data.decode().encode("utf-16")
    try:
        # It stays in the background for as long as it holds the clipboard.
        done = await run_in_thread(BriefRun(command, PATIENCE, input=data, lasting=True))
    except OSError as error:
        return f"{name} did not start ({error.strerror})"
    if done.trouble:
        return f"{name} did not answer"
    return "" if done.code == 0 else f"{name} failed ({done.code})"
