"""Writes the guide's table of settings from their own descriptions: ``python -m tests.house.settings_table``."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, cast

from ba_tui.resources import bundled
from ba_tui.settings import Settings
from ba_tui.settings.fields import Setter
from ba_tui.settings.setters import setters

PAGE = bundled("config") / "guide" / "settings.md"
BEGIN, END = "<!-- the table of settings begins -->", "<!-- the table of settings ends -->"
HEAD = "| setting | meaning | default | who may set it |\n|---|---|---|---|"
WHO = {"anyone": "any folder", "project": "a project", "asked": "a project, asked", "user": "you"}
"""What the page calls those who may set a setting."""
SETTERS = dict(setters())
NAMES = {"providers": "NAME", "hooks": "EVENT", "sources": "NAME", "servers": "NAME"}
"""What stands for the name in groups that people name."""


def described(
    kind: type[Any] = Settings, before: str = "", above: Setter | None = None
) -> Iterator[tuple[str, str, str, str]]:
    """Each setting with its description, its default and who may set it, groups before what is in them. ``above``: who
    may set the setting that all of ``kind`` is one value of."""
    hints = typing.get_type_hints(kind)
    for each in dataclasses.fields(kind):
        key = before + each.name
        group, name = _group(hints[each.name])
        plain = each.default is not dataclasses.MISSING and not dataclasses.is_dataclass(each.default)
        setter: Setter = above or each.metadata["who"]
        whole = group is None or key in SETTERS
        default = _shown(each.default) if plain and not group else ""
        yield key, each.metadata["description"], default, _who(setter) if whole else ""
        if group:
            inner = f"{key}.{NAMES[each.name]}." if name else f"{key}."
            yield from described(group, inner, setter if key in SETTERS else above)


def _who(setter: Setter) -> str:
    said = WHO[setter.who]
    if setter.stricter:
        return f"{said}; a project: {', '.join(f'`{_word(value)}`' for value in setter.stricter)}"
    if setter.lower:
        return f"{said}, only lower"
    return f"{said}; model files asked" if setter.names == "model" else said


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _group(hint: Any) -> tuple[type[Any] | None, bool]:
    """The class of a group of settings, and whether people name its members."""
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is dict:
        found = [each for part in parts for each in (part, *typing.get_args(part)) if dataclasses.is_dataclass(each)]
        return (cast("type[Any]", found[0]), True) if found else (None, False)
    return (cast("type[Any]", hint), False) if dataclasses.is_dataclass(hint) else (None, False)


def _shown(value: object) -> str:
    if value in (None, "", ()) or isinstance(value, NoneType):
        return ""
    if isinstance(value, tuple):
        return f"`{', '.join(map(str, cast('tuple[object, ...]', value)))}`"
    return f"`{str(value).lower() if isinstance(value, bool) else f'{value:g}' if isinstance(value, float) else value}`"


def table() -> str:
    """Return the Markdown between the two marks of the page."""
    cells = ((key, text.replace("|", "\\|"), default, who) for key, text, default, who in described())
    return "\n".join([HEAD, *(f"| `{key}` | {text} | {default} | {who} |" for key, text, default, who in cells)])


def in_page(text: str) -> str:
    """Return the page with the table put in place of the one before."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    page = Path(PAGE)
    page.write_text(in_page(page.read_text("utf-8")), "utf-8")
