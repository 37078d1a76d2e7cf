"""Pictures from the clipboard: which tool or terminal gives them, and the chip that stands for one."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.context import Weight
from ba_tui.faces.tui.clipboard import ClipboardPart, picture, put_together, request
from ba_tui.faces.tui.terminal import TerminalEvents
from tests.faces.tui.conftest import running
from tests.faces.tui.fakes import World
from tests.faces.tui.input.test_prompt import paste

PNG = b"\x89PNG\r\n\x1a\n and more"
Tools = Callable[..., dict[str, str]]


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    """Puts programs into a folder; the environment that finds them there."""

    def install(variables: Mapping[str, str], **scripts: str) -> dict[str, str]:
        for name, script in scripts.items():
            path = tmp_path / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        (tmp_path / "picture").write_bytes(PNG)
        return {"PATH": str(tmp_path), **variables}

    return install


WAYLAND = """case "$*" in
--list-types) echo text/html; echo image/png;;
"--no-newline --type image/png") /bin/cat {0}/picture;;
*) exit 1;;
esac"""
X11 = """case "$*" in *TARGETS*) echo TARGETS; echo image/png;; *image/png*) /bin/cat {0}/picture;; *) exit 1;; esac"""


async def test_wayland_and_x11_give_it_by_their_tools(tools: Tools, tmp_path: Path) -> None:
    wayland = tools({"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, wl_paste=WAYLAND.format(tmp_path))
    assert await picture("linux", wayland) == PNG
    assert await picture("linux", tools({"DISPLAY": ":0"}, xclip=X11.format(tmp_path))) == PNG
    # Only the tool of X11 is there, and it reads the clipboard of Wayland as well.
    (tmp_path / "wl-paste").unlink()
    assert await picture("linux", wayland) == PNG


async def test_macs_give_it_by_pngpaste_or_applescript(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"echo '«data PNGf{PNG.hex().upper()}»'"
    environment = tools({}, osascript=script)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await picture("darwin", environment) == PNG
    assert await picture("darwin", tools({}, pngpaste=f"/bin/cat {tmp_path}/picture")) == PNG


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"WAYLAND_DISPLAY": "wayland-0"}, "install wl-clipboard"),
        ({"DISPLAY": ":0"}, "install xclip"),
        ({}, "can't reach a clipboard"),
    ],
)
async def test_where_nothing_reads_it_the_package_that_helps_is_named(
    tools: Tools, variables: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        await picture("linux", tools(variables))
    assert "path" in caught.value.hint


async def test_a_clipboard_with_text_alone_holds_no_picture(tools: Tools) -> None:
    environment = tools({"DISPLAY": ":0"}, xclip="echo TARGETS; echo UTF8_STRING")
    with pytest.raises(UsageError, match="holds no picture"):
        await picture("linux", environment)


# Kitty's protocol


def answer(data: bytes, kind: str = "image/png") -> str:
    mime = base64.b64encode(kind.encode()).decode()
    pieces = [data[at : at + 7] for at in range(0, len(data), 7)]
    sent = [f"type=read:status=DATA:mime={mime};{base64.b64encode(piece).decode()}" for piece in pieces]
    lines = ["type=read:status=OK", *sent, "type=read:status=DONE"]
    return "".join(f"\x1b]5522;{line}\x1b\\" for line in lines)


@pytest.mark.parametrize("size", [1, 3, 50, 10_000])
def test_the_answer_of_the_terminal_is_cut_out_of_what_is_typed(size: int) -> None:
    incoming = TerminalEvents()
    incoming.clipboard = True
    stream = f"a{answer(PNG)}b"
    found = [part for at in range(0, len(stream), size) for part in incoming.feed(stream[at : at + size])]
    parts = [part for part in found if isinstance(part, ClipboardPart)]
    assert put_together(parts) == PNG
    assert "".join(part for part in found if isinstance(part, str)) == "ab"
    assert not incoming.clipboard


def test_escape_is_a_key_while_nothing_was_asked() -> None:
    assert list(TerminalEvents().feed("\x1b")) == ["\x1b"]


def test_a_refusal_says_so() -> None:
    with pytest.raises(UsageError, match="does not let programs read"):
        put_together([ClipboardPart({"type": "read", "status": "EPERM"})])


async def test_kitty_is_asked_where_no_tool_is() -> None:
    async def ask() -> Sequence[ClipboardPart]:
        incoming = TerminalEvents()
        incoming.clipboard = True
        return [part for part in incoming.feed(answer(PNG)) if isinstance(part, ClipboardPart)]

    assert await picture("linux", {"TERM": "xterm-kitty"}, ask) == PNG
    with pytest.raises(UsageError, match="can't reach a clipboard"):
        await picture("linux", {"TERM": "xterm-kitty", "TMUX": "1"}, ask)
    assert "aW1hZ2UvcG5n" in request()


# In the input


@pytest.fixture
def clipboard(tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    for name, value in tools({"DISPLAY": ":0"}, xclip=X11.format(tmp_path)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)


@pytest.mark.usefixtures("clipboard")
async def test_a_pasted_picture_is_a_chip_that_goes_as_one_and_is_sent_as_a_mention(world: World) -> None:
    world.names.weights = {"@attachments/image-2.png": Weight("attachments/image-2.png", 0, "It can't see pictures.")}
    async with running(world, size=(120, 24)) as hand:
        await hand.press("ctrl+v")
        await hand.until(lambda: hand.text == "[Image 1] ")
        await hand.press("backspace", "backspace")
        assert hand.text == ""
        await hand.press("alt+v")
        await hand.until(lambda: hand.text == "[Image 2] ")
        # That the model is blind is said before it is sent.
        await hand.until(lambda: "can't see pictures" in hand.hint)
        await hand.type("what is it?")
        await hand.press("enter")
        await hand.idle()
        assert world.script.requests[0].messages[0].text == "@attachments/image-2.png what is it?"
        assert world.names.kept == [PNG, PNG]


@pytest.mark.usefixtures("clipboard")
async def test_a_terminal_that_pastes_nothing_pastes_a_picture(world: World) -> None:
    async with running(world) as hand:
        await paste(hand, "")
        await hand.until(lambda: hand.text == "[Image 1] ")


async def test_without_a_clipboard_the_hint_says_what_helps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "KITTY_WINDOW_ID"):
        monkeypatch.delenv(name, raising=False)
    async with running(world, size=(120, 24)) as hand:
        await hand.press("ctrl+v")
        await hand.until(lambda: "can't reach a clipboard" in hand.hint)
        assert hand.text == ""
