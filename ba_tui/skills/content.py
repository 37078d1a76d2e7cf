"""Reads a skill's instructions, and lists and reads its other files.

Reads files, within bounds; who may start a skill and what follows from it is decided elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.text.front_matter import divided
from ba_tui.core.text.wording import byte_size
from ba_tui.core.values import frozen
from ba_tui.ingress import Ingress
from ba_tui.resources import read_regular
from ba_tui.skills.catalog import Skill
from ba_tui.skills.folders import place_of, placed
from ba_tui.skills.frontmatter import decoded

ContentLevel: TypeAlias = Literal[1, 2, 3]
MAX_BYTES = 1_000_000
"""Bytes of a SKILL.md that are read at most."""
INSTRUCTION_CHARS = 36_000
"""Characters of instructions that a model is given; of more, where to read on."""
FURTHER_CHARS = 14_000
"""Characters of further files that are given at level 3."""
MAX_FILES = 500
MAX_LISTED, LISTING_CHARS = 60, 5_000
"""Files and characters of the list of files."""
MAX_HASHED_BYTES = 16_000_000
PASSED_OVER = frozenset({".git", "__pycache__", "node_modules", ".venv", ".DS_Store"})
ARGUMENTS = "$ARGUMENTS"


@frozen
class File:
    """One file beside SKILL.md; ``name`` from the skill's folder, with ``/``."""

    name: str
    size: int


def files_of(skill: Skill) -> Sequence[File]:
    """All but SKILL.md, in order of their names. Links that leave the folder, or lead to folders, are passed over."""
    return sorted(_walk(skill), key=lambda file: file.name)


def folder_of(skill: Skill) -> Path:
    """Where it really lies: a sandbox shows that path."""
    return Path(os.path.realpath(skill.folder))


def body_of(skill: Skill, ingress: Ingress) -> str:
    """The instructions, without front matter.

    Raises:
        UsageError: they can't be read.
    """
    return _body(skill, ingress)[0]


def digest_of(skill: Skill) -> str:
    """The hash of all that the skill holds. Of what is larger than a few megabytes, size and time count."""
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
    """What a model is given of an activated skill. ``place`` is how its folder is called there; ``whole``: with the
    content of its other text files, as far as there is room.

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
    """The other text files of a skill, as far as there is room."""
    files = files_of(skill)
    if not files:
        return "It has no other files."
    return "\n\n".join([_listing(files, place, ingress), *_contents(skill, ingress, files, place)])


def _body(skill: Skill, ingress: Ingress) -> tuple[str, int]:
    """The instructions, and the line of the file in which they begin."""
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
    """How calls name the folder."""
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
    """None for what is no text, does not fit, or may not be read."""
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
