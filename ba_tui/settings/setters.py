"""Decide who may set each setting, and remove from a project's files the values that a project may not set.

The caller decides whether the project is trusted; ``allowed`` saves the values that the user has allowed.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin

from ba_tui.core.events import Notice
from ba_tui.core.ports.permissions import ASKS_AGAIN, AskedSetting
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.resources import user_home
from ba_tui.settings.checks import Layer, dotted
from ba_tui.settings.document import KeyPath, Problem, printable
from ba_tui.settings.fields import USER, Setter
from ba_tui.settings.model import Settings
from ba_tui.settings.plain import hints_of
from ba_tui.settings.sections.models import ModelProfile

UNTRUSTED = "ignored: this folder is not trusted. Review it, then run ba trust"
HIGHER = "ignored: a folder may only lower this limit; raise it in your own settings (ba config edit)"
THEIRS = "ignored: this setting is allowed only in your own settings (ba config edit)"
PENDING = "ignored: this project asks {wants}, and you have not allowed it"
TAKEN = "refused: a project can't change {name}, a provider of yours or of ba"
TAKE_OUT = "Remove it from this file, or set it in your own settings: ba config edit."
NO_ADDRESS = "refused: a project's provider needs its own base_url"
ADD_ADDRESS = "Add a base_url, or remove the provider."
NOT_ALLOWED = "refused: you have not allowed the provider {name} of this project"
BROAD = "refused: {path} covers {what}"
NARROWER = "Name the folders in it that you need."
RESERVED = frozenset({"local", "demo", "scripted"})
"""Model prefixes that are not entries of ``providers``."""
OPENS_FILE = regex(r"(?s)\s*(local|scripted)[:/](.*)")
"""The name of a model that is a path: its scheme and the rest."""
SHOWN = 4
"""Number of settings that one notice names."""
_FILE_KINDS = frozenset({"local", "scripted"})


@frozen
class _Known:
    """A field: its group (``named`` when the group's entries have names) and who may set it."""

    group: type[Any] | None
    named: bool
    setter: Setter
    default: object


@cache
def _known(kind: type[Any]) -> Mapping[str, _Known]:
    hints = hints_of(kind)
    found: dict[str, _Known] = {}
    for each in fields(kind):
        group, named = _group(hints[each.name])
        default = None if each.default is MISSING else each.default
        found[each.name] = _Known(group, named, each.metadata.get("who", USER), default)
    return found


def _group(hint: Any) -> tuple[type[Any] | None, bool]:
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) is dict and is_dataclass(entry := get_args(hint)[1]):
        return cast("type[Any]", entry), True
    return (cast("type[Any]", hint), False) if is_dataclass(hint) else (None, False)


def setters(kind: type[Any] = Settings, before: str = "") -> Iterator[tuple[str, Setter]]:
    """Return who may set each setting, without groups; ``NAME`` replaces the names of entries."""
    for name, known in _known(kind).items():
        if known.group:
            yield from setters(known.group, f"{before}{name}.{'NAME.' if known.named else ''}")
        else:
            yield f"{before}{name}", known.setter


def open_to_anyone(key: str) -> bool:
    """Return whether an untrusted folder may set all of ``key``, a top-level name."""
    known = _known(Settings).get(key)
    return known is not None and known.group is None and known.setter.who == "anyone"


@frozen
class _Refusal:
    """Why a value is left out. ``fatal``: `ba -p` must not continue without it."""

    text: str
    cure: str = ""
    fatal: bool = False


