"""Reads a skill's requirements.txt and manages the virtual environments, one for each set of requirements.

The tool that runs scripts asks the user and installs the packages.
"""

from __future__ import annotations

import asyncio
import hashlib
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
from ba_tui.shared_files import open_lock_file, take_lock

FILE = "requirements.txt"
MAX_BYTES = 200_000
MAX_DEPTH = 5
POLL_SECONDS = 0.2
MAX_NAMES = 6
READY = "ready.json"
KEPT_SECONDS = 90 * 86_400.0
"""Seconds after which an unused environment is removed."""
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
    r"|connection (?:refused|reset|broken|aborted)|timed out|error sending request|failed to fetch"
    r"|client error \(connect\)|tunnel connection failed|network was disabled",
    re.IGNORECASE,
)
_REFUSED = regex(r"\b(401|403|407)\b[ :]*(?:Unauthorized|Forbidden|Proxy)", re.IGNORECASE)
_MISSING = (
    regex(r"[Bb]ecause (\S+) was not found"),
    regex(r"there (?:is|are) no versions? of (\S+)"),
)
_BUILD = regex(r"(?:Failed to build|Failed to download and build) [`']?([\w.=-]+)")
_CONFLICT = regex(r"conflicting dependencies|No solution found|unsatisfiable", re.IGNORECASE)


DISTRIBUTIONS: Mapping[str, str] = {
    "PIL": "pillow", "cv2": "opencv-python-headless", "yaml": "pyyaml", "docx": "python-docx", "pptx": "python-pptx",
    "bs4": "beautifulsoup4", "sklearn": "scikit-learn", "skimage": "scikit-image", "fitz": "pymupdf", "jwt": "pyjwt",
    "dotenv": "python-dotenv", "dateutil": "python-dateutil", "Crypto": "pycryptodome", "git": "gitpython",
    "google": "google-genai", "googleapiclient": "google-api-python-client", "magic": "python-magic", "attr": "attrs",
    "OpenSSL": "pyopenssl", "serial": "pyserial", "slugify": "python-slugify", "psycopg2": "psycopg2-binary",
}  # fmt: skip
"""Packages by module name, where the names differ."""


class RequirementsRefused(BaError):
    """An invalid requirements.txt."""

    kind = "validation_error"


@frozen
class Requirements:
    """The packages that a skill needs. ``lines``: those of its files, including included ones, and the ``packages``
    of a call. ``key`` changes with them and with Python."""

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
        """Return the packages in a few words."""
        found = [match[0] for line in self.lines if not line.startswith("-") and (match := _NAME.match(line))]
        more = f" and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
        return (", ".join(found[:MAX_NAMES]) or FILE) + more

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Return the lines that install from a place other than the user's index."""
        return tuple(line for line in self.lines if _ELSEWHERE.search(line.split(";")[0]))


def read_requirements(skill: str, folder: Path, packages: Sequence[str] = ()) -> Requirements | None:
    """Return the needs of the skill in ``folder`` and ``packages``; None if there are none. Reads the disk.

    Raises:
        RequirementsRefused: the file is no text, too large, or includes a file outside the skill; or one of
            ``packages`` is no package name with versions.
    """
    if wrong := next((name for name in packages if not _PACKAGE.fullmatch(name)), ""):
        raise RequirementsRefused(f"{clipped(wrong, 80)!r} is no package name.", "Such as requests or pandas>=2.")
    base = Path(os.path.realpath(folder))
    listed = tuple(_lines(base / FILE, base, MAX_DEPTH)) if os.path.lexists(base / FILE) else ()
    lines = (*listed, *packages)
    if not any(not line.startswith("-") for line in lines):
        return None
    version = f"{sys.implementation.cache_tag} {sysconfig.get_platform()}"
    # A line may name a file in the skill's folder, which differs between folders.
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
    """Return the program uv from PATH, else the one that the extra ``skills`` installs; None if there is neither."""
    extra = os.path.join(sysconfig.get_path("scripts"), "uv")  # noqa: PTH118 - a word of a command
    return shutil.which("uv") or (extra if os.access(extra, os.X_OK) else None)


