"""Writes the guide's tables of settings and flags from their own descriptions: ``python -m tests.house.tables``."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, cast

from ba_tui.flags import ROWS, Flag
from ba_tui.resources import bundled
from ba_tui.settings import Settings
from ba_tui.settings.fields import Setter
from ba_tui.settings.setters import setters

FOLDER = bundled("config") / "guide"
HEAD = "| setting | meaning | default | who may set it |\n|---|---|---|---|"
WHO = {"anyone": "any folder", "project": "a project", "asked": "a project, asked", "user": "you"}
"""What the page calls those who may set a setting."""
SETTERS = dict(setters())
FLAGS_HEAD = "| flag | meaning | setting | for |\n|---|---|---|---|"
STARTS = {"any": "", "app": "the app", "print": "`-p`", "program": "programs", "resume": "`-c`, `-r`"}
"""What the page calls the starts that a flag is for."""
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


def settings_table() -> str:
    cells = ((key, text.replace("|", "\\|"), default, who) for key, text, default, who in described())
    return "\n".join([HEAD, *(f"| `{key}` | {text} | {default} | {who} |" for key, text, default, who in cells)])


def flags_table() -> str:
    rows = (f"| {_named(row)} | {row.help} | {_setting(row)} | {STARTS[row.fits]} |" for row in ROWS)
    return "\n".join([FLAGS_HEAD, *rows])


def _named(row: Flag) -> str:
    value = (row.metavar or "|".join(row.choices)).replace("|", "\\|")
    long = f"`{row.name} {value}`" if value else f"`{row.name}`"
    return f"`{row.short}`, {long}" if row.short else long


def _setting(row: Flag) -> str:
    return f"`{row.setting}`" if row.setting else ""


PAGES = {"settings": settings_table, "flags": flags_table}
"""The pages with a table, by topic."""


def in_page(topic: str, text: str) -> str:
    """Return the page with the table put in place of the one before."""
    begin, end = f"<!-- the table of {topic} begins -->", f"<!-- the table of {topic} ends -->"
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{PAGES[topic]()}\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    for topic in PAGES:
        page = Path(FOLDER / f"{topic}.md")
        page.write_text(in_page(topic, page.read_text("utf-8")), "utf-8")
