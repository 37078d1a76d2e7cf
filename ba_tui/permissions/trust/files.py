"""What of a folder runs, or decides what runs, once the folder is trusted: which files, and what of them counts.

Whether it is trusted is the business of ``trust``. Nothing here is loaded or run.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.trust import TrustedItems
from ba_tui.core.text.jsonc import read_jsonc
from ba_tui.core.values import frozen
from ba_tui.ingress import shown
from ba_tui.permissions.paths import is_secret
from ba_tui.permissions.trust.copies import digest
from ba_tui.resources import read_regular
from ba_tui.settings.claude.files import STRICT, parse_claude
from ba_tui.settings.document import parse_document
from ba_tui.settings.layers import leaves
from ba_tui.settings.setters import open_to_anyone
from ba_tui.settings.variable_names import holds_key, starts

if TYPE_CHECKING:
    from ba_tui.settings.sections.mcp import ServerSettings

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
"""By kind, the files and folders below the project's root that ba, or what it understands of others, reads; a star
stands for any name."""
CLAUDE_SETTINGS = ".claude/settings"
"""What the names of Claude Code's settings files begin with."""
CLAUDE_KEYS = ("hooks", "disableAllHooks", "permissions", "env")
"""What of them could loosen or run something, in a project that is trusted."""
_NAMING = ("hooks", "MCP servers", "settings")
"""Kinds whose files hold commands."""
MOST_FILES = 2_000
MOST_BYTES = 50_000_000
MOST_SHOWN = 1_000_000
"""Bytes of a file that are read for the names in it alone."""
SHOWN = 60


