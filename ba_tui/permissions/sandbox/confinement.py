"""The sandbox: finds the mechanism that confines commands here, and makes the words that precede a confined command.

Nothing is started except a short trial. ``layout`` decides which parts of the disk are visible.
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
from typing import TYPE_CHECKING, Literal, TypeAlias

from ba_tui.core.effects import WORKING, Profile
from ba_tui.core.errors import BaError, NoThread, started
from ba_tui.core.values import frozen, late
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.workspace_scan import NOTHING, FileReach, ScanResult, WorkspaceScan, shown_in
from ba_tui.permissions.secrets.masking import KnownSecrets, MaskPlaces
from ba_tui.processes.programs import BriefRun, run_briefly
from ba_tui.processes.scratch import make_scratch, remove_scratch, scratch_path
from ba_tui.processes.values import GIGABYTE, INSIDE, Confinement, ProcessLimits
from ba_tui.resources import UserFolders, folder_slug, user_home
from ba_tui.settings import Settings

if TYPE_CHECKING:
    from ba_tui.permissions.sandbox.layout import Mechanism
    from ba_tui.permissions.secrets.content_scan import WorkspaceMasks

log = logging.getLogger(__name__)


NETWORK = (
    r"could not resolve|name resolution|name or service not known|nodename nor servname|network is unreachable"
    r"|no address associated with hostname|getaddrinfo|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|connection refused"
    r"|failed to (?:resolve|lookup address)|unable to (?:resolve|look ?up)|no route to host|dns error"
    r"|unknown host|nameresolutionerror|network access|offline mode"
)
READ_ONLY = r"read-only file system|\bEROFS\b|device or resource busy|\bEBUSY\b|cross-device"
RIGHTS = r"operation not permitted|\bEPERM\b|no new privileges|effective uid is not 0"
DENIED = r"permission denied|\bEACCES\b"
LOGINS = (
    r"auth login|not logged in|log ?in first|(?:locate|find|load).{0,40}credentials|credentials? (?:were )?not found"
    r"|connect to (?:the docker daemon|podman|bus)|docker\.sock|podman\.sock|server localhost:8080 was refused"
)
"""Messages of programs that miss their settings or a local service."""
MISSING = r"no such file or directory|\bENOENT\b|cannot stat|not found"


def says(words: str, text: str) -> bool:
    """Return whether ``text`` matches the pattern ``words``, ignoring case. ``re`` caches the pattern after the first
    failure."""
    return re.search(words, text, re.IGNORECASE) is not None


# Loaded with the first command that runs in a sandbox.
make_masks = late("ba_tui.permissions.secrets.content_scan:WorkspaceMasks")
layout, view, bubblewraps, landlocks, seatbelts = (
    late(f"ba_tui.permissions.sandbox.layout:{name}")
    for name in ("layout", "Inside", "bubblewraps", "landlocks", "seatbelts")
)
SandboxMode: TypeAlias = Literal["required", "auto", "off"]
PATIENCE = 5.0
FRESH_SECONDS = 1.0
"""Maximum age, in seconds, of workspace findings that decide whether *reading* can be enforced."""
MOST_HIDDEN = 200
MOST_MASKED = 1_000
"""Files with secrets that ba hides from an allowed command at the cost of seconds."""
MOST_SECONDS = 0.05
CACHE_VARIABLES = {
    "XDG_CACHE_HOME": "", "RUFF_CACHE_DIR": "ruff", "MYPY_CACHE_DIR": "mypy", "PYTHONPYCACHEPREFIX": "python",
    "PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv", "npm_config_cache": "npm", "GOCACHE": "go", "ESLINT_CACHE": "eslint",
}  # fmt: skip
NO_RETRIES = {"npm_config_fetch_retries": "0", "PIP_RETRIES": "0"}
"""Without network access, programs would retry for minutes."""
SHOWN = 200
TAIL = 6_000
CURE = "Install bubblewrap (its program is bwrap), or set sandbox to auto or off. See ba guide sandbox."


class NotConfined(BaError):
    """Commands must run in a sandbox, but none is available."""

    kind = "dependency_error"


class NotHidden(NotConfined):
    """The sandbox can't hide all secrets of the workspace."""


@frozen
class SandboxConfinement(Confinement):
    """How to start one program in the sandbox. ``walled``: see ``Mechanism``."""

    walled: bool = False
    guarded: bool = False
    """Whether existing protected files are write-protected."""
    findings: ScanResult | None = None
    """What the workspace has to hide and protect; None if it was not searched."""
    copies: tuple[Path, ...] = ()
    """Files that the program sees as masked copies."""


