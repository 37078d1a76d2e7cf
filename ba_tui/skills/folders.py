"""Where the folders of skills lie: how models name them, what commands find there, and which file was meant.

Instructions name files from their skill's folder, and commands start in the workspace. A model reads ``@skill:ID`` for
the folder, never its whole path; calls that run something get the whole path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

PLUGIN = ".claude-plugin/plugin.json"
HERE = ("${CLAUDE_SKILL_DIR}", "$CLAUDE_SKILL_DIR", "${SKILL_DIR}", "$SKILL_DIR", "{baseDir}", "{skillDir}")
"""How instructions name the folder of their skill."""
PLUGIN_HERE = ("${CLAUDE_PLUGIN_ROOT}", "$CLAUDE_PLUGIN_ROOT")
LOOKED = 8_000
"""Characters of a command in which files are looked for."""
MENTION = "@skill:"
"""What stands before the id of a skill where a model names the skill's folder."""
MOST = 3
"""Files that are named after a command failed."""
_SKILLS = r"(?<![\w/.-])(?:(?:~|\$HOME|\$\{HOME\}|\.)/)?\.(?:claude|agents|codex|ba)/skills/"
"""Where instructions believe that their skill was installed."""
_RELATIVE = regex(r"(?<![\w./@$}-])(?:\./)?((?:[\w+-][\w.+-]*/){0,8}[\w+-][\w.+-]*)")
_NAMED = regex(rf"(?<![\w@./-]){MENTION}(\w[\w-]{{0,63}})(?=[/\s\"'`;|&()<>,]|\Z)")
_PLAIN = regex(r"[\w./+@%:=,-]+")
_QUOTES = {'"': regex(r'["$`\\!]'), "'": regex("'")}
"""What ends quotes of a shell, or is read within them."""
ActiveFolders: TypeAlias = Callable[[], Sequence[tuple[str, Path]]]
"""The ids and folders of the active skills, the newest last."""


def variables_of(folder: Path) -> Mapping[str, str]:
    """What commands and scripts of the skill in ``folder`` find in their environment. Reads the disk."""
    return {"CLAUDE_SKILL_DIR": str(folder), "CLAUDE_PLUGIN_ROOT": str(plugin_of(folder))}


def plugin_of(folder: Path) -> Path:
    """The plugin that the skill in ``folder`` is part of, as ``skills/NAME`` there; else ``folder``. Reads the disk."""
    above = folder.parent.parent
    return above if folder.parent.name == "skills" and (above / PLUGIN).is_file() else folder


def place_of(id: str, folder: Path) -> str:
    """How models name ``folder`` of the skill ``id`` in calls: the whole path where an odd id can't be a word there."""
    return named if _NAMED.fullmatch(named := f"{MENTION}{id}") else str(folder)


def placed(text: str, folder: Path, names: Sequence[str], place: str = "") -> str:
    """``text`` of the skill in ``folder`` with ``place``, or whole paths, where it names its folder, wherever it
    believes that to be, its plugin, or, below a folder there or with ``./``, one of the files ``names``. Reads the
    disk."""
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
    """``text`` of a command or a program with the whole path of each skill's folder that it names as ``@skill:ID``.
    ``folder_of`` gives the folder of a skill, None for an unknown one; ``shell`` escapes what a shell would read in
    the path."""
    if MENTION not in text:
        return text

    def whole(found: re.Match[str]) -> str:
        folder = folder_of(found[1])
        path = found[0] if folder is None else str(folder)
        before = text[found.start() - 1 : found.start()]
        if not shell or folder is None or _PLAIN.fullmatch(path):
            return path
        if before in _QUOTES:
            # Within quotes nothing can be escaped in the same way everywhere.
            return found[0] if _QUOTES[before].search(path) else path
        return re.sub(r"([^\w./-])", r"\\\1", path)

    return _NAMED.sub(whole, text)


@frozen
class SkillFolders:
    """The folders of the skills that are active now. Blocks."""

    active: ActiveFolders = tuple[tuple[str, Path], ...]

    def variables(self) -> Mapping[str, str]:
        """What commands find in their environment: where the newest skill lies; empty when none is active."""
        return variables_of(active[-1][1]) if (active := self.active()) else {}

    def named(self, text: str) -> str:
        """``text`` with ``@skill:ID`` for the whole path of an active skill's folder."""
        for id, folder in self.active():
            text = text.replace(str(folder), place_of(id, folder))
        return text

    def meant(self, text: str, start: Path) -> str:
        """Where the files lie that ``text`` names and that are not there from ``start``, as a sentence; empty when no
        skill has them."""
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
