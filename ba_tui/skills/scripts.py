"""The scripts of skills: which exist, what runs them, and whether they are unchanged since they were allowed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import BaError
from ba_tui.core.messages import clean_text
from ba_tui.core.text.json_text import read_object
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.resources import exclusive, read_regular, save_whole
from ba_tui.skills.content import HERE, PASSED_OVER
from ba_tui.skills.dependencies import FILE as REQUIREMENTS

FOLDER = "scripts"
MAX_NAMES = 20
MAX_FILES = 2_000
MAX_BYTES = 32_000_000
"""Files and bytes of a scripts folder that are hashed; for the rest, size and time are hashed."""
MAX_TEXT_BYTES = 200_000

RUNNERS: Mapping[str, str] = {
    ".py": "python", ".sh": "bash", ".bash": "bash", ".zsh": "zsh", ".js": "node", ".mjs": "node", ".cjs": "node",
    ".rb": "ruby", ".pl": "perl", ".php": "php", ".lua": "lua", ".r": "Rscript", ".ps1": "pwsh",
}  # fmt: skip
"""Runners of scripts without a ``#!`` line, by file name ending."""
SHEBANG_BYTES = 256
_VERSIONED = regex(r"(python|ruby|perl|php|lua|node)[\d.]+")


class NoScript(BaError):
    """The script does not exist, or may not run."""

    kind = "not_found"


class ScriptRefused(NoScript):
    """The script is outside the skill, or no program runs such files."""

    kind = "invalid_parameters"


@frozen
class SkillScript:
    """A script. ``name`` is relative to the scripts folder, or to the skill's ``folder``; both paths are resolved.
    ``runner``: the words before its path, such as ``python``; none for a program."""

    skill: str
    name: str
    path: Path
    folder: Path
    runner: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        return f"{self.skill}/{self.name}"

    @property
    def text(self) -> str:
        """Return the source for the user; of a very long one the beginning. Reads the disk."""
        try:
            return clean_text(read_regular(self.path, MAX_TEXT_BYTES).decode("utf-8", "replace"))
        except OSError:
            return ""


def script_of(skill: str, folder: Path, name: str) -> SkillScript:
    """Return the script ``name`` of the skill in ``folder``. Reads the disk.

    Raises:
        NoScript: there is none. ScriptRefused: it is outside the skill, or no program runs such files.
    """
    plain = plain_name(skill, name)
    if not plain or "\0" in plain or plain.startswith(("/", "~")) or ".." in plain.split("/") or "\\" in plain:
        raise ScriptRefused(
            f"{name!r} is no script of the skill {skill}: scripts are named from its {FOLDER} folder.", _there(folder)
        )
    base = Path(os.path.realpath(folder))
    near = base / FOLDER / plain
    # A link may lead only to another script; the scripts folder may not lead out of the skill.
    path = Path(os.path.realpath(near if os.path.lexists(near) else base / plain))
    if not path.is_relative_to(base):
        raise ScriptRefused(f"{skill}/{plain} leads out of the skill's folder, so it is not run.", _there(folder))
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        regular = False
    if not regular:
        raise NoScript(f"The skill {skill} has no script {plain!r}.", _there(folder))
    runner = _runner(path)
    if runner is None:
        ends = ", ".join(RUNNERS)
        why = f"scripts end in {ends}, begin with #!, or are executable programs"
        raise ScriptRefused(f"{skill}/{plain} can't be run: {why}.", _there(folder))
    return SkillScript(skill, plain, path, base, runner)


def plain_name(skill: str, name: str) -> str:
    """Return ``name`` relative to the scripts folder, or to the skill's, in whatever form it was given."""
    name = name.strip()
    for here in (*HERE, f"skills/{skill}", f"@skill:{skill}"):
        name = name.removeprefix(f"{here}/")
    if name.startswith(("/", "~/")):
        _, found, rest = name.rpartition(f"/{skill}/")
        name = rest if found else name
    while name.startswith("./"):
        name = name[2:]
    return name.removeprefix(f"{FOLDER}/")


def scripts_in(folder: Path) -> tuple[str, ...]:
    """Return the scripts of a skill by name. Reads the disk."""
    names = (path.relative_to(folder).as_posix() for path in _files(folder) if _runner(path) is not None)
    return tuple(sorted(name.removeprefix(f"{FOLDER}/") for name in names))


def _runner(path: Path) -> tuple[str, ...] | None:
    """Return the runner in a script's first line, else that of its name ending; None if there is none."""
    try:
        first = read_regular(path, SHEBANG_BYTES).partition(b"\n")[0]
    except OSError:
        first = b""
    if first.startswith(b"#!"):
        words = [word for word in first[2:].decode("utf-8", "replace").split() if "=" not in word]
        if words and words[0].endswith("/env"):
            words = [word for word in words[1:] if not word.startswith("-")] if words[1:2] != ["-S"] else words[2:]
        if words:
            program = words[0].rsplit("/", 1)[-1]
            versioned = _VERSIONED.fullmatch(program)
            return (versioned[1] if versioned else program, *words[1:])
    if known := RUNNERS.get(path.suffix.lower()):
        return (known,)
    return () if not path.suffix and os.access(path, os.X_OK) else None


def digest(script: SkillScript) -> str:
    """Return a hash of the script and of all files that it may import: those of the skill except texts. Installed
    packages have their own question. Reads the disk."""
    found = hashlib.sha256()
    home, left = script.folder, MAX_BYTES
    # Hash the script's own folder first, as the size is limited.
    files = dict.fromkeys((script.path, *_files(script.path.parent), *_files(home)))
    for path in (path for path in files if path.suffix.lower() != ".md" and path != home / REQUIREMENTS):
        found.update(f"{path.relative_to(home).as_posix()}\0".encode("utf-8", "surrogateescape"))
        try:
            about = path.stat()
            if about.st_size <= left:
                left -= about.st_size
                found.update(hashlib.sha256(read_regular(path, about.st_size + 1)).digest())
            else:
                found.update(f"{about.st_size} {about.st_mtime_ns}".encode())
        except OSError:
            found.update(b"?")
    return found.hexdigest()


class AllowedScripts:
    """The digests of scripts when they were last allowed to run, stored in ``file``."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def last(self, script: SkillScript) -> str:
        """Return the script's last digest; empty if it never ran. Reads the disk."""
        return self._read().get(str(script.folder), {}).get(script.name, "")

    def note(self, script: SkillScript, digest: str) -> None:
        """Save a digest. Raises StorageError."""
        if self.last(script) == digest:
            return
        with exclusive(self._file.parent):
            kept = self._read()
            kept.setdefault(str(script.folder), {})[script.name] = digest
            save_whole(self._file, json.dumps(kept, indent=1) + "\n", mode=0o600)

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            whole = read_object(read_regular(self._file, 100 * MAX_TEXT_BYTES)) or {}
        except OSError:
            return {}
        return {
            folder: {name: str(value) for name, value in cast("dict[str, Any]", names).items()}
            for folder, names in whole.items()
            if isinstance(names, dict)
        }


def _files(folder: Path) -> Iterator[Path]:
    """Yield regular files below ``folder`` in a fixed order, up to a limit; links are not followed."""
    found = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in PASSED_OVER)
        for name in sorted(names):
            path = Path(place, name)
            if path.is_symlink() or not path.is_file():
                continue
            found += 1
            if found > MAX_FILES:
                return
            yield path


def _there(folder: Path) -> str:
    names = scripts_in(folder)
    if not names:
        return "It has no scripts; follow its instructions with your other tools."
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"There are: {', '.join(names[:MAX_NAMES])}{more}."
