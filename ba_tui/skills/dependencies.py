"""Reads a skill's requirements.txt and keeps the virtual environments, one for each set of requirements.

Nothing is installed here, and nobody asked: the tool that runs scripts does both with the words made here.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
import sysconfig
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from ba_tui.core.errors import BaError, StorageError
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen
from ba_tui.resources import read_regular

FILE = "requirements.txt"
MAX_BYTES = 200_000
MAX_DEPTH = 5
POLL_SECONDS = 0.2
MAX_NAMES = 6
READY = "ready.json"
KEPT_SECONDS = 90 * 86_400.0
"""Seconds that an environment is kept without being used."""
USABLE = "Its scripts can't run without that; all else of the skill can be used."

_COMMENT = regex(r"(?:^|\s)#.*")
_INCLUDE = regex(r"(?:-r|-c|--requirement|--constraint)[\s=]*(.+)")
_NAME = regex(r"[A-Za-z0-9][\w.-]*")
_PACKAGE = regex(r"[A-Za-z0-9][\w.-]{0,100}(?:\[[\w., -]{1,100}\])?(?:\s*(?:[<>=!~]=?=?)\s*[\w.*+-]{1,60},?){0,5}")
_ELSEWHERE = regex(
    r"^(?:-i|--index-url|--extra-index-url|-f|--find-links|--trusted-host|-e|--editable)\b|\w+\+\w+:|[a-z]+://|@\s",
    re.IGNORECASE,
)
_OFFLINE = regex(
    r"name resolution|could not resolve|dns error|failed to lookup address|network is unreachable|no route to host"
    r"|connection (?:refused|reset|broken|aborted)|newconnectionerror|connecttimeout|read timed out|timed out"
    r"|error sending request|failed to fetch|client error \(connect\)|tunnel connection failed|proxyerror"
    r"|network was disabled",
    re.IGNORECASE,
)
_REFUSED = regex(r"\b(401|403|407)\b[ :]*(?:Client Error|Unauthorized|Forbidden|Proxy)", re.IGNORECASE)
_MISSING = (
    regex(r"No matching distribution found for (\S+)"),
    regex(r"Could not find a version that satisfies the requirement (\S+)"),
    regex(r"[Bb]ecause (\S+) was not found"),
    regex(r"there (?:is|are) no versions? of (\S+)"),
)
_BUILD = regex(r"(?:Failed building wheel for|Failed to build|Failed to download and build) [`']?([\w.=-]+)")
_CONFLICT = regex(r"ResolutionImpossible|conflicting dependencies|No solution found|unsatisfiable", re.IGNORECASE)


DISTRIBUTIONS: Mapping[str, str] = {
    "PIL": "pillow", "cv2": "opencv-python-headless", "yaml": "pyyaml", "docx": "python-docx", "pptx": "python-pptx",
    "bs4": "beautifulsoup4", "sklearn": "scikit-learn", "skimage": "scikit-image", "fitz": "pymupdf", "jwt": "pyjwt",
    "dotenv": "python-dotenv", "dateutil": "python-dateutil", "Crypto": "pycryptodome", "git": "gitpython",
    "google": "google-genai", "googleapiclient": "google-api-python-client", "magic": "python-magic", "attr": "attrs",
    "OpenSSL": "pyopenssl", "serial": "pyserial", "slugify": "python-slugify", "psycopg2": "psycopg2-binary",
}  # fmt: skip
"""Packages by the name of the module they bring, where that is another."""


class RequirementsRefused(BaError):
    """A requirements.txt that can't be read as one."""

    kind = "validation_error"


@frozen
class Requirements:
    """``lines``: what its files ask for, included ones too, and the ``packages`` that a call asks for beside them.
    ``key`` changes with any of it and with Python."""

    skill: str
    folder: Path
    lines: tuple[str, ...]
    key: str
    packages: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        return self.folder / FILE

    @property
    def names(self) -> str:
        """The packages, in few words."""
        found = [match[0] for line in self.lines if not line.startswith("-") and (match := _NAME.match(line))]
        more = f" and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
        return (", ".join(found[:MAX_NAMES]) or FILE) + more

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """The lines by which something comes from another place than the person's own index."""
        return tuple(line for line in self.lines if _ELSEWHERE.search(line.split(";")[0]))


