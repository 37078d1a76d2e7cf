"""The files of a folder that run, or decide what runs, once the folder is trusted; and copies of them to show changes.

``grants`` decides whether a folder is trusted. Nothing is loaded or run here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.ports.permissions import TrustedItems
from ba_tui.core.results import Diff
from ba_tui.core.text.json_text import read_jsonc, read_object
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen, late
from ba_tui.ingress import shown
from ba_tui.permissions.paths import is_secret
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.resources import folder_slug, read_regular, save_whole
from ba_tui.settings.claude_files import STRICT, parse_claude
from ba_tui.settings.document import parse_document
from ba_tui.settings.environment import holds_key, starts
from ba_tui.settings.layers import leaves
from ba_tui.settings.setters import open_to_anyone

if TYPE_CHECKING:
    from ba_tui.settings.sections.tools import ServerSettings

# Needed only for a project with MCP servers.
parse_servers = late("ba_tui.settings.mcp_files:parse_servers")
given_variables, target = (late(f"ba_tui.settings.mcp_servers:{name}") for name in ("given_variables", "target"))

MOST_OF_FILE = 200_000
MOST_OF_ALL = 4_000_000
LONGEST = 16_000_000
LARGE = "({size} bytes: too large to be shown here)\n"
BINARY = "(no text: {size} bytes, SHA-256 {digest})\n"


@frozen
class Copy:
    """A file's earlier state; ``text`` is None if it was too large to keep."""

    digest: str
    text: str | None


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class TrustedCopies:
    """Copies of trusted folders' files, one file per folder, to show later what changed. They decide nothing.

    They are private to the user and limited in size.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, root: Path, fingerprint: str, contents: Mapping[str, bytes]) -> None:
        """Store the contents of a folder. Raises StorageError."""
        left = MOST_OF_ALL
        files: dict[str, dict[str, Any]] = {}
        for name, content in contents.items():
            kept = len(content) <= min(left, MOST_OF_FILE)
            left -= len(content) if kept else 0
            files[name] = {"digest": digest(content), "text": shown_content(content) if kept else None}
        record = {"root": str(root), "fingerprint": fingerprint, "files": files}
        save_whole(self._file(root), json.dumps(record), mode=0o600)

    def read(self, root: Path, fingerprint: str) -> dict[str, Copy]:
        """Return the copies kept with ``fingerprint``; empty if none are or they can't be read."""
        try:
            known = read_object(read_regular(self._file(root), LONGEST)) or {}
        except OSError:
            return {}
        if (known.get("root"), known.get("fingerprint")) != (str(root), fingerprint):
            return {}
        files: dict[str, Copy] = {}
        for name, each in cast("dict[str, Any]", known.get("files") or {}).items():
            match each:
                case {"digest": str(digest), "text": str() | None as text}:
                    files[name] = Copy(digest, text)
                case _:
                    return {}
        return files

    def drop(self, root: Path) -> None:
        """Delete the copies of a folder. Raises StorageError."""
        file = self._file(root)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            text = f"{root} is not trusted any more, but {file} cannot be deleted: {error.strerror or error}."
            raise StorageError(text, "It contains copies of the folder's tools and settings: delete it.") from error

    def _file(self, root: Path) -> Path:
        return self._folder / f"{folder_slug(root)}.json"


def differences(contents: Mapping[str, bytes], before: Mapping[str, Copy]) -> tuple[tuple[Diff, ...], tuple[str, ...]]:
    """Return every file that is new or changed since ``before``, and the names of deleted files."""
    changed: list[Diff] = []
    left = MOST_OF_ALL
    for name, content in contents.items():
        old = before.get(name)
        if old and old.digest == digest(content):
            continue
        fits = len(content) <= min(left, MOST_OF_FILE)
        left -= len(content) if fits else 0
        now = shown_content(content) if fits else LARGE.format(size=len(content))
        was = None if old is None else "(no copy was kept)\n" if old.text is None else old.text
        changed.append(Diff(name, was, now))
    gone = tuple(name for name in before if name not in contents)
    changed += [Diff(name, before[name].text or "(no copy was kept)\n", "") for name in gone]
    return tuple(changed), gone