@dataclass(slots=True)
class ProjectRules:
    """The rules for one project's files: whether it is trusted, the (setting, value) pairs that the user ``allowed``,
    and the layers of the ``user``, lowest first. ``asked`` collects the values that need the user's permission."""

    root: Path
    trusted: bool
    allowed: Set[tuple[str, str]]
    user: Sequence[Layer]
    asked: dict[tuple[str, str], AskedSetting] = field(default_factory=dict[tuple[str, str], AskedSetting])
    providers: set[str] = field(default_factory=set[str])
    """The providers that the project may define, with an address that the user allowed."""
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    """The providers of the project that the user has not allowed, each with what to do."""

    def apply(self, layer: Layer) -> None:
        """Leave out of ``layer``, a file of the project, what a project may not set, and report each with its line."""
        if self.trusted:
            self._check_providers(layer)
        for path, value, known in list(_values(layer.data, Settings, ())):
            if layer.kind == "claude" and path[0] == "environment":
                # ``claude.layer`` has removed variables that a project may not set.
                continue
            if self.trusted or known.setter.who == "anyone":
                self._value(layer, path, value, known)
            else:
                _leave_out(layer, path, _Refusal(UNTRUSTED))

    def _value(self, layer: Layer, path: KeyPath, value: object, known: _Known) -> None:
        if isinstance(cast("Any", value), list) and known.setter.who != "user":
            self._entries(layer, path, known.setter)
        elif refusal := self._refusal(layer, path, value, known):
            _leave_out(layer, path, refusal)
        else:
            _holder(layer.data, path)[path[-1]] = self._resolved(layer, value, known.setter)

    def _entries(self, layer: Layer, path: KeyPath, setter: Setter) -> None:
        """Judge each entry of a list, the last first."""
        entries = cast("list[Any]", _at(layer.data, path)[1])
        given = bool(entries)
        for index in reversed(range(len(entries))):
            entry = entries[index]
            if not isinstance(entry, dict):
                self._value(layer, (*path, index), entry, _Known(None, False, setter, None))
                continue
            group = cast("dict[str, Any]", entry)
            for key in [key for key, value in setter.refused if group.get(key) == value]:
                _leave_out(layer, (*path, index, key), _Refusal(THEIRS))
        if given and not entries:
            layer.drop(path)

    def _refusal(self, layer: Layer, path: KeyPath, value: object, known: _Known) -> _Refusal | None:
        """Why a trusted project may not set ``value``; None when it may."""
        setter = known.setter
        if setter.who == "user":
            return None if value in setter.stricter else _Refusal(THEIRS)
        if setter.lower:
            given = (_at(each.data, path) for each in reversed(self.user))
            most = next((limit for found, limit in given if found), known.default)
            fits = not isinstance(most, int | float) or (isinstance(value, int | float) and value <= most)
            return None if fits else _Refusal(HIGHER)
        if setter.names == "model" and (name := str(value).strip().partition("/")[0]) in self.waiting:
            return _Refusal(NOT_ALLOWED.format(name=printable(name)), self.waiting[name], fatal=True)
        if not self._needs_question(layer, value, setter):
            return None
        text = str(self._resolved(layer, value, setter))
        if setter.names == "path" and (broad := _too_broad(Path(text), self.root)):
            return broad
        key = dotted(path)
        wants = setter.question.format(value=printable(text))
        asked = AskedSetting(key, text, wants, layer.source(path), (key, text) in self.allowed)
        self.asked[key, text] = asked
        return None if asked.allowed else _Refusal(PENDING.format(wants=wants), allowing(asked))

    def _needs_question(self, layer: Layer, value: object, setter: Setter) -> bool:
        if setter.names == "model":
            return isinstance(value, str) and self._opens_file(value)
        if setter.names == "path" and isinstance(value, str):
            return not Path(self._resolved(layer, value, setter)).is_relative_to(os.path.realpath(self.root))
        return setter.who == "asked" and value not in (None, "")

    def _opens_file(self, model: str) -> bool:
        provider = model.strip().partition("/")[0]
        kinds = [_at(each.data, ("providers", provider, "kind"))[1] for each in self.user]
        return bool(OPENS_FILE.fullmatch(model)) or any(kind in _FILE_KINDS for kind in kinds)

    def _resolved(self, layer: Layer, value: Any, setter: Setter) -> Any:
        """Return ``value`` with symlinks of a path resolved, so that ba uses exactly what the user allowed."""
        if setter.names == "path" and isinstance(value, str):
            return real_path(value, layer.folder)
        if setter.names == "model" and isinstance(value, str) and (found := OPENS_FILE.fullmatch(value)):
            scheme, rest = found[1], found[2].strip()
            # A name without a separator or an ending is an installed package.
            is_path = "/" in rest or "." in rest or (self.root / rest).exists()
            return f"{scheme}:{real_path(rest, self.root) if is_path else rest}"
        return value

    def _same_as_user(self, name: str, entry: object) -> bool:
        """Return whether ``entry`` only repeats the user's own settings of the provider."""
        if not isinstance(entry, Mapping):
            return False
        for key, value in cast("Mapping[str, Any]", entry).items():
            given = (_at(each.data, ("providers", name, key)) for each in reversed(self.user))
            if next((found for there, found in given if there), None) != value:
                return False
        return True

    def _check_providers(self, layer: Layer) -> None:
        """Remove providers whose names belong to the user, and those whose address is not allowed."""
        entries = layer.data.get("providers")
        if not isinstance(entries, dict):
            return
        taken = RESERVED.union(*(_providers(each) for each in self.user))
        for name, entry in list(cast("dict[str, Any]", entries).items()):
            address = cast("Mapping[str, Any]", entry).get("base_url") if isinstance(entry, Mapping) else None
            path = ("providers", name, "base_url") if address else ("providers", name)
            refusal = None
            if name in taken and self._same_as_user(name, cast("object", entry)):
                layer.drop(path[:2])
                continue
            if name in taken:
                refusal = _Refusal(TAKEN.format(name=printable(name)), TAKE_OUT, fatal=True)
            elif address:
                refusal = self._refusal(layer, path, address, _known(ModelProfile)["base_url"])
            elif name not in self.providers:
                refusal = None if name in self.waiting else _Refusal(NO_ADDRESS, ADD_ADDRESS, fatal=True)
            if refusal:
                layer.complain(path, refusal.text, fatal=refusal.fatal, cure=refusal.cure)
            if refusal or (not address and name in self.waiting):
                if refusal and name not in taken:
                    self.waiting[name] = refusal.cure
                self.providers.discard(name)
                layer.drop(path[:2])
            else:
                self.providers.add(name)
                self.waiting.pop(name, None)


