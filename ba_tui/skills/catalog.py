"""Finds skills in their folders and reads the front matter of each. Nothing more.

What is done with a skill once it is wanted stands in ``content``; who may see it, in ``config``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path

from ba_tui.core.values import frozen
from ba_tui.ingress import Ingress, Owner, Read
from ba_tui.resources import read_regular
from ba_tui.settings.plugins import Plugin
from ba_tui.skills.frontmatter import Head, decoded, id_of, read_head
from ba_tui.skills.validator import BODY_TOKENS, CHARACTERS_PER_TOKEN, NAMES, file_names

HEAD_BYTES = 64_000
"""Bytes of a SKILL.md that are read for its front matter."""
MAX_SKILLS = 1_000
"""Skills of one folder that are looked at."""
PROJECT = (".claude/skills", ".agents/skills", ".ba/skills")


@frozen
class SkillRoot:
    """A folder that skills lie in. ``open``: whether it may be looked into now."""

    folder: Path
    source: Owner
    open: Callable[[], bool] = lambda: True


@frozen
class Skill:
    """``id`` is the one word it is called by, ``folder`` where it lies, ``file`` the name of its SKILL.md there,
    ``size`` that file's in bytes. ``shadowed``: one of a later folder has the same id and counts."""

    id: str
    folder: Path
    source: Owner
    head: Head = field(default_factory=Head)
    file: str = NAMES[0]
    size: int = 0
    shadowed: bool = False

    @property
    def path(self) -> Path:
        return self.folder / self.file

    @property
    def tokens(self) -> int:
        """About how many its instructions take."""
        return self.size // CHARACTERS_PER_TOKEN

    @property
    def large(self) -> str:
        """What is said of instructions that are longer than they should be; empty for others."""
        if self.tokens <= BODY_TOKENS:
            return ""
        return f"its instructions take about {self.tokens:,} tokens; below {BODY_TOKENS:,} is usual"

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.head.warnings, *([self.large] if self.large else []))


def skill_roots(
    bundled: Path, home: Path | None, config: Path, root: Path, trusted: Callable[[], bool]
) -> list[SkillRoot]:
    """Where skills come from, a later folder wins: what ships with ba, the person's, the project's if trusted."""
    own = [home / ".claude" / "skills", home / ".agents" / "skills"] if home else []
    return [
        SkillRoot(bundled, "bundled"),
        *(SkillRoot(folder, "user") for folder in (*own, config / "skills")),
        *(SkillRoot(root / name, "project", trusted) for name in PROJECT),
    ]


def plugin_roots(plugins: Iterable[Plugin]) -> list[SkillRoot]:
    """Where the skills of ``plugins`` lie; those of the person and the project win over them."""
    return [SkillRoot(plugin.folder / "skills", plugin.source, plugin.open) for plugin in plugins]


class SkillCatalog:
    """All skills below some folders, as far as ``ingress`` lets them be read. What was read once is read again only
    when the file has changed. Any thread."""

    def __init__(self, roots: Sequence[SkillRoot], ingress: Ingress) -> None:
        self._roots = tuple(roots)
        self.ingress = ingress
        self._lock = threading.Lock()
        self._read: dict[Path, tuple[tuple[int, ...], Skill]] = {}
        self._all: tuple[Skill, ...] | None = None

    def look(self) -> Sequence[Skill]:
        """Look through the folders again; every skill by id, those that count before those they shadow. Blocks."""
        with self._lock:
            found: dict[str, list[Skill]] = {}
            seen: set[str] = set()
            for root in self._roots:
                real = os.path.realpath(root.folder)
                if real in seen or not root.open():
                    continue
                seen.add(real)
                for skill in self._in(root):
                    found.setdefault(skill.id, []).append(skill)
            self._all = tuple(each for id in sorted(found) for each in _ranked(found[id]))
            return self._all

    def all(self) -> Sequence[Skill]:
        """As found when last looked; looks the first time."""
        return self.look() if self._all is None else self._all

    def usable(self) -> Sequence[Skill]:
        """Those that count and are not broken."""
        return [skill for skill in self.all() if not skill.shadowed and not skill.head.trouble]

    def get(self, key: str) -> Skill | None:
        """The skill that counts, by its id or its folder's name, ``plugin:`` before it or not; also a broken one."""
        counting = [skill for skill in self.all() if not skill.shadowed]
        for name in dict.fromkeys((key, key.rpartition(":")[2])):
            by_id = next((skill for skill in counting if skill.id == name), None)
            if found := by_id or next((one for one in counting if name in (one.folder.name, one.head.name)), None):
                return found
        return None

    def _in(self, root: SkillRoot) -> Iterable[Skill]:
        try:
            with os.scandir(root.folder) as entries:
                names = sorted(entry.name for entry in entries if not entry.name.startswith("."))[:MAX_SKILLS]
        except OSError:
            return
        for name in names:
            if skill := self._skill(root.folder / name, root.source):
                yield skill

    def _skill(self, folder: Path, source: Owner) -> Skill | None:
        """None for what is no skill: a file, a folder without a SKILL.md."""
        for name in file_names(folder):
            path = folder / name
            try:
                status = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                trouble = f"can't be read: {error.strerror or error}"
                return Skill(id_of(folder.name), folder, source, Head(folder.name, trouble=trouble), name)
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_nlink)
            known = self._read.get(path)
            if known is None or known[0] != stamp:
                skill = Skill(id_of(folder.name), folder, source, file=name, size=status.st_size)
                known = (stamp, _read(skill, self.ingress))
                self._read[path] = known
            return replace(known[1], source=source)
        return None


def head_of(file: Path, folder: str, read: Read = read_regular) -> Head:
    """The head of the SKILL.md in a folder called ``folder``. Reads the disk; ``trouble`` says why it can't be used."""
    try:
        raw = read(file, HEAD_BYTES)
        return read_head(decoded(raw, whole=len(raw) < HEAD_BYTES), folder)
    except OSError as error:
        return Head(folder, trouble=f"{file.name} can't be read: {error.strerror or error}")
    except UnicodeDecodeError as error:
        return Head(folder, trouble=f"{file.name} is not UTF-8 text (byte {error.start})")


def _read(skill: Skill, ingress: Ingress) -> Skill:
    head = head_of(skill.path, skill.folder.name, ingress.reader(skill.source))
    if skill.source != "bundled":
        # What the front matter says is told to models, and so is what is wrong with it.
        words = {name: ingress.clean(getattr(head, name)) for name in ("name", "description", "hint", "trouble")}
        head = replace(head, **words)
    return replace(skill, id=skill.id if head.trouble else id_of(head.name), head=head)


def _ranked(same: Sequence[Skill]) -> list[Skill]:
    """Skills of one id, the one that counts first: the latest that works, else the latest."""
    latest = list(reversed(same))
    working = next((skill for skill in latest if not skill.head.trouble), latest[0])
    return [working, *(replace(skill, shadowed=True) for skill in latest if skill is not working)]
