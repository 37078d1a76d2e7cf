"""Read input from the terminal: split off pastes and replies before Textual's parser makes keys of the rest.

Textual's parser processes every character of a paste; ten megabytes would take a minute.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import selectors
import signal
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import IO, Any, cast

from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Paste
from textual.message import Message

from ba_tui.core.text.patterns import regex
from ba_tui.faces.tui.clipboard import ClipboardPart, part_of, request

CHUNK = 65_536
TICK = 0.1
QUIET = TICK + 2 * ESCAPE_DELAY
"""Seconds without input after which Textual's parser waits for the rest of no sequence."""
PASTE, PASTED = "\x1b[200~", "\x1b[201~"
ASK = "\x1b]11;?\x1b\\"
_HEX = "([0-9a-fA-F]{1,4})"
_REPLY = regex(rf"\x1b\]11;rgba?:{_HEX}/{_HEX}/{_HEX}[^\x07\x1b]*(?:\x07|\x1b\\)")
_PART = regex(r"\x1b\]5522;([^;\x07\x1b]*)(?:;([^\x07\x1b]*))?(?:\x07|\x1b\\)")
_PART_BEGUN = regex(r"\x1b(?:\](?:5(?:5(?:2(?:2(?:;[^\x07\x1b]*\x1b?)?)?)?)?)?)?\Z")
_BEGUN = regex(r"\x1b\]11;[^\x07\x1b]{0,40}\x1b?\Z")

# Alt+Enter as most terminals send it, and Enter with a modifier as xterm's modifyOtherKeys spells it: Textual's parser
# takes them for a plain Enter or for no key at all.
_ENTERS = (
    ("\x1b\r", "\x1b[13;3u"),
    ("\x1b\n", "\x1b[13;3u"),
    ("\x1b[27;2;13~", "\x1b[13;2u"),
    ("\x1b[27;3;13~", "\x1b[13;3u"),
    ("\x1b[27;5;13~", "\x1b[13;5u"),
)


KEEP_TITLE, GIVE_TITLE_BACK = "\x1b[22;2t", "\x1b[23;2t"
_MODES_OFF = "".join(f"\x1b[?{mode}l" for mode in (2026, 1000, 1002, 1003, 1006, 1015, 1004, 2004, 2048))
GIVE_BACK = f"\x18\x1b\\{_MODES_OFF}\x1b[?7h\x1b]2;\x07{GIVE_TITLE_BACK}\x1b[<u\x1b[?1049l\x1b[?25h\x1b[0m"
"""End a cut sequence, then mouse reports, bracketed paste, frames, key modes and the alternate screen."""


def call_for(words: str, how: str) -> str:
    """Return the sequence that notifies the user: a desktop notice where the terminal shows one, else the bell.
    ``words`` must be paintable."""
    match how:
        case "off":
            return ""
        case "osc9":
            return f"\x1b]9;{words}\x07"
        case "osc777":
            return f"\x1b]777;notify;ba;{words.replace(';', ',')}\x07"
        case _:
            return "\x07"


@dataclass
class GroundKnown(Message):
    """The terminal's background is light, or is not."""

    light: bool


class TerminalGone(Message):
    """The window of the terminal was closed: reading and writing fail from now on."""


class SuddenEnd:
    """Restore the terminal when a signal would kill ba while the terminal is raw and shows the alternate screen.
    Afterwards the signal takes its usual effect, so that the exit status names it.

    Fatal faults such as SIGSEGV are not handled: Python can't run a handler after those.
    """

    _LEFT_ALONE = frozenset(
        getattr(signal, name)
        for name in (
            *("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGKILL", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU"),
            *("SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH", "SIGINFO"),
        )
        if hasattr(signal, name)
    )

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back = give_back
        for number in signal.valid_signals() - self._LEFT_ALONE:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._end)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        self._give_back()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


