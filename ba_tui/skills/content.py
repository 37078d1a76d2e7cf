"""Reads a skill's instructions and other files, within limits, and resolves the names of its folder.

Instructions name files relative to the skill's folder, but commands start in the workspace. Models see ``@skill:ID``
for the folder, never its path; calls that run something get the full path.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.text.front_matter import divided
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import byte_size
from ba_tui.core.values import frozen
from ba_tui.ingress import Ingress
from ba_tui.resources import read_regular
from ba_tui.skills.catalog import Skill
from ba_tui.skills.validator import decoded

PLUGIN = ".claude-plugin/plugin.json"
HERE = ("${CLAUDE_SKILL_DIR}", "$CLAUDE_SKILL_DIR", "${SKILL_DIR}", "$SKILL_DIR", "{baseDir}", "{skillDir}")
"""Names of the skill's folder in instructions."""
PLUGIN_HERE = ("${CLAUDE_PLUGIN_ROOT}", "$CLAUDE_PLUGIN_ROOT")
LOOKED = 8_000
"""Characters of a command that are searched for file names."""
MENTION = "@skill:"
"""Prefix of a skill's id in names for models."""
MOST = 3
"""Most files named after a failed command."""
_SKILLS = r"(?<![\w/.-])(?:(?:~|\$HOME|\$\{HOME\}|\.)/)?\.(?:claude|agents|codex|ba)/skills/"
"""Folders in which instructions expect their skill."""
_RELATIVE = regex(r"(?<![\w./@$}-])(?:\./)?((?:[\w+-][\w.+-]*/){0,8}[\w+-][\w.+-]*)")
_NAMED = regex(rf"(?<![\w@./-]){MENTION}(\w[\w-]{{0,63}})(?=[/\s\"'`;|&()<>,]|\Z)")
_PLAIN = regex(r"[\w./+@%:=,-]+")
_QUOTES = {'"': regex(r'["$`\\!]'), "'": regex("'")}
"""Characters with a meaning within quotes of a shell."""
ActiveFolders: TypeAlias = Callable[[], Sequence[tuple[str, Path]]]
"""Returns the ids and folders of the active skills, the newest last."""


def variables_of(folder: Path) -> Mapping[str, str]:
    """Return the environment variables for commands and scripts of the skill in ``folder``. Reads the disk."""
    return {"CLAUDE_SKILL_DIR": str(folder), "CLAUDE_PLUGIN_ROOT": str(plugin_of(folder))}


def plugin_of(folder: Path) -> Path:
    """Return the plugin of the skill in ``folder``, if that is ``skills/NAME`` there; else ``folder``. Reads the
    disk."""
    above = folder.parent.parent
    return above if folder.parent.name == "skills" and (above / PLUGIN).is_file() else folder


def place_of(id: str, folder: Path) -> str:
    """Return the name of ``folder`` for models: ``@skill:ID``, or the full path for an id with unusual characters."""
    return named if _NAMED.fullmatch(named := f"{MENTION}{id}") else str(folder)


def placed(text: str, folder: Path, names: Sequence[str], place: str = "") -> str:
    """Return ``text`` with ``place``, or full paths, where it names the skill's folder, its plugin, or one of the
    files ``names`` below a folder or with ``./``. Reads the disk."""
    place = place or str(folder)
    plugin = (
        place if (above := plugin_of(folder)) == folder else f"{place}/../.." if place.startswith("@") else str(above)
    )
    for spellings, path in ((HERE, place), (PLUGIN_HERE, plugin)):
        for spelling in spellings:
            text = text.replace(spelling, path)
    installed = rf"{_SKILLS}{re.escape(folder.name)}(?=[/\s\"'`)]|\Z)"
    text = re.sub(installed, lambda _: place, text)
    known = frozenset(names)
    if not known or any(char.isspace() for char in place):
        return text

    def whole(found: re.Match[str]) -> str:
        name = found[1].rstrip(".")
        plain = "/" not in name and not found[0].startswith("./")
        return found[0] if plain or name not in known else f"{place}/{found[1]}"

    return _RELATIVE.sub(whole, text)


