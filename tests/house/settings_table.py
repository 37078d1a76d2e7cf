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

PAGE = bundled("config") / "guide" / "settings.md"
BEGIN, END = "<!-- the table of settings begins -->", "<!-- the table of settings ends -->"
HEAD = "| setting | meaning | default |\n|---|---|---|"
NAMES = {"providers": "NAME", "hooks": "EVENT", "sources": "NAME", "servers": "NAME"}
"""What stands for the name in groups that people name."""


def described(kind: type[Any] = Settings, before: str = "") -> Iterator[tuple[str, str, str]]:
    """Each setting with its description and its default, groups before what is in them."""
    hints = typing.get_type_hints(kind)
    for each in dataclasses.fields(kind):
        key = before + each.name
        group, name = _group(hints[each.name])
        plain = each.default is not dataclasses.MISSING and not dataclasses.is_dataclass(each.default)
        yield key, each.metadata["description"], _shown(each.default) if plain and not group else ""
        if group:
            yield from described(group, f"{key}.{NAMES[each.name]}." if name else f"{key}.")


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
    cells = ((key, text.replace("|", "\\|"), default) for key, text, default in described())
    return "\n".join([HEAD, *(f"| `{key}` | {text} | {default} |" for key, text, default in cells)])


def in_page(text: str) -> str:
    """Return the page with the table put in place of the one before."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    page = Path(PAGE)
    page.write_text(in_page(page.read_text("utf-8")), "utf-8")