@frozen
class FoundSandbox:
    """The mechanism that works, and why the ones before it don't."""

    mechanism: Mechanism | None
    troubles: tuple[str, ...] = ()


def candidates(search: str | None = None) -> list[Mechanism]:
    """Return all mechanisms that may work here, the best first. ``search``: the program search path, as in PATH."""
    if sys.platform == "darwin":
        return [*seatbelts()]
    return [*bubblewraps(search), *landlocks()]


def find(ways: Iterable[Mechanism]) -> FoundSandbox:
    """Try the mechanisms in turn with a program that does nothing. Blocks for some hundredths of a second."""
    troubles: list[str] = []
    for way in ways:
        trouble = _trouble(way)
        if not trouble:
            return FoundSandbox(way, tuple(troubles))
        troubles.append(f"{way.name}: {trouble}")
    return FoundSandbox(None, tuple(troubles))


class _Here:
    """The mechanism of this process, searched for once."""

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
    """The sandbox of one conversation. Thread-safe; methods that block say so and belong off the event loop.

    ``look`` finds a mechanism; by default once per process.
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
        with self._lock:
            masks: WorkspaceMasks = self._masks or make_masks(self.reach, self._mask_places)
            self._masks = masks
            return masks

    def begin(self) -> None:
        """Start searching the workspace for files with secrets, in the background.

        If no thread can be started, the next command searches or reports it.
        """
        if self.mode != "off" and self._mask_places.searched and not self._closed:
            _unless_refused(lambda: started(lambda: _unless_refused(lambda: self.search(0.0)), "sandbox"))

    def search(self, seconds: float) -> None:
        """Search the current workspace for at most ``seconds``. Blocks."""
        if self.holds() and self._mask_places.searched:
            self.masks.content.settle(self.masks.content.begin(), seconds)

    @property
    def found(self) -> FoundSandbox:
        """The mechanism that works here. Blocks on first use."""
        if self._found is None:
            self._found = self._look()
        return self._found

    def holds(self) -> bool:
        """Return whether commands run without access to protected files and secrets. Blocks on first use."""
        mechanism = self.found.mechanism if self.mode != "off" else None
        return mechanism is not None and mechanism.hides

    def walled(self) -> bool:
        """Return whether commands reach no network except hosts that are allowed individually. Blocks on first use."""
        mechanism = self.found.mechanism
        return self.holds() and mechanism is not None and mechanism.walled and not self.reach.network

    def unheld(self) -> str:
        """Return why the profile *reading* can't be enforced here, to follow "because"; empty if it can. Blocks."""
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
        """The state for display in one or two words; empty until a mechanism was searched for."""
        if self.mode == "off":
            return "no sandbox"
        found = self._found or (_here.found if self._look == _here.look else None)
        if found is None:
            return ""
        return "sandboxed" if found.mechanism else "no sandbox"

    def confine(
        self, profile: Profile = WORKING, readable: Sequence[Path] = (), *, originals: bool = False
    ) -> SandboxConfinement | None:
        """Return how to start the next program, which may also read ``readable``; None if it runs unconfined. Blocks.

        ``originals``: it sees files with secrets unmasked unless their names are secret. The data engine needs that,
        because it takes fingerprints of the user's files.

        Raises:
            NotConfined: a sandbox is required but not available. NotHidden: it can't hide what the profile promises.
        """
        if self.mode == "off" or (profile.name == "outside" and self.mode != "required"):
            return None
        mechanism = self.found.mechanism
        if mechanism is None:
            if self.mode == "required":
                why = "; ".join(self.found.troubles) or "no mechanism is known for this system"
                raise NotConfined(f"Commands must run in a sandbox here, but none is available ({why}).", CURE)
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
        inside = view(profile, temporary, findings, self.masks.of_secret, found)
        reach = replace(self.reach, readable=(*self.reach.readable, *readable))
        network = profile.network or (self.reach.network and not reading)
        prefix = mechanism.prefix(layout(reach, inside), network=network)
        variables = {**INSIDE, **mechanism.environment(temporary), **(_caches(mechanism, temporary) if reading else {})}
        walled = mechanism.walled and not network
        seen = findings if mechanism.hides else None
        return SandboxConfinement(prefix, variables, mechanism.separate, profile, walled, mechanism.hides, seen, copies)

    def blame(self, output: str, code: int | None, linked: Collection[Path] = ()) -> str:
        """Return why the sandbox may have caused a failure; empty otherwise. ``linked``: files with a hard link
        outside."""
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
        # 126: the file is no program. With namespaces, such a refusal comes from the system itself, except for
        # root, which has all rights outside.
        plain = mechanism is not None and mechanism.separate and os.geteuid() != 0
        if code != 126 and not plain and says(DENIED, text):
            return "the sandbox refused it something"
        home = str(self.reach.home) if self.reach.home else ""
        if home and any(home in line and says(MISSING, line) for line in text.splitlines()):
            return "most of the home folder is hidden there"
        return ""

    def refused_write(self, output: str) -> str:
        """Return the path of the workspace that a command could not write according to its output; empty for none."""
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
        """Return ``path`` relative to the folder of the workspace that contains it."""
        return shown_in(self.reach.roots, path)

    def hidden_in(self, output: str) -> str:
        """Return the hidden file with secrets that the end of ``output`` names; empty for none."""
        text = output[-TAIL:]
        shown = map(self.shown, self.scan.last.secrets)
        named = (name for name in shown if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text))
        return next(named, "")

    def close(self) -> None:
        """Stop the search for secrets and remove the private folders. Blocks."""
        with self._lock:
            masks, temporary = self._masks, self._temporary
            self._masks = self._temporary = None
            self._closed = True
        if masks:
            masks.close()
        if temporary:
            remove_scratch(temporary)

    def _private(self) -> Path:
        """Return a temporary folder of this conversation that persists between commands."""
        with self._lock:
            known = self._temporary
            if known is None or not known.is_dir():
                known = self._temporary = make_scratch(scratch_path("tmp"))
                # Remove it also without ``close``: after a mere look at tools, or at an abrupt end.
                weakref.finalize(self, remove_scratch, known)
            return known


