"""The sandbox: what confines commands here, and the words that go before a command so that it runs confined.

Nothing is started here but a short trial. Which parts of the disk are seen is ``layout``'s affair.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from ba_tui.core.errors import BaError, NoThread, started
from ba_tui.core.profiles import WORKING, Profile
from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox.layout import NOTHING, FileReach, Inside, MountPart, layout, shown_in
from ba_tui.permissions.sandbox.refusals import DENIED, LOGINS, MISSING, NETWORK, READ_ONLY, RIGHTS, says
from ba_tui.permissions.sandbox.workspace_scan import ScanResult, WorkspaceScan
from ba_tui.permissions.secrets.known import MaskPlaces
from ba_tui.processes.brief import BriefRun, run_briefly
from ba_tui.processes.confinement import INSIDE, Confinement
from ba_tui.processes.scratch import make_scratch, remove_scratch, scratch_path

if TYPE_CHECKING:
    from ba_tui.permissions.secrets.masks import WorkspaceMasks

log = logging.getLogger(__name__)
SandboxMode: TypeAlias = Literal["required", "auto", "off"]
PATIENCE = 5.0
FRESH_SECONDS = 1.0
"""Seconds for which what was found in the workspace is enough to say whether *reading* can be held."""
MOST_HIDDEN = 200
MOST_MASKED = 1_000
"""Files with secrets that an allowed command may cost seconds to hide."""
MOST_SECONDS = 0.05
CACHE_VARIABLES = {
    "XDG_CACHE_HOME": "", "RUFF_CACHE_DIR": "ruff", "MYPY_CACHE_DIR": "mypy", "PYTHONPYCACHEPREFIX": "python",
    "PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv", "npm_config_cache": "npm", "GOCACHE": "go", "ESLINT_CACHE": "eslint",
}  # fmt: skip
NO_RETRIES = {"npm_config_fetch_retries": "0", "PIP_RETRIES": "0"}
"""Without a network, programs would try for minutes."""
SHOWN = 200
TAIL = 6_000
CURE = "Install bubblewrap (its program is bwrap), or set sandbox to auto or off. See ba guide sandbox."


class NotConfined(BaError):
    """Commands must run in a sandbox, and there is none."""

    kind = "dependency_error"


class NotHidden(NotConfined):
    """The sandbox can't hide all secrets of the workspace."""


class Mechanism(Protocol):
    """One way to confine. ``separate``: programs have process numbers of their own, which mean nothing outside;
    ``walled``: without the network they have one of their own, with nothing but a loopback; ``hides``: it can hide
    a file in a folder that is seen, and keep one from being written in a folder that is."""

    @property
    def name(self) -> str: ...

    @property
    def guards(self) -> str: ...

    @property
    def separate(self) -> bool: ...

    @property
    def walled(self) -> bool: ...

    @property
    def hides(self) -> bool: ...

    def prefix(self, parts: Sequence[MountPart], *, network: bool) -> tuple[str, ...]: ...

    def environment(self, temporary: Path) -> dict[str, str]: ...


@frozen
class SandboxConfinement(Confinement):
    """How to start one program in the sandbox, and what holds for it there. ``walled``: see ``Mechanism``."""

    walled: bool = False
    guarded: bool = False
    """Whether protected files that exist can't be written."""
    findings: ScanResult | None = None
    """What there is in the workspace to be hidden and protected; None where nobody looked."""
    copies: tuple[Path, ...] = ()
    """Files of which the program sees masked copies."""


@frozen
class FoundSandbox:
    """What a look for mechanisms brought: the one that works, and why those before it do not."""

    mechanism: Mechanism | None
    troubles: tuple[str, ...] = ()