def _leave_out(layer: Layer, path: KeyPath, refusal: _Refusal) -> None:
    layer.complain(path, refusal.text, fatal=refusal.fatal, cure=refusal.cure)
    layer.drop(path)


def allowing(asked: AskedSetting) -> str:
    """Return how the user can allow a value."""
    return f"Allow it with /trust, or run: ba trust --allow-setting {shlex.quote(f'{asked.setting}={asked.value}')}"


def problem_notices(problems: Sequence[Problem], asked: Sequence[AskedSetting], *, attended: bool) -> list[Notice]:
    """Return notices about ``problems`` for the start. Settings that wait for trust or permission share one notice for
    each file; in an ``attended`` run the notice about the folder covers those that wait for trust."""
    permits = {allowing(each) for each in asked}
    notices: list[Notice] = []
    closed: dict[str, list[str]] = {}
    waiting: dict[str, list[str]] = {}
    for problem in problems:
        if problem.text == UNTRUSTED:
            closed.setdefault(problem.where, []).append(problem.key)
        elif attended and problem.cure in permits:
            waiting.setdefault(problem.where, []).append(problem.key)
        else:
            notices.append(problem.notice)
    for where, keys in () if attended else closed.items():
        notices.append(Notice(f"{printable(where)}: {_some(keys)}: {UNTRUSTED}.", "warning"))
    for where, keys in waiting.items():
        text = f"{printable(where)}: {_some(keys)}: left out until you allow it."
        notices.append(Notice(text, "warning", ASKS_AGAIN))
    return notices


def _some(keys: Sequence[str]) -> str:
    """Return the first of ``keys`` and the number of the others."""
    different = list(dict.fromkeys(keys))
    more = len(different) - SHOWN
    return f"{', '.join(different[:SHOWN])} and {more} more" if more > 1 else ", ".join(different)


def real_path(text: str, folder: Path) -> str:
    """Return ``text`` as an absolute path without symlinks; relative paths start from ``folder``."""
    try:
        return os.path.realpath(folder / Path(text).expanduser())
    except (RuntimeError, ValueError):
        return os.path.normpath(folder / text)


def drop_broad_folders(layer: Layer, root: Path) -> None:
    """Remove folders from ``add_dirs`` that contain the project at ``root`` or the home folder, in any layer: ba would
    work in all of it, and no sandbox could be built around it."""
    given: object = layer.data.get("add_dirs")
    entries = cast("list[Any]", given) if isinstance(given, list) else []
    for index in reversed(range(len(entries))):
        if refusal := _too_broad(Path(real_path(str(entries[index]), layer.folder)), root):
            _leave_out(layer, ("add_dirs", index), refusal)


def _too_broad(folder: Path, root: Path) -> _Refusal | None:
    """Return why ``folder``, an absolute path without symlinks, can't be added to the project at ``root``."""
    here, home = Path(os.path.realpath(root)), user_home()
    what = ""
    if here.is_relative_to(folder) and folder != here:
        what = "this project and what is around it"
    elif home and Path(os.path.realpath(home)).is_relative_to(folder) and folder != here:
        what = "your home folder"
    return _Refusal(BROAD.format(path=printable(str(folder)), what=what), NARROWER, fatal=True) if what else None


def _values(data: Mapping[str, Any], kind: type[Any], above: KeyPath) -> Iterator[tuple[KeyPath, Any, _Known]]:
    """Yield each setting in ``data`` with its path. The check of the layer reports unknown names."""
    for name, value in data.items():
        path, known = (*above, name), _known(kind).get(name)
        if known is None:
            continue
        if known.group is None or not isinstance(value, Mapping):
            yield path, value, known
        elif not known.named:
            yield from _values(cast("Mapping[str, Any]", value), known.group, path)
        else:
            for entry, inner in cast("Mapping[str, Any]", value).items():
                if isinstance(inner, Mapping):
                    yield from _values(cast("Mapping[str, Any]", inner), known.group, (*path, entry))
                else:
                    yield (*path, entry), inner, _Known(known.group, False, USER, None)


def _providers(layer: Layer) -> Set[str]:
    entries = layer.data.get("providers")
    return set(cast("Mapping[str, Any]", entries)) if isinstance(entries, Mapping) else set()


def _holder(data: Any, path: KeyPath) -> Any:
    for part in path[:-1]:
        data = data[part]
    return data


def _at(data: Mapping[str, Any], path: KeyPath) -> tuple[bool, object]:
    """Return whether ``data`` has a value at ``path``, and the value."""
    found: Any = data
    for key in path:
        if not isinstance(found, Mapping | list) or (isinstance(found, Mapping) and key not in found):
            return False, None
        found = cast("Any", found)[key]
    return True, found