def _unless_refused(work: Callable[[], object]) -> None:
    """Do ``work``; log if the system starts no thread for it."""
    try:
        work()
    except NoThread as error:
        log.warning("The workspace was not searched for files with secrets: %s", error)


def _too_much(findings: ScanResult, further: int = 0) -> str:
    """Return why secrets can't be hidden from a read-only command; empty if they can.

    ``further``: files with secrets in their text.
    """
    count = len(findings.secrets) + len(findings.hidden) + further
    if count > MOST_HIDDEN:
        return f"{count} files with secrets lie in the workspace, and ba hides at most {MOST_HIDDEN}"
    if not findings.complete:
        return "the workspace has not been searched for files with secrets yet"
    if findings.cost > MOST_SECONDS:
        return "the workspace has too many folders to be searched for files with secrets before each command"
    return ""


def _caches(mechanism: Mechanism, temporary: Path) -> dict[str, str]:
    """Return variables that move caches of read-only programs out of the workspace and the home folder."""
    base = mechanism.environment(temporary)["TMPDIR"]
    places = {name: f"{base}/cache/{folder}" if folder else f"{base}/cache" for name, folder in CACHE_VARIABLES.items()}
    return {**places, **NO_RETRIES}


def _trouble(way: Mechanism) -> str:
    """Return why ``way`` does not work here; empty if it does."""
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


def sandbox_for(
    settings: Settings, where: UserFolders, workspace: Workspace, known: KnownSecrets | None = None
) -> Sandbox:
    """Return the sandbox of a workspace. It searches for a mechanism at the first command. ``known`` learns masked
    values."""
    commands = settings.commands
    reach = FileReach(
        (workspace.root, *workspace.extra),
        commands.write,
        (*commands.read, *(lent.folder for lent in workspace.lent)),
        tuple(dict.fromkeys((where.config, where.data, where.cache, where.state))),
        network=commands.network,
        home=user_home(),
        started=workspace.started,
    )
    kept = where.cache / "searched" / folder_slug(workspace.root)
    # With any other setting, texts with secrets stay visible.
    searched = settings.secrets == "redact"
    masks = MaskPlaces(where.cache / "masks", kept, known or KnownSecrets(), searched)
    return Sandbox(reach, settings.sandbox, masks=masks)


def limits_for(settings: Settings) -> ProcessLimits:
    """Return the limits of commands."""
    given = settings.commands
    memory, size = int(given.memory_gb * GIGABYTE), int(given.file_size_gb * GIGABYTE)
    return ProcessLimits(memory or None, size or None, given.processes or None)
