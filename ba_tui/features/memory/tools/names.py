"""The name under which a project shares its memory, bound to the real path of its root in the user's own folder.

A project's files may propose a name. Until the user binds it, the project's default name is used, and the proposed one
is neither read nor written.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.resources import UserFolders, exclusive, folder_slug, save_whole
from ba_tui.settings import LoadedSettings, Settings
from ba_tui.settings.document import load_mapping
from ba_tui.settings.layers import AllowedSettings
from ba_tui.settings.sections.data import memory_name

FILE = "memory-names.yaml"
SETTING = "memory.project"
LONGEST = 200
HEADER = """\
# The name under which each project shares its memory, by the real path of the project. Change one with:
# ba memory bind NAME
"""
_NAMED = 3
"""Maximum other projects that a message names."""


@frozen
class ProposedName:
    """A name that the files of the project at ``root`` propose, and the other projects that use it: ``others`` by their
    roots; ``moved``: those whose root no longer exists.
    """

    name: str
    root: Path
    others: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()

    @property
    def notice(self) -> Notice:
        """Return the notice about a name that is not bound, with the command to bind it."""
        used = f", which {_listed(self.others)} uses" if self.others else ""
        gone = f" It was the name of {_listed(self.moved)}, which is gone." if self.moved else ""
        text = f"This project's settings propose the memory name “{one_line(self.name, 80)}”{used}.{gone}"
        hint = f"To share memory under it: ba memory bind {shlex.quote(one_line(self.name, LONGEST))}"
        return Notice(f"{text} It is not used.", "warning", hint)


@frozen
class SharedName:
    """``name``: chosen by the user for a project, empty for the project's default. ``proposed``: another one in the
    project's files.
    """

    name: str
    proposed: ProposedName | None = None


class MemoryNames:
    """The bound names. All methods read or write a file: call them in a thread."""

    def __init__(self, where: UserFolders) -> None:
        self.path = where.config / FILE
        self._allowed = AllowedSettings(where)

    def of(self, root: Path) -> str:
        """Return the name that the user bound to the project at ``root``; empty for none."""
        return self._all().get(os.path.realpath(root), "")

    def others(self, name: str, root: Path) -> Sequence[str]:
        """Return the roots of other projects that use ``name``: bound to it, or by default."""
        own = os.path.realpath(root)
        return [path for path, bound in self._all().items() if path != own and name in {bound, folder_slug(Path(path))}]

    def bind(self, root: Path, name: str) -> None:
        """Bind the project at ``root`` to ``name``; an empty name means the default, and also withdraws the user's
        consent to a name in the project's files.

        Raises:
            UsageError: the name is unusable. StorageError: the file can't be read or written.
        """
        if name and (len(name) > LONGEST or not name.isprintable() or name != name.strip()):
            raise UsageError(f"A memory name has 1 to {LONGEST} printable characters.", "Choose another name.")
        try:
            memory_name(name)
        except ValueError as error:
            raise UsageError(f"{name!r} can't be a memory name: {error}.", "Choose another name.") from error
        if not name:
            self._allowed.drop(root, SETTING)
        with exclusive(self.path.parent):
            kept = dict(load_mapping(self.path))
            kept.pop(os.path.realpath(root), None)
            if name:
                kept[os.path.realpath(root)] = name
            save_whole(self.path, HEADER + yaml.safe_dump(kept, allow_unicode=True, sort_keys=False), mode=0o600)

    def shared(self, loaded: LoadedSettings, where: UserFolders, root: Path) -> SharedName:
        """Return the name for the project at ``root``. Precedence: the user's own files, variables and flags, then a
        bound name, then a name in the project's files, which needs the user's consent.
        """
        named, bound = loaded.settings.memory.project, self.of(root)
        if named and (not bound or _by_user(loaded.sources.get(SETTING, ""), where)):
            return SharedName(named)
        waiting = (each.value for each in loaded.asked if each.setting == SETTING and not each.allowed)
        proposed = next(waiting, "")
        if not proposed or proposed in {bound, folder_slug(root)}:
            return SharedName(bound)
        used = self.others(proposed, root)
        others, moved = ([path for path in used if os.path.isdir(path) is there] for there in (True, False))  # noqa: PTH112
        return SharedName(bound, ProposedName(proposed, root, tuple(others), tuple(moved)))

    def _all(self) -> Mapping[str, str]:
        """Return the bound names by root; none if the file is invalid."""
        try:
            kept = load_mapping(self.path)
        except StorageError:
            return {}
        return {str(root): name for root, name in kept.items() if isinstance(name, str)}


def with_shared_name(loaded: LoadedSettings | Settings, where: UserFolders, root: Path) -> tuple[Settings, SharedName]:
    """Return the settings with the memory name of the project at ``root``, and where it came from. Without a server no
    name is used; in settings without sources every name is the user's.
    """
    if isinstance(loaded, Settings):
        return loaded, SharedName(loaded.memory.project)
    settings = loaded.settings
    shared = MemoryNames(where).shared(loaded, where, root) if settings.memory.url else SharedName("")
    if settings.memory.project != shared.name:
        settings = replace(settings, memory=replace(settings.memory, project=shared.name))
    return settings, shared


def named_settings(
    loaded: LoadedSettings | Settings, where: UserFolders, root: Path
) -> tuple[Settings, Sequence[Notice]]:
    """Return the settings with the memory name of the project at ``root``, and a notice about a name that the project's
    files propose and that is not used."""
    settings, shared = with_shared_name(loaded, where, root)
    return settings, (shared.proposed.notice,) if shared.proposed else ()


def _by_user(source: str, where: UserFolders) -> bool:
    """Return whether a setting comes from a flag, a variable, the user's own file or ba itself; all other files belong
    to a project.
    """
    own = (str(where.settings), "flag ", "BA_")
    return source in {"default", "bundled"} or source.startswith(own)


def _listed(roots: Sequence[str]) -> str:
    more = f" and {len(roots) - _NAMED} more" if len(roots) > _NAMED else ""
    return f"{', '.join(one_line(root, 120) for root in roots[:_NAMED])}{more}"