class Environments:
    """The environments of skills, all in ``folder``. An environment is ready when all its packages are installed.

    ``find_uv`` returns the program that installs them.
    """

    def __init__(self, folder: Path, find_uv: Callable[[], str | None] = find_uv) -> None:
        self.folder = folder
        self.find_uv = find_uv

    def place(self, wanted: Requirements) -> Path:
        return self.folder / wanted.key

    def python(self, wanted: Requirements) -> Path | None:
        """Return the interpreter of a complete environment; None if there is none. Reads the disk."""
        python, mark = self._python(wanted), self.place(wanted) / READY
        if not mark.is_file() or not os.access(python, os.X_OK):
            return None
        with suppress(OSError):
            # The modification time is the time of the last use.
            mark.touch()
        return python

    def commands(self, wanted: Requirements, uv: str) -> tuple[tuple[str, ...], ...]:
        """Return the commands that make the environment, in order; each runs in the skill's folder."""
        place, python = str(self.place(wanted)), str(self._python(wanted))
        what = (*(("-r", str(wanted.file)) if len(wanted.lines) > len(wanted.packages) else ()), *wanted.packages)
        make = (uv, "venv", "--quiet", "--no-project", "--allow-existing", "--python", sys.executable, place)
        return make, (uv, "pip", "install", "--python", python, "--link-mode", "copy", *what)

    def begin(self, wanted: Requirements) -> None:
        """Create an empty folder for the environment, removing an incomplete one. Raises StorageError."""
        try:
            shutil.rmtree(self.place(wanted), ignore_errors=True)
            self.place(wanted).mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise _unusable(self.place(wanted), error) from error

    def finish(self, wanted: Requirements) -> Path:
        """Mark the environment as complete and return its interpreter. Raises StorageError."""
        content = json.dumps({"skill": wanted.skill, "requirements": wanted.lines}, indent=1)
        try:
            (self.place(wanted) / READY).write_text(content + "\n", "utf-8")
        except OSError as error:
            raise _unusable(self.place(wanted), error) from error
        return self._python(wanted)

    def drop(self, wanted: Requirements) -> None:
        """Remove an incomplete environment."""
        if not (self.place(wanted) / READY).is_file():
            shutil.rmtree(self.place(wanted), ignore_errors=True)

    def tidy(self) -> None:
        """Remove environments that were long unused, and incomplete ones of killed programs."""
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
        """Lock the environment, so that only one program makes it. ``waits`` is called once if another one holds the
        lock.

        Raises:
            StorageError: the folder can't be made.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = open_lock_file(self.folder / f"{wanted.key}.lock")
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
    """Return the reason of a failed installation as one sentence, and what to do."""
    file = f"{wanted.skill}/{FILE}"
    if refused := _REFUSED.search(output):
        return (
            f"the package index refused access ({refused[1]}), so {wanted.names} could not be installed",
            "Tell the user that their package index needs other credentials.",
        )
    if _OFFLINE.search(output):
        return (
            f"the package index could not be reached, so {wanted.names} could not be installed",
            "Ask the user to go online, or to set their package index; then call again.",
        )
    for pattern in _MISSING:
        if found := pattern.search(output):
            name = match[0] if (match := _NAME.search(found[1])) else FILE
            return (
                f"{name} was not found in the package index, or not for this Python",
                f"Tell the user to correct {file}.",
            )
    if found := _BUILD.search(output):
        return (
            f"{_clean(found[1])} could not be built from its source",
            f"Tell the user that {file} needs a version with a wheel, or a compiler.",
        )
    if _CONFLICT.search(output):
        return f"what {file} asks for contradicts itself", f"Tell the user to correct {file}."
    last = next((_clean(line) for line in reversed(output.splitlines()) if line.strip()), "the installer failed")
    return f"{wanted.names} could not be installed: {last}", f"Tell the user what {file} needs."


def _clean(line: str) -> str:
    text = "".join(char for char in line.strip() if char.isprintable())
    return clipped(text, 200)


def _locked(handle: int) -> bool:
    """Return whether we have the lock; always true on file systems without locks."""
    try:
        return take_lock(handle)
    except OSError:
        return True


def _unusable(folder: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{folder} can't be used for the skill's packages: {error.strerror}.",
        "Check its permissions and the free space.",
    )
