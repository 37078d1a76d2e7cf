"""The settings of a folder as a form: list every setting with its value and source, and change one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.settings import SettingLine
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.resources import UserFolders
from ba_tui.settings.document import printable
from ba_tui.settings.editing import set_value, unset_value
from ba_tui.settings.layers import LoadedSettings, as_data, leaves
from ba_tui.settings.mcp.servers import is_reference, plain_address
from ba_tui.settings.model import Settings

_SECRET = regex(r"(?s)mcp\.servers\.[\w-]+\.(?:env\..+|headers\..+|oauth\.client_secret)")
_SERVER = regex(r"mcp\.servers\.[\w-]+\.url")
_PASSWORD = regex(r"(://[^\s/@:]*:)[^\s/@]*@")
HIDDEN = "…@"
"""Replaces the password in an address."""
NONE = "—"
ELSEWHERE = {"permissions": "/permissions", "providers": "/setup"}
"""Commands that change groups which the form does not."""
FILE = "ba config edit"


@frozen
class _Metadata:
    about: str
    choices: tuple[str, ...] = ()
    single: bool = False


@frozen
class SettingsOfFolder:
    """core.ports.settings.SettingsForm. ``load`` reads all files again; ``verify`` raises UsageError for a value of the
    right type without meaning."""

    places: UserFolders
    load: Callable[[], LoadedSettings]
    verify: Callable[[str, Any], None]

    def lines(self) -> Sequence[SettingLine]:
        """See core.ports.settings.SettingsForm."""
        loaded, known = self.load(), dict(_described(Settings))
        values = leaves(as_data(loaded.settings))
        return [_line(key, value, loaded.sources.get(key, "default"), known) for key, value in values.items()]

    def problems(self) -> Sequence[str]:
        """See core.ports.settings.SettingsForm."""
        return [printable(str(problem)) for problem in self.load().warnings]

    def set(self, key: str, text: str) -> str:
        """See core.ports.settings.SettingsForm."""
        if HIDDEN in text:
            raise UsageError(
                "The password in this address is hidden.", "Type the whole address, or use ba config edit."
            )
        file = set_value(self.places, key, text, lambda value: self.verify(key, value))
        source = self.load().sources.get(key, "")
        if source and str(file) not in source:
            return f"{key} is set in {file}, but has no effect here: {source} overrides it."
        return f"{key} is set in {file}, for the next start of ba."

    def reset(self, key: str) -> str:
        """See core.ports.settings.SettingsForm."""
        taken = unset_value(self.places, key)
        source = self.load().sources.get(key, "bundled")
        if source != "bundled":
            return f"{key} is {'no longer' if taken else 'not'} set in your file, but {source} sets it."
        return f"{key} has its default{' again, from the next start of ba' if taken else ' already'}."


def discreet(value: Any, key: str = "") -> Any:
    """Return ``value`` without passwords in addresses; hide it when the setting ``key`` may contain a key."""
    if _SECRET.fullmatch(key) and value and not is_reference(str(value)):
        return "(hidden)"
    if _SERVER.fullmatch(key) and value:
        return plain_address(str(value))
    return _PASSWORD.sub(rf"\1{HIDDEN}", value) if isinstance(value, str) else value


def value_text(value: Any) -> str:
    """Format a value for the user."""
    return NONE if value in (None, "", [], {}) else value if isinstance(value, str) else json.dumps(value)


def _line(key: str, value: Any, source: str, known: Mapping[str, _Metadata]) -> SettingLine:
    group = key.partition(".")[0]
    found = known.get(key) or known.get(group) or _Metadata("")
    single = found.single and group not in ELSEWHERE
    where = "" if single else ELSEWHERE.get(group, FILE)
    choices = found.choices if single else ()
    shown = printable(value_text(discreet(value, key)))
    return SettingLine(key, shown, printable(source), found.about, choices, single, where)


def _described(kind: type[Any], before: str = "") -> Iterator[tuple[str, _Metadata]]:
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        key, hint = before + each.name, _bare(hints[each.name])
        about = str(each.metadata.get("description", ""))
        if is_dataclass(hint):
            yield from _described(cast("type[Any]", hint), f"{key}.")
        elif get_origin(hint) is Literal:
            yield key, _Metadata(about, tuple(map(str, get_args(hint))), single=True)
        elif hint is bool:
            yield key, _Metadata(about, ("true", "false"), single=True)
        else:
            yield key, _Metadata(about, single=get_origin(hint) is None)


def _bare(hint: Any) -> Any:
    """Return the type without its checks and without None."""
    while get_origin(hint) in {Annotated, Union, UnionType}:
        parts = get_args(hint)
        rest = [part for part in parts if part is not NoneType]
        if get_origin(hint) is not Annotated and len(rest) != 1:
            return tuple[Any]
        hint = rest[0]
    return hint
