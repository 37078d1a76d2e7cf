"""Commands that users write as Markdown files: their folders and fields. ``own_commands`` expands and runs them."""

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

from ba_tui.core.messages import clean_text
from ba_tui.core.ports.context import CommandLine
from ba_tui.core.text import wording
from ba_tui.core.text.front_matter import read_plain_fields
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.ingress import FileRefused, Ingress
from ba_tui.resources import bundled
from ba_tui.settings.plugins import Plugin, home_path
from ba_tui.settings.tool_names import FIELDS as TOOLS
from ba_tui.settings.tool_names import tools_in

CommandSource: TypeAlias = Literal["bundled", "user", "project"]
LARGEST = 200_000
MOST = 500
"""Files of one folder that are read."""
DEEPEST = 6
PROJECT = (".claude/commands", ".ba/commands")
DESCRIPTION = 200
_CALL = regex(r"/([^\s/]+)(?:\s+(.*))?\Z", re.DOTALL)
CODEX = "prompts"
"""Codex's prefix of prompts: ``/prompts:name``."""
_HINTS = ("argument-hint", "argument_hint")
_OWN = ("model", "description", "user-invocable", *_HINTS, *TOOLS)
_IGNORED = frozenset({"agent", "context", "subtask", "hooks", "temperature", "disallowed-tools"})
"""Fields that have an effect in other programs and none in ba."""
_PLUGIN = ("${CLAUDE_PLUGIN_ROOT}", "$CLAUDE_PLUGIN_ROOT")


@frozen
class CommandFolder:
    """A folder of commands, or one file. ``shown``: its name for users; ``open``: whether it may be read now.
    ``prefix``: the prefix of all names; ``plugin``: the folder of its plugin; ``codex``: these are prompts of Codex,
    without subfolders."""

    path: Path
    source: CommandSource
    shown: str
    open: Callable[[], bool] = lambda: True
    prefix: tuple[str, ...] = ()
    plugin: Path | None = None
    codex: bool = False


@frozen
class CommandFile:
    """One command. ``model`` and ``tools``: its wishes for its turn; ``digest``: the hash of the file. ``codex``: its
    text is a prompt of Codex. ``ignored``: fields without effect in ba."""

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
    codex: bool = False
    ignored: tuple[str, ...] = ()

    @property
    def line(self) -> CommandLine:
        return CommandLine(self.name, self.source, self.description, self.hint, self.shown, self.trouble)


def folders(
    home: Path | None, config: Path, root: Path, trusted: Callable[[], bool], plugins: Sequence[Plugin] = ()
) -> list[CommandFolder]:
    """Return the folders of plugins, then the user's, then those of a trusted project; a later one wins."""
    found = [
        CommandFolder(
            path,
            plugin.source,
            f"{plugin.shown}/{os.path.relpath(path, os.path.realpath(plugin.folder))}",
            plugin.open,
            (plugin.name,),
            Path(os.path.realpath(plugin.folder)),
        )
        for plugin in plugins
        for path in plugin.commands
    ]
    found.append(CommandFolder(config / "commands", "user", home_path(config / "commands", home)))
    if home:
        prompts = Path(os.environ.get("CODEX_HOME") or home / ".codex") / "prompts"
        found.append(CommandFolder(prompts, "user", home_path(prompts, home), codex=True))
        found.append(CommandFolder(home / ".claude" / "commands", "user", "~/.claude/commands"))
    return [*found, *(CommandFolder(root / name, "project", name, trusted) for name in PROJECT)]


def own_prompts() -> CommandFolder:
    """Return the prompts that ship with ba; every other folder wins over it."""
    return CommandFolder(bundled("config") / "commands", "bundled", "built in")


def parse_call(text: str) -> tuple[str, str] | None:
    """Return name and arguments of a command, or None; ``/etc/hosts`` is none."""
    found = _CALL.match(text)
    return (found[1], (found[2] or "").strip()) if found else None