def shown_content(content: bytes) -> str:
    """Return content as text with Unix line ends; binary content as its size and digest."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return BINARY.format(size=len(content), digest=digest(content))
    if "\0" in text:
        return BINARY.format(size=len(content), digest=digest(content))
    return text.replace("\r\n", "\n")


PARTS: Mapping[str, Sequence[str]] = {
    "hooks": (
        *(".ba/hooks", ".ba/hooks.yaml", ".ba/hooks.json"),
        *(".claude/settings.json", ".claude/settings.local.json"),
    ),
    "tools": (".ba/tools", ".ba/tools.yaml"),
    "MCP servers": (".mcp.json",),
    "workflows": (".ba/workflows",),
    "skills": (".ba/skills", ".ba/skills.yaml", ".agents/skills", ".claude/skills"),
    "commands": (".ba/commands", ".claude/commands"),
    "plugins": (".ba/plugins", ".claude/plugins"),
    "agents": (
        *(".ba/agents", ".claude/agents", ".opencode/agent", ".opencode/agents"),
        *(".codex/agents", "plugins/*/agents/*.md"),
    ),
    "roles": (".ba/roles",),
    "metrics": (".ba/metrics",),
    "token counts": (".ba/token_encoders.yaml",),
    "settings": (".ba/config.yaml", ".ba/config.local.yaml"),
}
"""Files and folders below the project's root that ba, or what it supports of other assistants, reads, by kind. ``*``
stands for any name."""
CLAUDE_SETTINGS = ".claude/settings"
"""Prefix of Claude Code's settings files."""
CLAUDE_KEYS = ("hooks", "disableAllHooks", "permissions", "env")
"""Their keys that could loosen or run something in a trusted project."""
_NAMING = ("hooks", "MCP servers", "settings")
"""Kinds whose files contain commands."""
MOST_FILES = 2_000
MOST_BYTES = 50_000_000
SHOWN = 60


@frozen
class TrustFile:
    """A file that trust covers.

    ``name``: its path below the root. ``part``: its entry in PARTS; empty if a command in such a file names it.
    ``target``: where its links lead; None without links.
    """

    kind: str
    part: str
    name: str
    path: Path
    target: Path | None = None

    def link(self, root: Path) -> str:
        """Return where it leads, for display; empty if it is no link."""
        if self.target is None:
            return ""
        inside = self.target.is_relative_to(root)
        where = self.target.relative_to(root).as_posix() if inside else shown(self.target)
        about = ", which holds secrets" if self._secret else "" if inside else ", outside this project"
        return f"{self.name} → {where}{about}"

    def content(self) -> bytes:
        """Return the content that trust covers.

        Of settings, only those that could loosen or run something; of secrets, a hash; empty if nothing is covered.

        Raises:
            OSError: the file can't be read.
        """
        raw = read_regular(self.path, MOST_BYTES + 1)
        if self._secret:
            return f"(secret: SHA-256 {digest(raw)})\n".encode()
        if not self.part:
            return raw
        if self.kind == "settings":
            return _settings(self.path, raw)
        return _claude(self.path, raw) if self.part.startswith(CLAUDE_SETTINGS) else raw

    @property
    def _secret(self) -> bool:
        return is_secret(self.path) or (self.target is not None and is_secret(self.target))


def found_in(root: Path, own: Path) -> list[TrustFile]:
    """Return the files of ``root`` that trust covers, by kind and name, including files that their commands name.

    Links are followed. Files in ``own``, the user's config folder, and compiled files are left out.

    Raises:
        UsageError: there are more files than a user could review.
    """
    found: list[TrustFile] = []

    @cache
    def real(folder: str) -> str:
        # Start from the resolved parent: resolving every path from / takes ten times as long.
        above, _, name = folder.rpartition("/")
        if not folder.startswith(f"{root}/") or os.path.islink(folder):  # noqa: PTH114 - for hundreds of folders
            return os.path.realpath(folder)
        return f"{real(above).rstrip('/')}/{name}"

    size = 0
    skipped = ".ba/" if os.path.realpath(root / ".ba") == os.path.realpath(own) else "\0"
    for kind, parts in PARTS.items():
        for part in parts:
            if part.startswith(skipped):
                continue
            for file in _meant(root, part):
                found.append(_found(kind, part, file, (root, real)))
                size += file.stat().st_size
                _check(root, len(found), size)
    known = {each.name for each in found}
    for each in [each for each in found if each.kind in _NAMING]:
        for file in named_in(root, each.path):
            if file.relative_to(root).as_posix() not in known:
                kind = "hooks" if each.kind == "settings" else each.kind
                found.append(_found(kind, "", file, (root, real)))
                known.add(found[-1].name)
                size += file.stat().st_size
                _check(root, len(found), size)
    kinds = list(PARTS)
    return sorted(found, key=lambda each: (kinds.index(each.kind), os.fsencode(each.name)))


def _found(kind: str, part: str, path: Path, where: tuple[Path, Callable[[str], str]]) -> TrustFile:
    """Return one file. ``where``: the root, and a cached function that resolves a folder's links."""
    root, real = where
    # Use text: a start checks hundreds of files, a dozen times.
    text = str(path)
    folder, _, name = text.rpartition("/")
    target = os.path.realpath(text) if path.is_symlink() else f"{real(folder).rstrip('/')}/{name}"
    below = text.removeprefix(f"{str(root).rstrip('/')}/")
    return TrustFile(kind, part, below, path, None if target == text else Path(target))


