"""Check files and texts that enter requests without a tool call: instructions, skills, commands, workflows, tool
definitions, output of hooks.

Callers provide the rules for secrets. Tools read the files that users name or models request.
"""

from __future__ import annotations

import codecs
import errno
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.text.untrusted import legible, neutralized, paintable
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.resources import bundled, open_unlinked, user_home

Owner: TypeAlias = Literal["bundled", "user", "project"]
"""Who provided a file: ba itself, the user, or the project."""
Read: TypeAlias = Callable[[Path, int], bytes]
"""Returns the first bytes of a file, up to a limit. Raises OSError."""
NO_FILES = ("/proc", "/sys", "/dev")
MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF8)
CODECS = ("utf-32", "utf-32", "utf-16", "utf-16", "utf-8-sig")


class FileRefused(PermissionError):
    """A file that may not enter a request; ``strerror`` is the reason, to follow its name."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(errno.EACCES, why, str(path))


@frozen
class Ingress:
    """Checks for the project at ``root`` (a resolved path). ``own``: folders of the user that may be inside it.
    ``secret`` returns whether a resolved path, opened as a file with this status, contains secrets under any name;
    ``mask`` removes secrets from a text."""

    root: Path
    own: tuple[Path, ...]
    secret: Callable[[Path, os.stat_result], bool]
    mask: Callable[[str], str]

    def raw(self, path: Path, limit: int, owner: Owner | None = None) -> bytes:
        """Return the first ``limit`` bytes of a file. ``owner`` defaults to the owner of the folder in ``path``.

        Raises:
            FileRefused: its owner may not provide it. OSError: it is unreadable, or not a regular file.
        """
        owner = owner or self.owner(path)
        # Resolve links once, then open the result without following links, so that the checked file is the opened one.
        real = Path(os.path.realpath(path))
        if why := self._outside(path, real, owner):
            raise FileRefused(path, why)
        with open_unlinked(real) as file:
            status = os.fstat(file.fileno())
            if owner == "user" and status.st_uid not in {os.geteuid(), 0}:
                raise FileRefused(path, f"{_leads(path, real)} belongs to another user")
            named = Path(os.path.abspath(path))  # noqa: PTH100 - as it is named, links not followed
            if owner != "bundled" and (self.secret(real, status) or self.secret(named, status)):
                raise FileRefused(path, f"{_leads(path, real)} holds secrets")
            return file.read(limit)

    def text(self, path: Path, limit: int, owner: Owner | None = None) -> str:
        """Return the first ``limit`` bytes of a file as clean text for a model.

        Raises:
            FileRefused: it may not be read, or is not text. OSError: as ``raw``.
        """
        return self.words(path, self.raw(path, limit, owner))

    def words(self, path: Path, raw: bytes) -> str:
        """Return the bytes ``raw`` of a file as clean text for a model. Raises FileRefused if they are not text."""
        text = _decoded(raw)
        if "\0" in text:
            raise FileRefused(path, "it is not a text file")
        return self.clean(text)

    def refusal(self, path: Path) -> str:
        """Return why a file may not be read; empty if it may, or does not exist."""
        try:
            self.raw(path, 0)
        except FileRefused as error:
            return str(error.strerror)
        except OSError:
            return ""
        return ""

    def clean(self, text: str) -> str:
        """Return ``text`` for a model: without hidden characters, secrets and control markup."""
        return neutralized(self.mask(legible(text)))

    def clean_value(self, value: Any) -> Any:
        """Return a JSON value with all its strings cleaned, including field names."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, dict):
            pairs = cast("dict[Any, Any]", value).items()
            return {self.clean(str(key)): self.clean_value(item) for key, item in pairs}
        if isinstance(value, list | tuple):
            return [self.clean_value(item) for item in cast("list[Any]", value)]
        return value

    def owner(self, path: Path) -> Owner:
        """Return the owner of the folder in ``path``. Links are not followed: the owner of a link is responsible for
        it."""
        plain = Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed
        if any(plain.is_relative_to(folder) for folder in _shipped()):
            return "bundled"
        inside = plain.is_relative_to(self.root) and not any(map(plain.is_relative_to, self.own))
        return "project" if inside else "user"

    def reader(self, owner: Owner) -> Read:
        """Return ``raw`` bound to one owner."""
        return partial(self.raw, owner=owner)

    def _outside(self, path: Path, real: Path, owner: Owner) -> str:
        if owner == "project" and not real.is_relative_to(self.root):
            return f"{_leads(path, real)} lies outside this project"
        if owner == "user" and any(map(real.is_relative_to, NO_FILES)):
            return f"{_leads(path, real)} is no ordinary file"
        return ""


def within(root: Path) -> Read:
    """Return a reader for regular files inside ``root``, for settings, which are not cleaned."""
    return Ingress(Path(os.path.realpath(root)), (), lambda path, status: False, str).reader("project")


def from_home(path: Path) -> str:
    """Return ``path`` relative to the home folder, with ``~``, if it is inside; otherwise the whole path."""
    home = user_home()
    if home is None or not path.is_relative_to(home) or home == Path("/"):
        return str(path)
    return "~" if path == home else f"~/{path.relative_to(home)}"


def shown(path: Path) -> str:
    """Return a path for people on one line, relative to the home folder if possible, with invalid bytes replaced."""
    return one_line(paintable(from_home(path), newlines=False), 300)


def _leads(path: Path, real: Path) -> str:
    """Return ``it``, or the target of a link."""
    named = Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed
    return "it" if real == named else f"it leads to {shown(real)}, which"


@cache
def _shipped() -> tuple[Path, ...]:
    return tuple(bundled(name) for name in ("config", "skills"))


def _decoded(raw: bytes) -> str:
    """Decode by the byte order mark, or else as UTF-8 with replacement characters."""
    codec = next((codec for mark, codec in zip(MARKS, CODECS, strict=True) if raw.startswith(mark)), "utf-8")
    return raw.decode(codec, "replace")
