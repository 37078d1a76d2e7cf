"""Where ba is measured: a home of its own, an empty folder to work in, a model server beside it. No network."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.server import ModelServer
from tests.bench.terminal import Terminal

BA = Path(sys.executable).with_name("ba")
MODEL = "anthropic/claude-sonnet-4-5"
KEYS = "жшщцюяэыъйёґ"
"""Letters for key presses: nothing else on the screen holds them."""


@dataclass(frozen=True)
class Place:
    """A clean home and working folder, and the environment that leads ba there."""

    root: Path
    server: ModelServer | None = None

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def folder(self) -> Path:
        return self.root / "work"

    @property
    def env(self) -> dict[str, str]:
        quiet = {"BA_HOME": str(self.home), "HOME": str(self.root)}
        if self.server is None:
            return quiet
        return {**quiet, "ANTHROPIC_API_KEY": "bench", "ANTHROPIC_BASE_URL": self.server.url, "BA_MODEL": MODEL}

    def command(self, *flags: str) -> list[str]:
        return [str(BA), *flags]

    def app(self, *flags: str) -> Terminal:
        """ba in a terminal, just started."""
        return Terminal(self.command(*flags), self.folder, self.env)

    def ready(self, *flags: str) -> Terminal:
        """ba in a terminal with its input on the screen and a first key echoed."""
        terminal = self.app(*flags)
        terminal.until(box)
        terminal.echo("ж")
        terminal.type("\x7f")
        terminal.drain()
        return terminal


def box(screen: str) -> bool:
    """Is the input there?"""
    return "❯" in screen


def said(terminal: Terminal, order: str) -> None:
    """Type an order and send it."""
    terminal.type(order)
    terminal.until(lambda screen: order in screen)
    terminal.type("\r")


@contextmanager
def place(*, model: bool = True) -> Generator[Place]:
    root = Path(tempfile.mkdtemp(prefix="ba-bench-"))
    for name in ("home", "work"):
        (root / name).mkdir()
    spot = Place(root)
    subprocess.run(spot.command("trust", "--yes"), cwd=spot.folder, env=spot.env, check=True, capture_output=True)
    try:
        if not model:
            yield spot
            return
        with ModelServer(root / "body.json") as server:
            yield Place(root, server)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def patiently(terminal: Terminal, times: Sequence[str], pause: float) -> list[float]:
    """Press one key after the other, ``pause`` seconds apart; seconds each took to be painted."""
    taken: list[float] = []
    for key in times:
        taken.append(terminal.echo(key))
        terminal.watch(pause)
    return taken