def _check(root: Path, count: int, size: int) -> None:
    if count > MOST_FILES or size > MOST_BYTES:
        raise UsageError(
            f"{root} holds more than {MOST_FILES} files or {MOST_BYTES // 1_000_000} MB of tools, skills and the like.",
            "Move data out of these folders, so that you can review what you trust.",
        )


def held(files: Sequence[TrustFile], contents: Mapping[str, bytes]) -> tuple[TrustedItems, ...]:
    """Return the contents of the files by kind, under their usual names. Files without covered content are left out."""
    kinds: dict[str, dict[str, None]] = {kind: {} for kind in PARTS}
    for file in files:
        content = contents[file.name]
        if content and file.part.startswith(CLAUDE_SETTINGS):
            for kind, name in _claude_kinds(content):
                kinds[kind][name] = None
        elif content:
            kinds[file.kind].update(dict.fromkeys(_names(file, content)))
    return tuple(TrustedItems(kind, tuple(names)) for kind, names in kinds.items() if names)


def links(files: Sequence[TrustFile], root: Path) -> tuple[str, ...]:
    """Return the files that are links or behind links, with their targets, for display."""
    return tuple(link for file in files if (link := file.link(root)))


def _names(file: TrustFile, content: bytes) -> Sequence[str]:
    below = file.name.removeprefix(file.part).lstrip("/")
    if not file.part:
        return [file.name]
    if file.kind == "settings":
        return _told(content)
    if file.kind == "MCP servers":
        return _servers(file.name, content)
    if file.name.endswith(".json"):
        data = _json(content) or {}
        inner = data.get("hooks", data)
        names = [str(key) for key in cast("Mapping[str, Any]", inner)] if isinstance(inner, dict) else []
        return names or [file.name]
    if file.kind in {"skills", "plugins"}:
        return [below.partition("/")[0] or file.name]
    return [below or file.name]


def _servers(name: str, content: bytes) -> list[str]:
    """Return each server with its command line or address, which is what would run."""
    file = parse_servers(name, content.decode("utf-8-sig", "replace"))
    if file.problem:
        return [f"{name}, which can't be understood"]
    said = ((each.name, each.entry.settings) for each in file.entries)
    # Show the whole line: its end may matter most.
    return [f"{server}: {redact(_server(settings)) if settings else 'not usable'}" for server, settings in said]


def _server(settings: ServerSettings) -> str:
    """Return the command line or address, and the variables passed to it."""
    names = given_variables(settings)
    return f"{target(settings)} (variables: {', '.join(names)})" if names else target(settings)


def _told(content: bytes) -> list[str]:
    """Return settings as ``permissions.allow: shell(make)``, each short enough for a line."""
    document = parse_document(Path(), content.decode("utf-8", "replace"))
    if document.problems:
        return ["a file that can't be understood"]
    lines: list[str] = []
    for key, value in leaves(document.data).items():
        items = cast("list[Any]", value) if isinstance(value, list) else [value]
        text = ", ".join(item if isinstance(item, str) else json.dumps(item, default=str) for item in items)
        lines.append(f"{key}: {clipped(text, SHOWN)}")
    return lines


def _settings(path: Path, raw: bytes) -> bytes:
    document = parse_document(path, raw.decode("utf-8-sig", "replace"))
    if document.broken:
        return raw
    rest = {key: value for key, value in document.data.items() if not open_to_anyone(key)}
    return yaml.safe_dump(rest, allow_unicode=True, sort_keys=False).encode() if rest else b""


def _claude(path: Path, raw: bytes) -> bytes:
    """Return the part of a Claude Code settings file that could loosen or run something."""
    file = parse_claude(path, raw)
    if file.problem:
        return raw.strip()
    counted = {key: value for key, value in file.data.items() if key in CLAUDE_KEYS and value}
    if isinstance(env := counted.get("env"), dict):
        # Keys are never read from there, so they need no review.
        counted["env"] = {k: v for k, v in cast("dict[str, Any]", env).items() if not holds_key(k)}
    return json.dumps(counted, indent=2, ensure_ascii=False).encode() if counted else b""


