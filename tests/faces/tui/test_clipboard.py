"""Copying: the terminal's sequence, the platform's tools, and saying truly how it went."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ba_tui.faces.tui import clipboard
from ba_tui.faces.tui.clipboard import MOST_BY_TERMINAL, copy, tools


class Screen:
    def __init__(self) -> None:
        self.copied: list[str] = []

    def copy_to_clipboard(self, text: str) -> None:
        self.copied.append(text)


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clipboard tool named xclip that keeps what it is given."""
    for name in ("WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":7")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return script(tmp_path, f"cat > {tmp_path}/kept")


def script(folder: Path, body: str) -> Path:
    path = folder / "xclip"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder


async def test_both_ways_are_taken(tool: Path) -> None:
    screen = Screen()
    assert await copy(screen, "häuser\n") == "Copied 7 characters."
    assert screen.copied == ["häuser\n"]
    assert (tool / "kept").read_text() == "häuser\n"


async def test_a_failing_tool_leaves_the_terminal(tool: Path) -> None:
    script(tool, "exit 3")
    screen = Screen()
    assert await copy(screen, "a") == "Copied 1 character through the terminal."
    assert screen.copied == ["a"]


async def test_a_hanging_tool_is_left_behind(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipboard, "PATIENCE", 0.05)
    script(tool, "exec sleep 60")
    assert await copy(Screen(), "a") == "Copied 1 character through the terminal."


async def test_much_text_goes_to_the_tool_only(tool: Path) -> None:
    screen = Screen()
    text = "x" * (MOST_BY_TERMINAL + 1)
    assert await copy(screen, text) == "Copied 75,001 characters."
    assert screen.copied == []
    assert len((tool / "kept").read_text()) == len(text)
    script(tool, "exit 3")
    assert (await copy(screen, text)).startswith("Not copied")


async def test_lone_surrogates_do_not_stop_it(tool: Path) -> None:
    assert await copy(Screen(), "a\ud800b") == "Copied 3 characters."
    assert (tool / "kept").read_text() == "a?b"


def test_which_tools_are_tried(tool: Path) -> None:
    path = str(tool)
    assert tools("linux", {"PATH": path}) == []
    assert tools("linux", {"PATH": path, "DISPLAY": ":0"}) == [[f"{path}/xclip", "-selection", "clipboard"]]
    assert tools("darwin", {"PATH": path}) == []
