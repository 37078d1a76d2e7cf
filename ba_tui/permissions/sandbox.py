"""The sandbox: what confines commands here, and the words that go before a command so that it runs confined.

Nothing is started here but a short trial. Which parts of the disk are seen is ``sandbox_layout``'s affair.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox_layout import Part, Reach, layout

Mode: TypeAlias = Literal["required", "auto", "off"]
PATIENCE = 5.0
SHOWN = 200
TAIL = 6_000
CURE = "Install bubblewrap (its program is bwrap), or set sandbox to auto or off."

# Texts, and compiled when something was refused: `re` keeps them then.
NETWORK = (
    r"could not resolve|name resolution|name or service not known|nodename nor servname|network is unreachable"
    r"|no address associated with hostname|getaddrinfo|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|connection refused"
    r"|failed to (?:resolve|lookup address)|unable to (?:resolve|look ?up)|no route to host|dns error"
    r"|unknown host|nameresolutionerror|network access|offline mode"
)
READ_ONLY = r"read-only file system|\bEROFS\b|device or resource busy|\bEBUSY\b|cross-device"
RIGHTS = r"operation not permitted|\bEPERM\b|no new privileges|effective uid is not 0"
DENIED = r"permission denied|\bEACCES\b"
MISSING = r"no such file or directory|\bENOENT\b|cannot stat|not found"


class NotConfined(BaError):
    """Commands must run in a sandbox, and there is none."""

    kind = "dependency_error"


class Mechanism(Protocol):
    """One way to confine. ``separate``: programs have process numbers of their own, which mean nothing outside;
    ``walled``: without the network they have one of their own, with nothing but a loopback."""

    @property
    def name(self) -> str: ...

    @property
    def guards(self) -> str: ...

    @property
    def separate(self) -> bool: ...

    @property
    def walled(self) -> bool: ...

    def prefix(self, parts: Sequence[Part], *, network: bool) -> tuple[str, ...]: ...

    def environment(self, temporary: Path) -> dict[str, str]: ...


@frozen
class Confinement:
    """How to start one program confined: ``prefix`` goes before its words, ``environment`` over its own."""

    prefix: tuple[str, ...]
    environment: Mapping[str, str]
    separate: bool
    walled: bool = False

    def wrap(self, argv: Sequence[str]) -> tuple[str, ...]:
        return (*self.prefix, *argv)


@frozen
class Found:
    """What a look for mechanisms brought: the one that works, and why those before it do not."""

    mechanism: Mechanism | None
    troubles: tuple[str, ...] = ()


def candidates(search: str | None = None) -> list[Mechanism]:
    """All that might confine here, the best first. ``search``: where programs are looked for, as in PATH."""
    # Not before a command runs: most starts run none.
    if sys.platform == "darwin":
        from ba_tui.permissions.sandbox_seatbelt import seatbelts  # noqa: PLC0415

        return [*seatbelts()]
    from ba_tui.permissions.sandbox_bwrap import bubblewraps  # noqa: PLC0415
    from ba_tui.permissions.sandbox_landlock import landlocks  # noqa: PLC0415

    return [*bubblewraps(search), *landlocks()]


def find(ways: Iterable[Mechanism]) -> Found:
    """Try one after the other with a program that does nothing. Blocks for some hundredths of a second."""
    troubles: list[str] = []
    for way in ways:
        trouble = _trouble(way)
        if not trouble:
            return Found(way, tuple(troubles))
        troubles.append(f"{way.name}: {trouble}")
    return Found(None, tuple(troubles))


class _Here:
    """What was found for this process, looked for once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.found: Found | None = None

    def look(self) -> Found:
        with self._lock:
            if self.found is None:
                self.found = find(candidates())
            return self.found


_here = _Here()