def _claude_kinds(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the kind and name of each item in a Claude Code settings file."""
    data = _json(content)
    if data is None:
        yield "settings", "a file that can't be understood"
        return
    for key, value in data.items():
        entries = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if key == "hooks":
            yield from (("hooks", str(event)) for event in entries)
        elif key == "permissions":
            for name, items in entries.items():
                texts = cast("list[Any]", items) if isinstance(items, list) else [items]
                # Folders and modes that ask less are ignored in a project.
                counts = name in {*STRICT, "allow"} or items == "plan"
                yield from (("settings", redact(f"{name} {_short(text)}")) for text in texts if counts)
        elif entries:
            counted = ((name, item) for name, item in entries.items() if not starts(name))
            yield from (("settings", redact(f"{key} {name}={_short(item)}")) for name, item in counted)
        else:
            yield "settings", f"{key}: {_short(value)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return clipped(text, SHOWN)


def _json(raw: bytes) -> dict[str, Any] | None:
    try:
        data: Any = read_jsonc(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", data) if isinstance(data, dict) else None


def _meant(root: Path, part: str) -> Iterator[Path]:
    if "*" not in part:
        yield from _files(root / part)
        return
    for path in sorted(root.glob(part)):
        yield from _files(path)


def _files(path: Path) -> Iterator[Path]:
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if stat.S_ISREG(mode):
        yield path
    elif stat.S_ISDIR(mode):
        yield from _below(path, set())


def _below(folder: Path, above: set[tuple[int, int]]) -> Iterator[Path]:
    """Yield regular files, following links except to a parent folder."""
    try:
        status = folder.stat()
        entries = sorted(folder.iterdir())
    except OSError:
        return
    same = (status.st_dev, status.st_ino)
    if same in above:
        return
    for entry in entries:
        try:
            mode = entry.stat().st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode) and entry.name != "__pycache__":
            yield from _below(entry, above | {same})
        elif stat.S_ISREG(mode):
            yield entry


LARGEST = 1_000_000
MOST_WORDS = 500
MOST_MATCHES = 100

_FORMATS = (".json", ".yaml", ".yml")
_SAID = frozenset({"command", "args"})
_FOLDER = regex(
    r"[\"']?(?:\$\{?(?:CLAUDE_PROJECT_DIR|BA_PROJECT_DIR|PWD)\b[^}/\s\"']*\}?|\$\(pwd\)"
    r"|\$\(git rev-parse --show-toplevel\))[\"']?"
)
_BREAKS = regex(r"[\s'\"`;|&()<>=,]+")
_RECIPES = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
}
"""Files in which programs look up a word."""
_STARTS = ("__main__.py", "index.js", "index.mjs", "index.cjs", "index.ts")


def named_in(root: Path, file: Path) -> Iterator[Path]:
    """Yield the files below ``root`` that the commands in ``file`` name, relative to ``root``. Nothing is run."""
    try:
        raw = read_regular(file, LARGEST + 1) if file.suffix in _FORMATS else b""
    except OSError:
        return
    if len(raw) > LARGEST:
        return
    yield from named_by(root, _commands(raw, file.suffix == ".json"))


def named_by(root: Path, commands: Iterable[str]) -> Iterator[Path]:
    """Yield the files below ``root`` that ``commands`` name, relative to ``root``. Files loaded by those files are not
    found."""
    found = [word for command in commands for word in _words(command)]
    words = list(dict.fromkeys(found))[:MOST_WORDS]
    folders = [root, *(folder for word in words if (folder := root / word) != root and _is_folder(folder))]
    for word in words:
        for name in (word, *_RECIPES.get(word, ()), *_module(word)):
            for folder in folders:
                yield from (each for each in _lying(folder, name) if each.is_relative_to(root))


@lru_cache(maxsize=32)
def _commands(raw: bytes, is_json: bool) -> Sequence[str]:
    """Return the values of ``command`` and ``args`` at any depth."""
    try:
        data: Any = read_jsonc(raw.decode("utf-8", "replace")) if is_json else yaml.safe_load(raw)
    except (ValueError, RecursionError, yaml.YAMLError):
        return ()
    with suppress(RecursionError):
        return tuple(_said(data, said=False))
    return ()


def _said(value: Any, *, said: bool) -> Iterator[str]:
    if isinstance(value, str) and said:
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _said(item, said=said)
    elif isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            yield from _said(item, said=key in _SAID)


def _words(command: str) -> Iterator[str]:
    """Yield words and pieces of words, without the project's folder in front."""
    text = _FOLDER.sub(".", command)
    try:
        whole = shlex.split(text)
    except ValueError:
        whole = []
    yield from (word for word in (*whole, *_BREAKS.split(text)) if word and "\0" not in word)


def _module(word: str) -> Iterator[str]:
    """Yield the files that ``python -m`` runs for a name."""
    if re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", word):
        path = word.replace(".", "/")
        yield f"{path}.py"
        yield f"{path}/__main__.py"


def _lying(folder: Path, name: str) -> Iterator[Path]:
    try:
        if re.search(r"[*?\[]", name) and not name.startswith("/"):
            yield from islice((each for each in folder.glob(name) if each.is_file()), MOST_MATCHES)
            return
        path = Path(os.path.normpath(folder / name))
        if path.is_file():
            yield path
        elif _is_folder(path) and path != folder:
            yield from (path / start for start in _STARTS if (path / start).is_file())
    except (OSError, ValueError, NotImplementedError):
        return


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