class TerminalOutput:
    """The terminal as a file whose writes never fail. Otherwise Textual's writer thread would end when the terminal is
    gone, and the event loop would wait for ever for room in its queue."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.closed = False
        """Whether output is discarded."""

    def write(self, text: str) -> None:
        if self.closed:
            return
        with suppress(OSError, ValueError):
            self._file.write(text)

    def flush(self) -> None:
        if self.closed:
            return
        with suppress(OSError, ValueError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()


class TerminalEvents:
    """Split the input stream into pastes, replies and text for the key parser. Pure; chunks may have any size."""

    def __init__(self) -> None:
        self._pasted: list[str] | None = None
        self._held = ""
        self.clipboard = False
        """Whether a reply about the clipboard is expected or incomplete."""

    def feed(self, data: str) -> Iterator[str | Paste | GroundKnown | ClipboardPart]:
        data, self._held = self._held + data, ""
        while data:
            if self._pasted is None:
                before, found, data = data.partition(PASTE)
                yield from self._around(before, last=not found)
                self._pasted = [] if found else None
                continue
            inside, found, rest = data.partition(PASTED)
            if not found:
                # The end mark may be split by the end of the chunk.
                keep = max((size for size in range(1, len(PASTED)) if data.endswith(PASTED[:size])), default=0)
                self._pasted.append(data[: len(data) - keep])
                self._held = data[len(data) - keep :]
                return
            whole, self._pasted, data = "".join((*self._pasted, inside)), None, rest
            yield Paste(whole.replace("\0", ""))

    def _around(self, text: str, *, last: bool) -> Iterator[str | GroundKnown | ClipboardPart]:
        while found := _PART.search(text) if self.clipboard else None:
            yield from self._plain(text[: found.start()], last=False)
            part = part_of(found[1], found[2] or "")
            self.clipboard = not part.last
            yield part
            text = text[found.end() :]
        if self.clipboard and last and (begun := _PART_BEGUN.search(text)):
            # A reply has many parts; each may be split anywhere.
            yield from self._plain(text[: begun.start()], last=False)
            self._held = text[begun.start() :]
            return
        yield from self._plain(text, last=last)

    def _plain(self, text: str, *, last: bool) -> Iterator[str | GroundKnown]:
        while reply := _REPLY.search(text):
            if reply.start():
                yield text[: reply.start()]
            yield GroundKnown(_is_light(reply.groups()))
            text = text[reply.end() :]
        if last and (begun := _BEGUN.search(text)):
            self._held, text = text[begun.start() :], text[: begun.start()]
        for spelling, key in _ENTERS:
            text = text.replace(spelling, key)
        if text:
            yield text


def _is_light(parts: tuple[str | None, ...]) -> bool:
    red, green, blue = (int(part or "0", 16) / (16 ** len(part or "0") - 1) for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5


class ReaderEnd(threading.Event):
    """Set when the thread that reads the terminal shall end; ``fileno`` is readable then, which wakes its select."""

    def __init__(self) -> None:
        super().__init__()
        self._reader, self._writer = os.pipe()

    def fileno(self) -> int:
        return self._reader

    def set(self) -> None:
        super().set()
        os.write(self._writer, b"x")

    def clear(self) -> None:
        if self.is_set():
            os.read(self._reader, CHUNK)
        super().clear()

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


class TerminalInput(LinuxDriver):
    """Textual's driver with another reader. The app may keep painting while another program uses the terminal."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)  # pyright: ignore[reportUnknownMemberType] - App is generic
        self._away = False
        self._held = False
        """Whether the terminal is in application mode."""
        self._incoming = TerminalEvents()
        self._parts: list[ClipboardPart] = []
        self._answered: asyncio.Future[list[ClipboardPart]] | None = None
        self._outgoing = TerminalOutput(self._file)
        self._file = cast("IO[str]", self._outgoing)

    def close(self) -> None:
        """Stop reading. Also called before another program gets the terminal."""
        super().close()
        end, self.exit_event = self.exit_event, threading.Event()
        if isinstance(end, ReaderEnd):
            end.close()

    def give_back(self) -> None:
        """Restore the terminal from a signal handler. Takes no lock, because the interrupted code may hold it."""
        if not self._held or self._away:
            return
        self._held, self._outgoing.closed = False, True
        with suppress(OSError, termios.error):
            if self.attrs_before is not None:
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
        with suppress(OSError, ValueError):
            os.set_blocking(self._outgoing.fileno(), False)
            os.write(self._outgoing.fileno(), GIVE_BACK.encode())
            os.set_blocking(self._outgoing.fileno(), True)

    def suspend_application_mode(self) -> None:
        super().suspend_application_mode()
        self._away = True

    def resume_application_mode(self) -> None:
        self._away = False
        super().resume_application_mode()

    def write(self, data: str) -> None:
        # No thread empties the queue then: a full queue would block the event loop.
        if not self._away:
            super().write(data)

    def start_application_mode(self) -> None:
        self._held = True
        self.exit_event = ReaderEnd()
        super().start_application_mode()
        self.write(KEEP_TITLE)
        if self.input_tty and os.environ.get("TERM", "") not in {"linux", "dumb", ""}:
            self.write(ASK)
            self.flush()

    def stop_application_mode(self) -> None:
        # Terminals without a title stack show an empty title rather than that of a program that has ended.
        self.write(f"\x1b]2;\x07{GIVE_TITLE_BACK}")
        super().stop_application_mode()
        self._held = False

    async def clipboard(self) -> list[ClipboardPart]:
        """Ask the terminal for the picture in its clipboard; return the parts of the reply."""
        self._answered, self._parts = asyncio.get_running_loop().create_future(), []
        self._incoming.clipboard = True
        self.write(request())
        self.flush()
        try:
            return await self._answered
        finally:
            self._incoming.clipboard = False

    def _clipboard_part(self, part: ClipboardPart) -> None:
        """Process a part of the clipboard; called by the reading thread."""
        self._parts.append(part)
        answered = self._answered
        if part.last and answered:
            with suppress(RuntimeError):
                answered.get_loop().call_soon_threadsafe(_settle, answered, self._parts)

    def run_input_thread(self) -> None:
        """Read until the app stops. Invalid UTF-8 becomes replacement characters instead of ending the thread.

        Textual's own thread wakes ten times a second; this one sleeps while nobody types."""
        parser = XTermParser(self._debug)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        quiet_from = 0.0
        end = cast("ReaderEnd", self.exit_event)
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(end, selectors.EVENT_READ)
            while not end.is_set():
                ready = selector.select(TICK if time.monotonic() < quiet_from else None)
                if any(key.fd == self.fileno for key, _ in ready):
                    quiet_from = time.monotonic() + QUIET
                    data = self._read()
                    if not data:
                        self.send_message(TerminalGone())
                        return
                    self._take(self._incoming, parser, decoder.decode(data))
                for event in parser.tick():
                    self.process_message(event)
        try:
            list(parser.feed(""))
        except (EOFError, ParseError):
            return

    def _read(self) -> bytes:
        """Read bytes; none if the terminal is gone."""
        try:
            return os.read(self.fileno, CHUNK)
        except OSError:
            return b""

    def _take(self, incoming: TerminalEvents, parser: XTermParser, data: str) -> None:
        for part in incoming.feed(data):
            if isinstance(part, str):
                for event in parser.feed(part):
                    self.process_message(event)
            elif isinstance(part, GroundKnown):
                self.send_message(part)
            elif isinstance(part, ClipboardPart):
                self._clipboard_part(part)
            else:
                self.process_message(part)


def _settle(answered: asyncio.Future[list[ClipboardPart]], parts: list[ClipboardPart]) -> None:
    if not answered.done():
        answered.set_result(parts)