class Sandbox:
    """The sandbox of one conversation. Thread-safe; what blocks says so, and belongs off the event loop.

    ``look`` finds a mechanism; by default once for the whole process.
    """

    def __init__(self, reach: Reach, mode: Mode = "auto", look: Callable[[], Found] | None = None) -> None:
        self.reach = reach
        self.mode: Mode = mode
        self._look = look or _here.look
        self._found: Found | None = None
        self._temporary: Path | None = None
        self._lock = threading.Lock()

    @property
    def found(self) -> Found:
        """What confines here. Blocks at the first time."""
        if self._found is None:
            self._found = self._look()
        return self._found

    def confined(self) -> bool:
        """Whether commands run confined. Blocks at the first time."""
        return self.mode != "off" and self.found.mechanism is not None

    @property
    def state(self) -> str:
        """For people, as one or two words, without looking: empty while nobody knows."""
        if self.mode == "off":
            return "no sandbox"
        found = self._found or (_here.found if self._look == _here.look else None)
        if found is None:
            return ""
        return "sandboxed" if found.mechanism else "no sandbox"

    def confine(self, readable: Sequence[Path] = ()) -> Confinement | None:
        """How the next program is started, which may read these paths too; None when it runs as it is. Blocks.

        Raises:
            NotConfined: a sandbox is required, and there is none.
        """
        if self.mode == "off":
            return None
        mechanism = self.found.mechanism
        if mechanism is None:
            if self.mode == "required":
                why = "; ".join(self.found.troubles) or "no mechanism is known for this system"
                raise NotConfined(f"Commands must run in a sandbox here, and there is none ({why}).", CURE)
            return None
        temporary = self._private()
        parts = layout(replace(self.reach, readable=(*self.reach.readable, *readable)), temporary)
        prefix = mechanism.prefix(parts, network=self.reach.network)
        walled = mechanism.walled and not self.reach.network
        return Confinement(prefix, mechanism.environment(temporary), mechanism.separate, walled)

    def blame(self, output: str, code: int | None) -> str:
        """Why a command that failed may have failed for the sandbox's sake; empty when nothing looks like it."""
        if not code:
            return ""
        mechanism = self._found.mechanism if self._found else None
        text = output[-TAIL:]
        if not self.reach.network and _says(NETWORK, text):
            return "the network is off there"
        if _says(READ_ONLY, text):
            return "what it wanted to write may only be read there"
        if _says(RIGHTS, text):
            return "it wanted rights that it does not have there"
        # 126: a file that is no program. Where name spaces confine, such a refusal is the system's own, except for
        # root, whom it would refuse nothing outside.
        plain = mechanism is not None and mechanism.separate and os.geteuid() != 0
        if code != 126 and not plain and _says(DENIED, text):
            return "it was refused something there"
        home = str(self.reach.home) if self.reach.home else ""
        if home and any(home in line and _says(MISSING, line) for line in text.splitlines()):
            return "most of the home folder can't be seen there"
        return ""

    def close(self) -> None:
        """Remove the private temporary folder. Blocks."""
        with self._lock:
            if self._temporary:
                shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def _private(self) -> Path:
        """The folder that programs see as theirs for temporary files, kept from one command to the next."""
        with self._lock:
            if self._temporary is None or not self._temporary.is_dir():
                self._temporary = Path(os.path.realpath(tempfile.mkdtemp(prefix="ba-tmp-")))
                # Also where nobody closes it: with a look at tools only, or at an end in a hurry.
                weakref.finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
            return self._temporary


def _says(words: str, text: str) -> bool:
    return re.search(words, text, re.IGNORECASE) is not None


def _trouble(way: Mechanism) -> str:
    """Why ``way`` does not work here; empty when it does."""
    idle = shutil.which("true", path="/usr/bin:/bin") or "/bin/true"
    try:
        done = subprocess.run(
            [*way.prefix((), network=False), idle],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(getattr(error, "strerror", None) or type(error).__name__)
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
    return "".join(char for char in lines[-1] if char.isprintable())[:SHOWN]