def located(text: str, folder_of: Callable[[str], Path | None], *, shell: bool = False) -> str:
    """Replace each ``@skill:ID`` in a command with the full path. ``folder_of`` returns a skill's folder, None for
    an unknown one; ``shell`` escapes the path for a shell."""
    if MENTION not in text:
        return text

    def whole(found: re.Match[str]) -> str:
        folder = folder_of(found[1])
        path = found[0] if folder is None else str(folder)
        before = text[found.start() - 1 : found.start()]
        if not shell or folder is None or _PLAIN.fullmatch(path):
            return path
        if before in _QUOTES:
            # Escaping within quotes depends on the kind of quotes.
            return found[0] if _QUOTES[before].search(path) else path
        return re.sub(r"([^\w./-])", r"\\\1", path)

    return _NAMED.sub(whole, text)


@frozen
class SkillFolders:
    """The folders of the active skills. All methods block."""

    active: ActiveFolders = tuple[tuple[str, Path], ...]

    def variables(self) -> Mapping[str, str]:
        """Return the environment variables with the newest skill's folder; empty if none is active."""
        return variables_of(active[-1][1]) if (active := self.active()) else {}

    def named(self, text: str) -> str:
        """Replace full paths of active skills' folders in ``text`` with ``@skill:ID``."""
        for id, folder in self.active():
            text = text.replace(str(folder), place_of(id, folder))
        return text

    def meant(self, text: str, start: Path) -> str:
        """Return a sentence with the places, in active skills, of files that ``text`` names and that do not exist
        from ``start``; empty if there are none."""
        active = self.active()
        found: dict[str, str] = {}
        for match in _RELATIVE.finditer(text[:LOOKED]) if active else ():
            name = match[1].rstrip(".")
            if os.path.lexists(start / name):
                continue
            for id, folder in reversed(active):
                if os.path.isfile(folder / name):  # noqa: PTH113 - must not raise
                    found[name] = f"{name} of the skill {id} is {place_of(id, folder)}/{name}"
                    break
        return "; ".join([*found.values()][:MOST])


ContentLevel: TypeAlias = Literal[1, 2, 3]
MAX_BYTES = 1_000_000
"""Most bytes of a SKILL.md."""
INSTRUCTION_CHARS = 36_000
"""Characters of instructions for a model; a note says where to read the rest."""
FURTHER_CHARS = 14_000
"""Characters of further files at level 3."""
MAX_FILES = 500
MAX_LISTED, LISTING_CHARS = 60, 5_000
"""Most files and characters in the list of files."""
MAX_HASHED_BYTES = 16_000_000
PASSED_OVER = frozenset({".git", "__pycache__", "node_modules", ".venv", ".DS_Store"})
ARGUMENTS = "$ARGUMENTS"


@frozen
class File:
    """A file of a skill; ``name`` is relative to the skill's folder, with ``/``."""

    name: str
    size: int


def files_of(skill: Skill) -> Sequence[File]:
    """Return all files except SKILL.md, by name, without links to folders or out of the folder."""
    return sorted(_walk(skill), key=lambda file: file.name)


def folder_of(skill: Skill) -> Path:
    """Return the resolved folder, which is its path in a sandbox."""
    return Path(os.path.realpath(skill.folder))


def body_of(skill: Skill, ingress: Ingress) -> str:
    """Return the instructions without front matter.

    Raises:
        UsageError: they can't be read.
    """
    return _body(skill, ingress)[0]


def digest_of(skill: Skill) -> str:
    """Return a hash of all files. For files beyond a few megabytes, size and time are hashed."""
    mark, left = hashlib.sha256(), MAX_HASHED_BYTES
    for name in (skill.file, *(file.name for file in files_of(skill))):
        path = skill.folder / name
        try:
            status = path.stat()
            content = read_regular(path, left) if status.st_size <= left else b""
            left -= len(content)
            known = content if status.st_size == len(content) else f"{status.st_size} {status.st_mtime_ns}".encode()
        except OSError:
            known = b"?"
        mark.update(f"{name}\0{len(known)}\0".encode("utf-8", "replace"))
        mark.update(known)
    return mark.hexdigest()[:32]


def instructions(skill: Skill, ingress: Ingress, place: str, parameters: str, *, whole: bool = False) -> str:
    """Return the text for a model on an activated skill. ``place``: the name of its folder; ``whole``: include its
    other text files as far as they fit.

    Raises:
        UsageError: its SKILL.md can't be read.
    """
    body, line = _body(skill, ingress)
    files = files_of(skill)
    body = placed(body, folder_of(skill), [file.name for file in files], place_of(skill.id, folder_of(skill)))
    used = ARGUMENTS in body
    body = body.replace(ARGUMENTS, parameters)
    parts = [_cut(body, f"{place}/{skill.file}", line)]
    if parameters and not used:
        parts.append(f"Parameters: {parameters}")
    if files:
        parts.append(f"{_listing(files, place, ingress)}\n{_whereabouts(skill, files, ingress)}")
    if whole:
        parts += _contents(skill, ingress, files, place)
    return "\n\n".join(part for part in parts if part)


