"""The one way in for files and texts that enter a request by themselves: instructions, skills, commands, workflows,
definitions of tools, what hooks print.

Which files hold secrets, and how secrets look, is given. What a person names, or a model asks for, tools read.
"""

from __future__ import annotations

import codecs
import errno
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.text.markup import neutralized
from ba_tui.core.text.untrusted import legible, paintable
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.resources import bundled, open_unlinked, user_home

Owner: TypeAlias = Literal["bundled", "user", "project"]
"""Who put a file there: ba itself, the person, or the folder that is worked in."""
Read: TypeAlias = Callable[[Path, int], bytes]
"""The first bytes of a file, so many at most. Raises OSError."""
NO_FILES = ("/proc", "/sys", "/dev")
MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF8)
CODECS = ("utf-32", "utf-32", "utf-16", "utf-16", "utf-8-sig")


class FileRefused(PermissionError):
    """A file that may not enter a request; ``strerror`` says why, to be put after its name."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(errno.EACCES, why, str(path))


@frozen
class Ingress:
    """For the project at ``root``, which is resolved. ``own``: folders of the person's that may lie within it.
    ``secret`` tells whether a resolved path, opened as a file with this status, holds secrets under any name;
    ``mask`` takes secrets out of a text."""

    root: Path
    own: tuple[Path, ...]
    secret: Callable[[Path, os.stat_result], bool]
    mask: Callable[[str], str]

    def raw(self, path: Path, limit: int, owner: Owner | None = None) -> bytes:
        """The first ``limit`` bytes of a file, as they are. ``owner`` by default: whose folder ``path`` names.

        Raises:
            FileRefused: it may not be read for its owner. OSError: it can't be read, or is no regular file.
        """
        owner = owner or self.owner(path)
        # Links first: they alone decide which file is meant, and what stands there afterwards is opened without any.
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
        """The first ``limit`` bytes of a file as a model may read them.

        Raises:
            FileRefused: it may not be read, or is no text. OSError: as ``raw``.
        """
        return self.words(path, self.raw(path, limit, owner))

    def words(self, path: Path, raw: bytes) -> str:
        """The bytes ``raw`` of the file at ``path`` as a model may read them. Raises FileRefused: they are no text."""
        text = _decoded(raw)
        if "\0" in text:
            raise FileRefused(path, "it is not a text file")
        return self.clean(text)

    def refusal(self, path: Path) -> str:
        """Why a file may not be read; empty when it may, or there is none."""
        try:
            self.raw(path, 0)
        except FileRefused as error:
            return str(error.strerror)
        except OSError:
            return ""
        return ""

    def clean(self, text: str) -> str:
        """``text`` as a model may read it: nothing hidden, no secrets, no control markup."""
        return neutralized(self.mask(legible(text)))

    def clean_value(self, value: Any) -> Any:
        """A JSON value with all its strings cleaned, names of fields too."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, dict):
            pairs = cast("dict[Any, Any]", value).items()
            return {self.clean(str(key)): self.clean_value(item) for key, item in pairs}
        if isinstance(value, list | tuple):
            return [self.clean_value(item) for item in cast("list[Any]", value)]
        return value

    def owner(self, path: Path) -> Owner:
        """Whose folder ``path`` names. Links don't matter: who put a link there answers for it."""
        plain = Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed
        if any(plain.is_relative_to(folder) for folder in _shipped()):
            return "bundled"
        inside = plain.is_relative_to(self.root) and not any(map(plain.is_relative_to, self.own))
        return "project" if inside else "user"

    def reader(self, owner: Owner) -> Read:
        """``raw`` for files of one owner."""
        return partial(self.raw, owner=owner)

    def _outside(self, path: Path, real: Path, owner: Owner) -> str:
        if owner == "project" and not real.is_relative_to(self.root):
            return f"{_leads(path, real)} lies outside this project"
        if owner == "user" and any(map(real.is_relative_to, NO_FILES)):
            return f"{_leads(path, real)} is no ordinary file"
        return ""


def within(root: Path) -> Read:
    """Reads regular files of the project at ``root`` alone: for settings, which are data before they are words."""
    return Ingress(Path(os.path.realpath(root)), (), lambda path, status: False, str).reader("project")


def from_home(path: Path) -> str:
    """``path`` from the home folder, with ``~``, where it lies there; else the whole path."""
    home = user_home()
    if home is None or not path.is_relative_to(home) or home == Path("/"):
        return str(path)
    return "~" if path == home else f"~/{path.relative_to(home)}"


def shown(path: Path) -> str:
    """A path for people, on one line: from the home folder where it lies there, bytes that are no text replaced."""
    return one_line(paintable(from_home(path), newlines=False), 300)


def _leads(path: Path, real: Path) -> str:
    """``it``, or where it leads."""
    named = Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed
    return "it" if real == named else f"it leads to {shown(real)}, which"


@cache
def _shipped() -> tuple[Path, ...]:
    return tuple(bundled(name) for name in ("config", "skills"))


def _decoded(raw: bytes) -> str:
    """By its byte order mark; else as UTF-8, with a replacement for what is none."""
    codec = next((codec for mark, codec in zip(MARKS, CODECS, strict=True) if raw.startswith(mark)), "utf-8")
    return raw.decode(codec, "replace")