def read_requirements(skill: str, folder: Path, packages: Sequence[str] = ()) -> Requirements | None:
    """What the skill in ``folder`` needs, and ``packages``; None when that is nothing. Reads the disk.

    Raises:
        RequirementsRefused: the file is no text, too large, or includes what lies outside the skill; or one of
            ``packages`` is no name of a package with versions.
    """
    if wrong := next((name for name in packages if not _PACKAGE.fullmatch(name)), ""):
        raise RequirementsRefused(f"{clipped(wrong, 80)!r} is no package name.", "Such as requests or pandas>=2.")
    base = Path(os.path.realpath(folder))
    listed = tuple(_lines(base / FILE, base, MAX_DEPTH)) if os.path.lexists(base / FILE) else ()
    lines = (*listed, *packages)
    if not any(not line.startswith("-") for line in lines):
        return None
    version = f"{sys.implementation.cache_tag} {sysconfig.get_platform()}"
    # A line may name a file from the skill's folder, and that may be another one in another folder.
    near = str(base) if any("./" in line or line.startswith("-") for line in lines) else ""
    content = "\n".join((version, near, *lines))
    key = hashlib.sha256(content.encode()).hexdigest()[:24]
    return Requirements(skill, base, lines, key, tuple(packages))


def _lines(file: Path, base: Path, depth: int) -> Iterator[str]:
    real = Path(os.path.realpath(file))
    shown = os.path.relpath(file, base)
    if not real.is_relative_to(base):
        raise RequirementsRefused(f"{shown} points outside the skill's folder.", USABLE)
    if not depth:
        raise RequirementsRefused(f"{shown}: files include each other too deeply.", USABLE)
    try:
        data = read_regular(real, MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise RequirementsRefused(f"{shown} can't be read: {reason}.", USABLE) from error
    if len(data) > MAX_BYTES or "\0" in text:
        raise RequirementsRefused(f"{shown} is not a list of requirements.", USABLE)
    for line in text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
        plain = " ".join(_COMMENT.sub("", line).split())
        if not plain:
            continue
        if include := _INCLUDE.fullmatch(plain):
            yield from _lines(file.parent / include[1], base, depth - 1)
        else:
            yield plain


def find_uv() -> str | None:
    """The program uv: the one beside our interpreter, else the person's own."""
    beside = os.path.join(sysconfig.get_path("scripts"), "uv")  # noqa: PTH118 - a word of a command
    return beside if os.access(beside, os.X_OK) else shutil.which("uv")


class Environments:
    """The environments of skills, all in ``folder``. One is ready once all that it was made for is in it.

    ``uv`` finds that program; without it, Python's own venv and pip do the work.
    """

    def __init__(self, folder: Path, uv: Callable[[], str | None] = find_uv) -> None:
        self.folder = folder
        self._uv = uv

    def place(self, wanted: Requirements) -> Path:
        return self.folder / wanted.key

    def python(self, wanted: Requirements) -> Path | None:
        """The interpreter of the environment; None while there is none that is whole. Reads the disk."""
        python, mark = self._python(wanted), self.place(wanted) / READY
        if not mark.is_file() or not os.access(python, os.X_OK):
            return None
        with suppress(OSError):
            # Its age is the time since it was last wanted.
            mark.touch()
        return python

    def commands(self, wanted: Requirements) -> tuple[tuple[str, ...], ...]:
        """What makes the environment, one program after the other, each in the skill's folder. Reads the disk."""
        place, python = str(self.place(wanted)), str(self._python(wanted))
        what = (*(("-r", str(wanted.file)) if len(wanted.lines) > len(wanted.packages) else ()), *wanted.packages)
        if uv := self._uv():
            make = (uv, "venv", "--quiet", "--no-project", "--allow-existing", "--python", sys.executable, place)
            return make, (uv, "pip", "install", "--python", python, "--link-mode", "copy", *what)
        quiet = ("--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--retries", "1", *what)
        if importlib.util.find_spec("pip") is None:
            make = (sys.executable, "-I", "-m", "venv", place)
            return make, (python, "-I", "-m", "pip", "install", *quiet)
        make = (sys.executable, "-I", "-m", "venv", "--without-pip", place)
        return make, (sys.executable, "-I", "-m", "pip", "--python", python, "install", *quiet)

    def begin(self, wanted: Requirements) -> None:
        """An empty place for it; what was half made before is gone. Raises StorageError."""
        try:
            shutil.rmtree(self.place(wanted), ignore_errors=True)
            self.place(wanted).mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise _unusable(self.place(wanted), error) from error

    def finish(self, wanted: Requirements) -> Path:
        """Say that it is whole; its interpreter. Raises StorageError."""
        content = json.dumps({"skill": wanted.skill, "requirements": wanted.lines}, indent=1)
        try:
            (self.place(wanted) / READY).write_text(content + "\n", "utf-8")
        except OSError as error:
            raise _unusable(self.place(wanted), error) from error
        return self._python(wanted)

    def drop(self, wanted: Requirements) -> None:
        """Remove what was half made."""
        if not (self.place(wanted) / READY).is_file():
            shutil.rmtree(self.place(wanted), ignore_errors=True)

    def tidy(self) -> None:
        """Remove what nobody wanted for a long time, and what was left half made by a program that is gone."""
        for lock in self.folder.glob("*.lock"):
            place = lock.with_suffix("")
            with suppress(OSError), lock.open("rb") as file:
                if not _locked(file.fileno()):
                    continue
                mark = place / READY
                if not mark.is_file() or time.time() - mark.stat().st_mtime > KEPT_SECONDS:
                    shutil.rmtree(place, ignore_errors=True)

    @asynccontextmanager
    async def exclusive(self, wanted: Requirements, waits: Callable[[], None]) -> AsyncGenerator[None]:
        """Only one program at a time makes an environment; ``waits`` is called once when another one does.

        Raises:
            StorageError: the folder can't be made.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.folder / f"{wanted.key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(self.folder, error) from error
        told = False
        try:
            while not _locked(handle):
                if not told:
                    waits()
                told = True
                await asyncio.sleep(POLL_SECONDS)
            yield
        finally:
            os.close(handle)

    def _python(self, wanted: Requirements) -> Path:
        return self.place(wanted) / "bin" / "python"


def why_not(wanted: Requirements, output: str) -> tuple[str, str]:
    """What an installer that failed said, as one sentence, and what a person can do."""
    file = f"{wanted.skill}/{FILE}"
    if refused := _REFUSED.search(output):
        return (
            f"the package index refused access ({refused[1]}), so {wanted.names} could not be installed",
            "Tell the person that their package index needs other credentials.",
        )
    if _OFFLINE.search(output):
        return (
            f"the package index could not be reached, so {wanted.names} could not be installed",
            "Ask the person to go online, or to set their package index; then call again.",
        )
    for pattern in _MISSING:
        if found := pattern.search(output):
            name = match[0] if (match := _NAME.search(found[1])) else FILE
            return (
                f"{name} was not found in the package index, or not for this Python",
                f"Tell the person to correct {file}.",
            )
    if found := _BUILD.search(output):
        return (
            f"{_clean(found[1])} could not be built from its source",
            f"Tell the person that {file} needs a version with a wheel, or a compiler.",
        )
    if _CONFLICT.search(output):
        return f"what {file} asks for contradicts itself", f"Tell the person to correct {file}."
    last = next((_clean(line) for line in reversed(output.splitlines()) if line.strip()), "the installer failed")
    return f"{wanted.names} could not be installed: {last}", f"Tell the person what {file} needs."


def _clean(line: str) -> str:
    text = "".join(char for char in line.strip() if char.isprintable())
    return clipped(text, 200)


def _locked(handle: int) -> bool:
    """Whether we hold the lock now; where a file system knows none, nobody else can hold it either."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _unusable(folder: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{folder} can't be used for the skill's packages: {error.strerror}.",
        "Check its permissions and the free space.",
    )