class CommandFiles:
    """All commands of some folders that ``ingress`` allows to read. A file is read again only after it has changed.
    Safe to call from any thread."""

    def __init__(self, folders: Sequence[CommandFolder], ingress: Ingress) -> None:
        self._folders = tuple(folders)
        self._ingress = ingress
        self.root = ingress.root
        self._lock = threading.Lock()
        self._read: dict[Path, tuple[tuple[int, ...], CommandFile]] = {}

    def look(self) -> Sequence[CommandFile]:
        """Return all commands by name; of several with one name the effective one is first."""
        with self._lock:
            found: dict[str, list[CommandFile]] = {}
            seen: set[str] = set()
            for folder in self._folders:
                real = os.path.realpath(folder.path)
                if real in seen or not folder.path.exists() or not folder.open():
                    continue
                seen.add(real)
                for path, names in _below(folder.path, 0 if folder.codex else DEEPEST):
                    command = self._command(path, ":".join((*folder.prefix, *names)), folder)
                    found.setdefault(command.name.casefold(), []).insert(0, command)
            return [command for key in sorted(found) for command in found[key]]

    def lines(self) -> Sequence[CommandLine]:
        counting: dict[str, CommandLine] = {}
        for command in self.look():
            counting.setdefault(command.name.casefold(), command.line)
        return tuple(counting.values())

    def find(self, key: str) -> CommandFile | None:
        """Return a command by name, by ``project:name`` or ``user:name``, or by its last part when that is unique."""
        every, key = self.look(), key.casefold()
        source, _, rest = key.partition(":")
        exact = [each for each in every if each.name.casefold() == key]
        named = [
            each
            for each in every
            if (each.source == source or (each.codex and source == CODEX)) and each.name.casefold() == rest
        ]
        if exact or named:
            return (exact or named)[0]
        last = {each.name.casefold(): each for each in reversed(every) if each.name.casefold().endswith(f":{key}")}
        return next(iter(last.values())) if len(last) == 1 else None

    def nearest(self, key: str, others: Sequence[str] = ()) -> str:
        """Return a sentence with similar names; empty without any."""
        names = [*(each.name for each in self.look()), *others]
        close = wording.slip(key, names)
        return f"Did you mean /{close}?" if close else ""

    def _command(self, path: Path, name: str, folder: CommandFolder) -> CommandFile:
        shown = f"{folder.shown}/{path.relative_to(folder.path).as_posix()}".removesuffix("/.")
        bare = CommandFile(name, folder.source, shown, codex=folder.codex)
        if not name.isprintable() or re.search(r"[\s/]", name):
            return replace(bare, trouble=f"{shown}: its name has a space or the like, so it can't be typed")
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_nlink)
            known = self._read.get(path)
            if known is None or known[0] != stamp:
                raw = self._ingress.raw(path, LARGEST + 1, folder.source)
                known = (stamp, read_command(bare, raw, folder.plugin))
                self._read[path] = known
        except FileRefused as error:
            return replace(bare, trouble=f"{shown}: it was not read: {error.strerror}")
        except OSError as error:
            return replace(bare, trouble=f"{shown}: it can't be read: {error.strerror or error}")
        return known[1]


def _below(folder: Path, deepest: int) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Return Markdown files with the parts of their names; a link to a folder above is not followed."""
    if folder.is_file():
        yield folder, (folder.stem,)
        return
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
                # A broken link with the name of a command is listed, and so is a pipe.
                mode = stat.S_IFREG
            if stat.S_ISDIR(mode):
                if len(above) < deepest:
                    pending.append((entry, (*above, entry.name), seen | {real}))
            elif entry.suffix.lower() == ".md":
                count += 1
                if count > MOST:
                    return
                yield entry, (*above, entry.stem)


def read_command(bare: CommandFile, raw: bytes, plugin: Path | None = None) -> CommandFile:
    """Return ``bare`` with the content of its file, of the plugin in that folder; errors are in its ``trouble``."""
    digest = hashlib.sha256(raw).hexdigest()[:32]
    if len(raw) > LARGEST:
        return replace(bare, trouble=f"{bare.shown}: it is larger than {LARGEST // 1_000} KB")
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        return replace(bare, trouble=f"{bare.shown}:{line}: it is not UTF-8 text")
    for spelling in _PLUGIN if plugin else ():
        text = text.replace(spelling, str(plugin))
    try:
        fields, body = read_plain_fields(clean_text(text), _OWN)
    except ValueError as error:
        return replace(bare, trouble=f"{bare.shown}:{error}")
    first = next((line.strip("#>-* \t") for line in body.split("\n") if line.strip("#>-* \t")), "")
    if not first:
        return replace(bare, trouble=f"{bare.shown}: there is no prompt in it")
    if fields.get("user-invocable", "").lower() in {"false", "no"}:
        why = "user-invocable is false, so only models may start it, and they start no commands here"
        return replace(bare, trouble=f"{bare.shown}: {why}")
    model = fields.get("model", "")
    hint = next((fields[name] for name in _HINTS if name in fields), "")
    return replace(
        bare,
        body=body.strip("\n"),
        description=one_line(fields.get("description") or first, DESCRIPTION),
        hint=" ".join(hint.split()),
        tools=() if bare.codex else tools_in(fields),
        model="" if model in {"inherit", "default"} else model,
        digest=digest,
        ignored=tuple(sorted(_IGNORED.intersection(fields))),
    )
