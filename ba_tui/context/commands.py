"""Commands that people write as Markdown files: where they are found, what their front matter says.

What one stands for when it is called is made in ``expansion``; nothing is run here.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from ba_tui.context.front_matter import divided
from ba_tui.core.errors import UsageError
from ba_tui.core.messages import clean_text
from ba_tui.core.ports.commands import CommandLine
from ba_tui.core.text import wording
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.ingress import FileRefused, Ingress
from ba_tui.resources import bundled

CommandSource: TypeAlias = Literal["bundled", "user", "project"]
LARGEST = 200_000
MOST = 500
"""Files of one folder that are looked at."""
DEEPEST = 6
PROJECT = (".claude/commands", ".ba/commands")
DESCRIPTION = 200
_TOOL = regex(r"[^\s,()]+(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?")
_CALL = regex(r"/([^\s/]+)(?:\s+(.*))?\Z", re.DOTALL)
_OWN = ("model", "description", "argument-hint", "allowed-tools")


@frozen
class CommandFolder:
    """Where commands lie. ``shown`` is how people call it, ``open`` whether it may be looked into now."""

    path: Path
    source: CommandSource
    shown: str
    open: Callable[[], bool] = lambda: True


@frozen
class CommandFile:
    """One command; ``model`` and ``tools`` are what it wants for its turn, ``digest`` the hash of the file."""

    name: str
    source: CommandSource
    shown: str
    body: str = ""
    description: str = ""
    hint: str = ""
    tools: tuple[str, ...] = ()
    model: str = ""
    trouble: str = ""
    digest: str = ""

    @property
    def line(self) -> CommandLine:
        return CommandLine(self.name, self.source, self.description, self.hint, self.shown, self.trouble)


def folders(home: Path | None, config: Path, root: Path, trusted: Callable[[], bool]) -> list[CommandFolder]:
    """The person's own, then the project's if it is trusted; a later one wins."""
    found = [CommandFolder(config / "commands", "user", _tilde(config / "commands", home))]
    if home:
        found.append(CommandFolder(home / ".claude" / "commands", "user", "~/.claude/commands"))
    return [*found, *(CommandFolder(root / name, "project", name, trusted) for name in PROJECT)]


def own_prompts() -> CommandFolder:
    """The prompts that ba brings; every other folder comes behind it, and wins."""
    return CommandFolder(bundled("config") / "commands", "bundled", "built in")


def _tilde(path: Path, home: Path | None) -> str:
    return f"~/{path.relative_to(home).as_posix()}" if home and path.is_relative_to(home) else str(path)


def called(text: str) -> tuple[str, str] | None:
    """Name and arguments when ``text`` has the form of a command; ``/etc/hosts`` has not."""
    found = _CALL.match(text)
    return (found[1], (found[2] or "").strip()) if found else None


class CommandFiles:
    """All commands of some folders, as far as ``ingress`` lets them be read. What was read once is read again only when
    the file has changed. Any thread."""

    def __init__(self, folders: Sequence[CommandFolder], ingress: Ingress) -> None:
        self._folders = tuple(folders)
        self._ingress = ingress
        self.root = ingress.root
        self._lock = threading.Lock()
        self._read: dict[Path, tuple[tuple[int, ...], CommandFile]] = {}

    def look(self) -> Sequence[CommandFile]:
        """Every command, by name; of those of one name, the one that counts comes first."""
        with self._lock:
            found: dict[str, list[CommandFile]] = {}
            seen: set[str] = set()
            for folder in self._folders:
                real = os.path.realpath(folder.path)
                if real in seen or not folder.path.is_dir() or not folder.open():
                    continue
                seen.add(real)
                for path, names in _below(folder.path):
                    command = self._command(path, ":".join(names), folder)
                    found.setdefault(command.name.casefold(), []).insert(0, command)
            return [command for key in sorted(found) for command in found[key]]

    def lines(self) -> Sequence[CommandLine]:
        """See core.ports.commands.OwnCommands."""
        counting: dict[str, CommandLine] = {}
        for command in self.look():
            counting.setdefault(command.name.casefold(), command.line)
        return tuple(counting.values())

    def find(self, key: str) -> CommandFile | None:
        """By name; ``project:name`` and ``user:name`` say where from, and the last part will do where it is the only
        one."""
        every, key = self.look(), key.casefold()
        source, _, rest = key.partition(":")
        exact = [each for each in every if each.name.casefold() == key]
        named = [each for each in every if each.source == source and each.name.casefold() == rest]
        if exact or named:
            return (exact or named)[0]
        last = {each.name.casefold(): each for each in reversed(every) if each.name.casefold().endswith(f":{key}")}
        return next(iter(last.values())) if len(last) == 1 else None

    def nearest(self, key: str, others: Sequence[str] = ()) -> str:
        """What may have been meant, as a sentence; empty when nothing is near."""
        names = [*(each.name for each in self.look()), *others]
        close = wording.slip(key, names)
        return f"Did you mean /{close}?" if close else ""

    def _command(self, path: Path, name: str, folder: CommandFolder) -> CommandFile:
        shown = f"{folder.shown}/{path.relative_to(folder.path).as_posix()}"
        bare = CommandFile(name, folder.source, shown)
        if not name.isprintable() or re.search(r"[\s/]", name):
            return replace(bare, trouble=f"{shown}: its name has a space or the like, so it can't be typed")
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_nlink)
            known = self._read.get(path)
            if known is None or known[0] != stamp:
                known = (stamp, read_command(bare, self._ingress.raw(path, LARGEST + 1, folder.source)))
                self._read[path] = known
        except FileRefused as error:
            return replace(bare, trouble=f"{shown}: it was not read: {error.strerror}")
        except OSError as error:
            return replace(bare, trouble=f"{shown}: it can't be read: {error.strerror or error}")
        return known[1]


def _below(folder: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Markdown files with the parts of their names; a link to a folder above is not followed again."""
    pending: list[tuple[Path, tuple[str, ...], frozenset[str]]] = [(folder, (), frozenset())]
    count = 0
    while pending:
        here, above, seen = pending.pop(0)
        real = os.path.realpath(here)
        try:
            entries = sorted(here.iterdir()) if real not in seen else []
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                mode = entry.stat().st_mode
            except OSError:
                # A broken link is listed when it is meant as a command, and so is a pipe.
                mode = stat.S_IFREG
            if stat.S_ISDIR(mode):
                if len(above) < DEEPEST:
                    pending.append((entry, (*above, entry.name), seen | {real}))
            elif entry.suffix.lower() == ".md":
                count += 1
                if count > MOST:
                    return
                yield entry, (*above, entry.stem)


def read_command(bare: CommandFile, raw: bytes) -> CommandFile:
    """``bare`` with all that its file says; what is wrong with it is its trouble."""
    digest = hashlib.sha256(raw).hexdigest()[:32]
    if len(raw) > LARGEST:
        return replace(bare, trouble=f"{bare.shown}: it is larger than {LARGEST // 1_000} KB")
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        return replace(bare, trouble=f"{bare.shown}:{line}: it is not UTF-8 text")
    try:
        fields, body = divided(clean_text(text), _OWN)
    except UsageError as error:
        return replace(bare, trouble=f"{bare.shown}:{error}")
    first = next((line.strip("#>-* \t") for line in body.split("\n") if line.strip("#>-* \t")), "")
    if not first:
        return replace(bare, trouble=f"{bare.shown}: there is no prompt in it")
    model = fields.get("model", "")
    return replace(
        bare,
        body=body.strip("\n"),
        description=one_line(fields.get("description") or first, DESCRIPTION),
        hint=" ".join(fields.get("argument-hint", "").split()),
        tools=tuple(dict.fromkeys(_TOOL.findall(fields.get("allowed-tools", "").strip("[]").replace('"', "")))),
        model="" if model in {"inherit", "default"} else model,
        digest=digest,
    )