def candidates(search: str | None = None) -> list[Mechanism]:
    """All that might confine here, the best first. ``search``: where programs are looked for, as in PATH."""
    # Not before a command runs: most starts run none.
    if sys.platform == "darwin":
        from ba_tui.permissions.sandbox.seatbelt import seatbelts  # noqa: PLC0415

        return [*seatbelts()]
    from ba_tui.permissions.sandbox.bubblewrap import bubblewraps  # noqa: PLC0415
    from ba_tui.permissions.sandbox.landlock import landlocks  # noqa: PLC0415

    return [*bubblewraps(search), *landlocks()]


def find(ways: Iterable[Mechanism]) -> FoundSandbox:
    """Try one after the other with a program that does nothing. Blocks for some hundredths of a second."""
    troubles: list[str] = []
    for way in ways:
        trouble = _trouble(way)
        if not trouble:
            return FoundSandbox(way, tuple(troubles))
        troubles.append(f"{way.name}: {trouble}")
    return FoundSandbox(None, tuple(troubles))


class _Here:
    """What was found for this process, looked for once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.found: FoundSandbox | None = None

    def look(self) -> FoundSandbox:
        with self._lock:
            if self.found is None:
                self.found = find(candidates())
            return self.found


_here = _Here()


class Sandbox:
    """The sandbox of one conversation. Thread-safe; what blocks says so, and belongs off the event loop.

    ``look`` finds a mechanism; by default once for the whole process.
    """

    def __init__(
        self,
        reach: FileReach,
        mode: SandboxMode = "auto",
        look: Callable[[], FoundSandbox] | None = None,
        masks: MaskPlaces | None = None,
    ) -> None:
        self.reach = reach
        self.mode: SandboxMode = mode
        self.scan = WorkspaceScan(reach.roots, (*reach.readable, *reach.writable), reach.home, reach.started)
        self._look = look or _here.look
        self._found: FoundSandbox | None = None
        self._mask_places = masks or MaskPlaces()
        self._masks: WorkspaceMasks | None = None
        self._temporary: Path | None = None
        self._closed = False
        self._lock = threading.RLock()

    @property
    def masks(self) -> WorkspaceMasks:
        """The masked copies of this workspace's files."""
        from ba_tui.permissions.secrets.masks import WorkspaceMasks  # noqa: PLC0415 - the first command needs it

        with self._lock:
            if self._masks is None:
                self._masks = WorkspaceMasks(self.reach, self._mask_places)
            return self._masks

    def begin(self) -> None:
        """Begin to search the workspace for files with secrets, in the background. Where the system starts no thread,
        the next command searches, or reports it."""
        if self.mode != "off" and self._mask_places.searched and not self._closed:
            _unless_refused(lambda: started(lambda: _unless_refused(lambda: self.search(0.0)), "sandbox"))

    def search(self, seconds: float) -> None:
        """Search the workspace as it is now, for at most so many seconds. Blocks."""
        if self.holds() and self._mask_places.searched:
            self.masks.content.settle(self.masks.content.begin(), seconds)

    @property
    def found(self) -> FoundSandbox:
        """What confines here. Blocks at the first time."""
        if self._found is None:
            self._found = self._look()
        return self._found

    def holds(self) -> bool:
        """Whether commands run where protected files can't be written and secrets can't be read. Blocks at the first
        time."""
        mechanism = self.found.mechanism if self.mode != "off" else None
        return mechanism is not None and mechanism.hides

    def walled(self) -> bool:
        """Whether commands have no network there but hosts that are allowed one by one. Blocks at the first time."""
        mechanism = self.found.mechanism
        return self.holds() and mechanism is not None and mechanism.walled and not self.reach.network

    def unheld(self) -> str:
        """Why the profile *reading* can't be held here, in words that follow "because"; empty when it can. Blocks."""
        if self.mode == "off":
            return "the sandbox is off"
        mechanism = self.found.mechanism
        if mechanism is None:
            return "there is no sandbox"
        if not mechanism.hides:
            return f"{mechanism.name} can't hide files with secrets"
        return _too_much(self.scan.look(FRESH_SECONDS), self._masks.content.count() if self._masks else 0)

    @property
    def state(self) -> str:
        """For people, as one or two words, without looking: empty while nobody knows."""
        if self.mode == "off":
            return "no sandbox"
        found = self._found or (_here.found if self._look == _here.look else None)
        if found is None:
            return ""
        return "sandboxed" if found.mechanism else "no sandbox"

    def confine(
        self, profile: Profile = WORKING, readable: Sequence[Path] = (), *, originals: bool = False
    ) -> SandboxConfinement | None:
        """How the next program is started, which may read these paths too; None when it runs as it is. Blocks.
        ``originals``: it sees files with secrets as they are unless their names are secret, as the data engine must,
        whose fingerprints are those of the user's files.

        Raises:
            NotConfined: a sandbox is required, and there is none. NotHidden: it can't hide what the profile promises.
        """
        if self.mode == "off" or (profile.name == "outside" and self.mode != "required"):
            return None
        mechanism = self.found.mechanism
        if mechanism is None:
            if self.mode == "required":
                why = "; ".join(self.found.troubles) or "no mechanism is known for this system"
                raise NotConfined(f"Commands must run in a sandbox here, and there is none ({why}).", CURE)
            return None
        reading = profile.name == "reading"
        masked = reading and mechanism.hides and self._mask_places.searched and not originals
        search = self.masks.content.begin() if masked else 0
        look = self.scan.look if reading else self.scan.with_links
        findings = look() if mechanism.hides else NOTHING
        found: Mapping[Path, Path] = {}
        if masked and profile.history != "alone":
            self.masks.content.settle_if_quick(search)
            found = self.masks.content.masks()
        many = self.masks.content.count() if masked else 0
        why = _too_much(findings, many) if mechanism.hides and (reading or len(findings.secrets) > MOST_MASKED) else ""
        if why and profile.plain:
            findings, found = replace(findings, secrets=(), hidden=()), {}
        elif why:
            raise NotHidden(f"The command was not run: {why}.", "Move files with secrets out of the workspace.")
        copies = (*(path for path in findings.secrets if path not in profile.unhidden), *found)
        found = {**found, **{path: self.masks.of_rule(path) for path in profile.masked}}
        temporary = self._private()
        inside = Inside(profile, temporary, findings, self.masks.of_secret, found)
        reach = replace(self.reach, readable=(*self.reach.readable, *readable))
        network = profile.network or (self.reach.network and not reading)
        prefix = mechanism.prefix(layout(reach, inside), network=network)
        variables = {**INSIDE, **mechanism.environment(temporary), **(_caches(mechanism, temporary) if reading else {})}
        walled = mechanism.walled and not network
        seen = findings if mechanism.hides else None
        return SandboxConfinement(prefix, variables, mechanism.separate, profile, walled, mechanism.hides, seen, copies)

    def blame(self, output: str, code: int | None, linked: Collection[Path] = ()) -> str:
        """Why the sandbox may be the cause of a failure, or empty. ``linked``: files with a hard link outside."""
        if not code:
            return ""
        mechanism = self._found.mechanism if self._found else None
        text = output[-TAIL:]
        if says(LOGINS, text):
            return "your logins, settings in the home folder and local services are not available there"
        if not self.reach.network and says(NETWORK, text):
            return "the network is off there"
        if says(READ_ONLY, text):
            path = self.refused_write(output)
            if any(root / path in linked for root in self.reach.roots):
                return f"{path} has another name outside the workspace (a hard link), so it is read-only there: copy it"
            return "it tried to write something that is read-only there"
        if says(RIGHTS, text):
            return "it needs rights that it does not have there"
        # 126: a file that is no program. Where name spaces confine, such a refusal is the system's own, except for
        # root, whom it would refuse nothing outside.
        plain = mechanism is not None and mechanism.separate and os.geteuid() != 0
        if code != 126 and not plain and says(DENIED, text):
            return "the sandbox refused it something"
        home = str(self.reach.home) if self.reach.home else ""
        if home and any(home in line and says(MISSING, line) for line in text.splitlines()):
            return "most of the home folder is hidden there"
        return ""

    def refused_write(self, output: str) -> str:
        """The path of the workspace that a command says it could not write; empty when it says nothing of the kind."""
        words = READ_ONLY if self.found.mechanism and self.found.mechanism.separate else RIGHTS
        for line in reversed(output[-TAIL:].splitlines()):
            if not says(words, line):
                continue
            named = re.search(r"['\"‘“]([^'\"’”]+)['\"’”]", line) or re.search(rf"([^\s:]+): *(?:{words})", line, re.I)
            path = named[1] if named else "a file"
            if not path.startswith("/") or any(Path(path).is_relative_to(root) for root in self.reach.roots):
                return "".join(char for char in path if char.isprintable())[:SHOWN]
        return ""

    def shown(self, path: Path) -> str:
        """``path`` from the folder of the workspace that contains it."""
        return shown_in(self.reach.roots, path)

    def hidden_in(self, output: str) -> str:
        """The file with secrets that the end of an ``output`` names, which is hidden; empty when it names none."""
        text = output[-TAIL:]
        shown = map(self.shown, self.scan.last.secrets)
        named = (name for name in shown if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text))
        return next(named, "")

    def close(self) -> None:
        """End the search for secrets and remove the private folders. Blocks."""
        with self._lock:
            masks, temporary = self._masks, self._temporary
            self._masks = self._temporary = None
            self._closed = True
        if masks:
            masks.close()
        if temporary:
            remove_scratch(temporary)

    def _private(self) -> Path:
        """A temporary folder of this conversation, kept from one command to the next."""
        with self._lock:
            known = self._temporary
            if known is None or not known.is_dir():
                known = self._temporary = make_scratch(scratch_path("tmp"))
                # Also where nobody closes it: with a look at tools only, or at an end in a hurry.
                weakref.finalize(self, remove_scratch, known)
            return known


