"""Finds skills in their folders, reads the front matter of each, and the settings of skills in skills.yaml."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.wording import did_you_mean
from ba_tui.core.values import frozen
from ba_tui.ingress import Ingress, Owner, Read
from ba_tui.resources import read_regular
from ba_tui.settings.document import Problem, non_empty_text, options_files, shown, switch, unknown
from ba_tui.settings.plugins import Plugin
from ba_tui.skills.validator import (
    BODY_TOKENS,
    CHARACTERS_PER_TOKEN,
    NAMES,
    Head,
    decoded,
    file_names,
    id_of,
    read_head,
)

HEAD_BYTES = 64_000
"""Bytes read of a SKILL.md for its front matter."""
MAX_SKILLS = 1_000
"""Most skills of a folder."""
PROJECT = (".claude/skills", ".agents/skills", ".ba/skills")


@frozen
class SkillRoot:
    """A folder with skills. ``open``: whether it may be read now."""

    folder: Path
    source: Owner
    open: Callable[[], bool] = lambda: True


@frozen
class Skill:
    """A skill. ``id``: its name as one word; ``file``: the name of its SKILL.md in ``folder``, ``size`` in bytes.
    ``shadowed``: a later folder has a skill with the same id, which takes precedence."""

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
        """Return the approximate tokens of the instructions."""
        return self.size // CHARACTERS_PER_TOKEN

    @property
    def large(self) -> str:
        """Return a warning for too long instructions; empty for others."""
        if self.tokens <= BODY_TOKENS:
            return ""
        return f"its instructions take about {self.tokens:,} tokens; below {BODY_TOKENS:,} is usual"

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.head.warnings, *([self.large] if self.large else []))


def skill_roots(
    bundled: Path, home: Path | None, config: Path, root: Path, trusted: Callable[[], bool]
) -> list[SkillRoot]:
    """Return the folders of skills: bundled, the user's, the project's if trusted. Later ones take precedence."""
    own = [home / ".claude" / "skills", home / ".agents" / "skills"] if home else []
    return [
        SkillRoot(bundled, "bundled"),
        *(SkillRoot(folder, "user") for folder in (*own, config / "skills")),
        *(SkillRoot(root / name, "project", trusted) for name in PROJECT),
    ]


def plugin_roots(plugins: Iterable[Plugin]) -> list[SkillRoot]:
    """Return the folders of the plugins' skills; those of the user and the project take precedence."""
    return [SkillRoot(plugin.folder / "skills", plugin.source, plugin.open) for plugin in plugins]


class SkillCatalog:
    """The skills of some folders whose files ``ingress`` allows to read. A file is read again only when it has
    changed. Thread-safe."""

    def __init__(self, roots: Sequence[SkillRoot], ingress: Ingress) -> None:
        self._roots = tuple(roots)
        self.ingress = ingress
        self._lock = threading.Lock()
        self._read: dict[Path, tuple[tuple[int, ...], Skill]] = {}
        self._all: tuple[Skill, ...] | None = None

    def look(self) -> Sequence[Skill]:
        """Search the folders again; return all skills by id, effective ones before those that they shadow. Blocks."""
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
        """Return the skills of the last search; search the first time."""
        return self.look() if self._all is None else self._all

    def usable(self) -> Sequence[Skill]:
        """Return the effective skills that are not broken."""
        return [skill for skill in self.all() if not skill.shadowed and not skill.head.trouble]

    def get(self, key: str) -> Skill | None:
        """Return the effective skill by its id or folder name, with or without ``plugin:``, even if broken."""
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
        """Return the skill of a folder; None if it has no SKILL.md."""
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
    """Return the head of a SKILL.md. ``folder``: the folder's name; ``trouble``: why the skill can't be used. Reads
    the disk."""
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
        # Models read the front matter and its errors.
        words = {name: ingress.clean(getattr(head, name)) for name in ("name", "description", "hint", "trouble")}
        head = replace(head, **words)
    return replace(skill, id=skill.id if head.trouble else id_of(head.name), head=head)


def _ranked(same: Sequence[Skill]) -> list[Skill]:
    """Sort skills of one id, the effective one first: the latest that works, else the latest."""
    latest = list(reversed(same))
    working = next((skill for skill in latest if not skill.head.trouble), latest[0])
    return [working, *(replace(skill, shadowed=True) for skill in latest if skill is not working)]


SWITCHES = ("enabled", "auto_load_on_file_upload")
OPTIONS = ("enabled", "available_to_subagent", "description", "auto_load_on_file_types")


@frozen
class SkillChoice:
    """The settings of one skill. ``file_types``: file name endings in lower case, without the dot."""

    enabled: bool = True
    available_to_subagent: bool = True
    description: str = ""
    file_types: tuple[str, ...] = ()


UNSAID = SkillChoice()


@frozen
class SkillChoices:
    """The merged layers of skills.yaml. ``named``: skills in the user's own file, with the place."""

    enabled: bool = True
    auto_load: bool = True
    core: tuple[str, ...] = ()
    optional: Mapping[str, SkillChoice] = field(default_factory=dict[str, SkillChoice])
    named: Mapping[str, Problem] = field(default_factory=dict[str, Problem])
    problems: tuple[Problem, ...] = ()

    def of(self, id: str) -> SkillChoice:
        return self.optional.get(id, UNSAID)

    def unknown(self, ids: Collection[str]) -> tuple[Problem, ...]:
        """Return a problem for each name that no skill has."""
        return tuple(
            replace(place, text=f"there is no skill {name!r}{did_you_mean(name, ids)}")
            for name, place in self.named.items()
            if name not in ids
        )


def read_choices(bundled: Path | None, others: Sequence[Path] = (), read: Read = read_regular) -> SkillChoices:
    """Read ``bundled`` and the ``others`` that exist, later ones over earlier. Never raises: ``problems`` has the
    errors."""
    result = SkillChoices()
    paths = (*([bundled] if bundled else []), *others)
    for path, file in options_files(paths, ("global", "core", "optional"), read):
        switches = file.group("global", _switch_complaint)
        core = dict.fromkeys((*result.core, *file.core()))
        optional = dict(result.optional)
        for name, given in file.optional(_complaint).items():
            if (endings := given.pop("auto_load_on_file_types", None)) is not None:
                given["file_types"] = tuple(dict.fromkeys(text.strip().lower().lstrip("*.") for text in endings))
            optional[name] = replace(optional.get(name, UNSAID), **given)
        result = SkillChoices(
            switches.get("enabled", result.enabled),
            switches.get("auto_load_on_file_upload", result.auto_load),
            tuple(core),
            optional,
            result.named if path == bundled else {**result.named, **file.named},
            (*result.problems, *file.problems),
        )
    return result


def _switch_complaint(option: str, value: Any) -> str:
    return switch(value) if option in SWITCHES else unknown(option, SWITCHES)


def _complaint(option: str, value: Any) -> str:
    """Return what is wrong with an option of a skill; empty if it is valid."""
    match option:
        case "enabled" | "available_to_subagent":
            return switch(value)
        case "description":
            return non_empty_text(value)
        case "auto_load_on_file_types":
            return "" if _endings(value) else f"expected a list of name endings such as [pdf, csv], got {shown(value)}"
        case _:
            return unknown(option, OPTIONS)


def _endings(value: Any) -> bool:
    items = cast("list[Any]", value) if isinstance(value, list) else [None]
    return all(isinstance(item, str) and item.strip(" *.") for item in items)