def further(skill: Skill, ingress: Ingress, place: str) -> str:
    """Return the other text files of a skill as far as they fit."""
    files = files_of(skill)
    if not files:
        return "It has no other files."
    return "\n\n".join([_listing(files, place, ingress), *_contents(skill, ingress, files, place)])


def _body(skill: Skill, ingress: Ingress) -> tuple[str, int]:
    """Return the instructions and their first line in the file."""
    try:
        raw = ingress.raw(skill.path, MAX_BYTES, skill.source)
        _, body, line = divided(decoded(raw, whole=len(raw) < MAX_BYTES))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"The skill {skill.id} can't be read: {why or error}.", "See ba skills list.") from error
    text = ingress.clean(body)
    before = len(text) - len(text.lstrip("\n"))
    return text.strip(), line + before


def _cut(body: str, shown: str, line: int) -> str:
    if len(body) <= INSTRUCTION_CHARS:
        return body
    kept = body[:INSTRUCTION_CHARS]
    kept = kept[: kept.rfind("\n") + 1] or kept
    next_line = line + kept.count("\n")
    return f"{kept.rstrip()}\n\n[These instructions are long. Read on in {shown} from line {next_line}.]"


def _whereabouts(skill: Skill, files: Sequence[File], ingress: Ingress) -> str:
    """Return a note on how calls name the folder."""
    folder = ingress.clean(place_of(skill.id, folder_of(skill)))
    return f"{folder} is the folder of this skill, in commands and Python too, which start in the workspace: \
{folder}/{ingress.clean(files[-1].name)}."


def _listing(files: Sequence[File], place: str, ingress: Ingress) -> str:
    lines, room = list[str](), LISTING_CHARS
    for file in files[:MAX_LISTED]:
        room -= len(line := f"- {place}/{file.name} ({byte_size(file.size)})")
        if room < 0:
            break
        lines.append(line)
    if len(files) > len(lines):
        lines.append(f"- and {len(files) - len(lines)} more: list_files {place}")
    return "Files of this skill, to be read when needed (read only):\n" + ingress.clean("\n".join(lines))


def _contents(skill: Skill, ingress: Ingress, files: Sequence[File], place: str) -> Iterator[str]:
    left, skipped = FURTHER_CHARS, list[str]()
    for file in files:
        text = _text(skill, ingress, file.name, left) if file.size <= left * 4 else None
        if text is None:
            skipped.append(file.name)
            continue
        left -= len(text) + len(place) + len(file.name) + 8
        yield f"## {place}/{ingress.clean(file.name)}\n\n{text.rstrip()}"
    if skipped:
        more = f" and {len(skipped) - MAX_LISTED} more" if len(skipped) > MAX_LISTED else ""
        names = ingress.clean(", ".join(skipped[:MAX_LISTED])[:1_500])
        yield f"Not shown, as secret, too long or no text: {names}{more}."


def _text(skill: Skill, ingress: Ingress, name: str, room: int) -> str | None:
    """Return a file's text; None if it is binary, does not fit, or may not be read."""
    try:
        text = ingress.text(skill.folder / name, room * 4 + 1, skill.source)
    except OSError:
        return None
    return text if len(text) <= room else None


def _walk(skill: Skill) -> Iterator[File]:
    real, count = os.path.realpath(skill.folder), 0
    for folder, folders, names in os.walk(skill.folder, onerror=None, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in PASSED_OVER)
        for name in sorted(names):
            path = Path(folder, name)
            shown = path.relative_to(skill.folder).as_posix()
            if shown == skill.file or name in PASSED_OVER or not shown.isprintable():
                continue
            try:
                status = path.stat()
            except OSError:
                continue
            inside = os.path.realpath(path).startswith(real + os.sep)
            if not stat.S_ISREG(status.st_mode) or not inside:
                continue
            count += 1
            if count > MAX_FILES:
                return
            yield File(shown, status.st_size)
