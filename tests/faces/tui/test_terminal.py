"""What comes from the terminal, cut into pieces of every size."""

from __future__ import annotations

import os
import selectors
import threading
from queue import SimpleQueue

import pytest
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.events import Key, Paste
from textual.message import Message

from ba_tui.faces.tui import terminal
from ba_tui.faces.tui.terminal import GroundKnown, ReaderEnd, TerminalEvents, TerminalInput, call_for

STREAM = "ab\x1b[200~pasted\x1b[31m text\0\x1b[201~c\x1b]11;rgb:ffff/ffff/eeee\x1b\\d\x1b[A"


def taken(pieces: list[str]) -> tuple[str, list[str], list[bool]]:
    incoming = TerminalEvents()
    keys, pastes, grounds = "", [], []
    for piece in pieces:
        for part in incoming.feed(piece):
            if isinstance(part, Paste):
                pastes.append(part.text)
            elif isinstance(part, GroundKnown):
                grounds.append(part.light)
            elif isinstance(part, str):
                keys += part
    return keys, pastes, grounds


def test_whole() -> None:
    assert taken([STREAM]) == ("abcd\x1b[A", ["pasted\x1b[31m text"], [True])


@pytest.mark.parametrize("cut", range(STREAM.index("pasted"), STREAM.index("c\x1b]11")))
def test_a_paste_cut_anywhere_is_one_paste(cut: int) -> None:
    assert taken([STREAM[:cut], STREAM[cut:]]) == ("abcd\x1b[A", ["pasted\x1b[31m text"], [True])


def test_a_reply_cut_in_two_is_no_keys() -> None:
    cut = STREAM.index("ffff/eeee")
    assert taken([STREAM[:cut], STREAM[cut:]]) == ("abcd\x1b[A", ["pasted\x1b[31m text"], [True])


@pytest.mark.parametrize(
    ("reply", "light"), [("rgb:00/00/00", False), ("rgb:1313/1515/1818", False), ("rgb:f/f/f", True)]
)
def test_grounds(reply: str, light: bool) -> None:
    assert taken([f"\x1b]11;{reply}\x07"]) == ("", [], [light])


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        ("\x1b\r", "alt+enter"),
        ("\x1b\n", "alt+enter"),
        ("\x1b[27;2;13~", "shift+enter"),
        ("\x1b[13;2u", "shift+enter"),
        ("\x1b[27;5;13~", "ctrl+enter"),
        ("\n", "ctrl+j"),
        ("\r", "enter"),
    ],
)
def test_every_spelling_of_a_newline_key(sent: str, key: str) -> None:
    parser = XTermParser(False)
    keys, _, _ = taken([sent])
    assert [event.key for event in parser.feed(keys) if isinstance(event, Key)] == [key]


def test_ten_megabytes_are_one_paste() -> None:
    huge = "0123456789abcde\n" * 655_360
    stream = f"\x1b[200~{huge}\x1b[201~x"
    pieces = [stream[start : start + 65_536] for start in range(0, len(stream), 65_536)]
    assert taken(pieces) == ("x", [huge], [])


@pytest.mark.parametrize(
    ("how", "sequence"),
    [
        ("bell", "\x07"),
        ("osc9", "\x1b]9;ba needs you; now\x07"),
        ("osc777", "\x1b]777;notify;ba;ba needs you, now\x07"),
        ("off", ""),
    ],
)
def test_the_person_is_called_as_the_settings_say(how: str, sequence: str) -> None:
    assert call_for("ba needs you; now", how) == sequence


async def test_nobody_types_and_the_reading_thread_sleeps_until_it_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: SimpleQueue[float | None] = SimpleQueue()
    keys: SimpleQueue[Message] = SimpleQueue()

    class Recorder(selectors.SelectSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            waits.put(timeout)
            return super().select(timeout)

    monkeypatch.setattr(terminal.selectors, "DefaultSelector", Recorder)
    driver = TerminalInput(App(), debug=False)
    monkeypatch.setattr(driver, "process_message", keys.put)
    reader, writer = os.pipe()
    driver.fileno, driver.exit_event = reader, ReaderEnd()
    thread = threading.Thread(target=driver.run_input_thread, daemon=True)
    thread.start()
    assert waits.get(timeout=60) is None
    os.write(writer, b"\x1b")
    key = keys.get(timeout=60)
    assert isinstance(key, Key)
    assert key.key == "escape", "a lone Escape is known after a pause without further bytes"
    while waits.get(timeout=60) is not None:
        pass
    driver.exit_event.set()
    thread.join(60)
    assert not thread.is_alive()
    driver.close()
    os.close(reader)
    os.close(writer)
