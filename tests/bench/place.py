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
AUTHORITIES = "authorities.pem"
SYSTEM = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
"""Where systems keep the authorities they know."""
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
        trusted = {"SSL_CERT_FILE": str(self.root / AUTHORITIES)} if self.server.pem else {}
        asked = {"ANTHROPIC_API_KEY": "bench", "ANTHROPIC_BASE_URL": self.server.url, "BA_MODEL": MODEL}
        return {**quiet, **trusted, **asked}

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


def certified(root: Path) -> Path:
    """A key and a certificate for localhost; beside it AUTHORITIES, which holds it and those that the system knows.

    All of them, because reading them is part of a start over HTTPS.
    """
    made = root / "localhost.pem"
    words = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    where = ["-keyout", str(root / "key.pem"), "-out", str(root / "certificate.pem")]
    subprocess.run(["openssl", "req", *words, *named, *where], check=True, capture_output=True)
    certificate = (root / "certificate.pem").read_text()
    made.write_text((root / "key.pem").read_text() + certificate)
    known = [Path(name) for name in SYSTEM if Path(name).is_file()][:1]
    (root / AUTHORITIES).write_text("".join([*(path.read_text("utf-8") for path in known), certificate]))
    return made


@contextmanager
def place(*, model: bool = True, tls: bool = False) -> Generator[Place]:
    root = Path(tempfile.mkdtemp(prefix="ba-bench-"))
    for name in ("home", "work"):
        (root / name).mkdir()
    spot = Place(root)
    subprocess.run(spot.command("trust", "--yes"), cwd=spot.folder, env=spot.env, check=True, capture_output=True)
    try:
        if not model:
            yield spot
            return
        with ModelServer(root / "body.json", certified(root) if tls else None) as server:
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