def _unless_refused(work: Callable[[], object]) -> None:
    """Do ``work``, and log where the system starts no thread for it."""
    try:
        work()
    except NoThread as error:
        log.warning("The workspace was not searched for files with secrets: %s", error)


def _too_much(findings: ScanResult, further: int = 0) -> str:
    """Why the secrets of a workspace, ``further`` files with secrets in their text among them, can't be hidden from a
    command that only reads."""
    count = len(findings.secrets) + len(findings.hidden) + further
    if count > MOST_HIDDEN:
        return f"{count} files with secrets lie in the workspace, and ba hides at most {MOST_HIDDEN}"
    if not findings.complete:
        return "the workspace has not been searched for files with secrets yet"
    if findings.cost > MOST_SECONDS:
        return "the workspace has too many folders to be searched for files with secrets before each command"
    return ""


def _caches(mechanism: Mechanism, temporary: Path) -> dict[str, str]:
    """Where programs that only read put what they would otherwise put into the workspace or the home folder."""
    base = mechanism.environment(temporary)["TMPDIR"]
    places = {name: f"{base}/cache/{folder}" if folder else f"{base}/cache" for name, folder in CACHE_VARIABLES.items()}
    return {**places, **NO_RETRIES}


def _trouble(way: Mechanism) -> str:
    """Why ``way`` does not work here; empty when it does."""
    idle = shutil.which("true", path="/usr/bin:/bin") or "/bin/true"
    try:
        done = run_briefly(BriefRun([*way.prefix((), network=False), idle], PATIENCE))
    except (OSError, ValueError) as error:
        return str(getattr(error, "strerror", None) or type(error).__name__)
    if done.code == 0:
        return ""
    why = f"no end within {PATIENCE:g} s" if done.code is None else f"exit code {done.code}"
    lines = done.errors.decode("utf-8", "replace").strip().splitlines() or [why]
    return "".join(char for char in lines[-1] if char.isprintable())[:SHOWN]