@frozen
class FoundFiles:
    """One file; ``name`` is its path below the root, ``part`` the entry of PARTS it belongs to, empty for one that a
    command in such a file names. ``target`` is where it leads, None where no link is on the way."""

    kind: str
    part: str
    name: str
    path: Path
    target: Path | None = None

    def link(self, root: Path) -> str:
        """Where it leads, for people; empty for no link."""
        if self.target is None:
            return ""
        inside = self.target.is_relative_to(root)
        where = self.target.relative_to(root).as_posix() if inside else shown(self.target)
        about = ", which holds secrets" if self._secret else "" if inside else ", outside this project"
        return f"{self.name} → {where}{about}"

    def content(self) -> bytes:
        """What of it counts: of settings only those that could loosen or run something, of secrets a hash. Empty for
        nothing.

        Raises:
            OSError: it can't be read.
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


def found_in(root: Path, own: Path) -> list[FoundFiles]:
    """The files of ``root`` that count, links followed, by kind and name, and those that commands in them name.
    What lies in ``own``, the person's config folder, does not, nor do compiled files: nothing here loads any.

    Raises:
        UsageError: there are more of them than a person could look at.
    """
    from ba_tui.permissions.trust.named_files import named_in  # noqa: PLC0415 - only a folder that is to be trusted is read

    found: list[FoundFiles] = []

    @cache
    def real(folder: str) -> str:
        # From the folder above where no link is on the way: following every path from / takes ten times as long.
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


def _found(kind: str, part: str, path: Path, where: tuple[Path, Callable[[str], str]]) -> FoundFiles:
    """``where``: the root, and what follows the links of a folder; asking for each file anew takes a while."""
    root, real = where
    # As text: a start asks for hundreds of files, a dozen times.
    text = str(path)
    folder, _, name = text.rpartition("/")
    target = os.path.realpath(text) if path.is_symlink() else f"{real(folder).rstrip('/')}/{name}"
    below = text.removeprefix(f"{str(root).rstrip('/')}/")
    return FoundFiles(kind, part, below, path, None if target == text else Path(target))


def _check(root: Path, count: int, size: int) -> None:
    if count > MOST_FILES or size > MOST_BYTES:
        raise UsageError(
            f"{root} holds more than {MOST_FILES} files or {MOST_BYTES // 1_000_000} MB of tools, skills and the like.",
            "Move data out of these folders, so that you can review what you trust.",
        )


def held(files: Sequence[FoundFiles], contents: Mapping[str, bytes]) -> tuple[TrustedItems, ...]:
    """What the files bring, by kind, under the names that people know it by. Only what has content counts."""
    kinds: dict[str, dict[str, None]] = {kind: {} for kind in PARTS}
    for file in files:
        content = contents[file.name]
        if content and file.part.startswith(CLAUDE_SETTINGS):
            for kind, name in _claude_kinds(content):
                kinds[kind][name] = None
        elif content:
            kinds[file.kind].update(dict.fromkeys(_names(file, content)))
    return tuple(TrustedItems(kind, tuple(names)) for kind, names in kinds.items() if names)


def links(files: Sequence[FoundFiles], root: Path) -> tuple[str, ...]:
    """What of the files is a link, or lies behind one, and where it leads."""
    return tuple(link for file in files if (link := file.link(root)))


def _names(file: FoundFiles, content: bytes) -> Sequence[str]:
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
    """Each server with its command line or address: that is what would run."""
    from ba_tui.permissions.secrets.scanner import redact  # noqa: PLC0415 - only for a project with servers
    from ba_tui.settings.mcp.files import parse_servers  # noqa: PLC0415

    file = parse_servers(name, content.decode("utf-8-sig", "replace"))
    if file.problem:
        return [f"{name}, which can't be understood"]
    said = ((each.name, each.entry.settings) for each in file.entries)
    # The whole line: what a command does may stand at its end.
    return [f"{server}: {redact(_server(settings)) if settings else 'not usable'}" for server, settings in said]


def _server(settings: ServerSettings) -> str:
    """The command line or address, and whose values it is given."""
    from ba_tui.settings.mcp.servers import given_variables, target  # noqa: PLC0415 - see above

    names = given_variables(settings)
    return f"{target(settings)} (is given {', '.join(names)})" if names else target(settings)


def _told(content: bytes) -> list[str]:
    """Settings as ``permissions.allow: shell(make)``, each short enough for a line."""
    document = parse_document(Path(), content.decode("utf-8", "replace"))
    if document.problems:
        return ["a file that can't be understood"]
    lines: list[str] = []
    for key, value in leaves(document.data).items():
        items = cast("list[Any]", value) if isinstance(value, list) else [value]
        text = ", ".join(item if isinstance(item, str) else json.dumps(item, default=str) for item in items)
        lines.append(f"{key}: {text if len(text) <= SHOWN else text[:SHOWN] + '…'}")
    return lines


def _settings(path: Path, raw: bytes) -> bytes:
    document = parse_document(path, raw.decode("utf-8-sig", "replace"))
    if document.broken:
        return raw
    rest = {key: value for key, value in document.data.items() if not open_to_anyone(key)}
    return yaml.safe_dump(rest, allow_unicode=True, sort_keys=False).encode() if rest else b""


def _claude(path: Path, raw: bytes) -> bytes:
    """Of a settings file of Claude Code, what could loosen or run something."""
    file = parse_claude(path, raw)
    if file.problem:
        return raw.strip()
    counted = {key: value for key, value in file.data.items() if key in CLAUDE_KEYS and value}
    if isinstance(env := counted.get("env"), dict):
        # Keys are never taken from there, so nobody needs to see them.
        counted["env"] = {k: v for k, v in cast("dict[str, Any]", env).items() if not holds_key(k)}
    return json.dumps(counted, indent=2, ensure_ascii=False).encode() if counted else b""


def _claude_kinds(content: bytes) -> Iterator[tuple[str, str]]:
    """The kind and name of each thing in the content of a settings file of Claude Code."""
    from ba_tui.permissions.secrets.scanner import redact  # noqa: PLC0415 - only for a folder with such a file

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
                # Folders and modes that ask less never count in a project.
                counts = name in {*STRICT, "allow"} or items == "plan"
                yield from (("settings", redact(f"{name} {_short(text)}")) for text in texts if counts)
        elif entries:
            counted = ((name, item) for name, item in entries.items() if not starts(name))
            yield from (("settings", redact(f"{key} {name}={_short(item)}")) for name, item in counted)
        else:
            yield "settings", f"{key}: {_short(value)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


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
    """Regular files, also through links; a link to a folder above is not followed again."""
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
