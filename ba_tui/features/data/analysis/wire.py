"""Frozen values from the JSON that one side sends the other. Both sides are ours, so nothing is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

Reader: TypeAlias = Callable[[Any], Any]


def decoded(kind: Any, reply: object) -> Any:
    """Return ``reply`` as a value of ``kind``: a frozen class, a tuple of one kind, or what JSON has itself."""
    return _reader(kind)(reply)


def encoded(value: Any) -> Any:
    """Return a frozen value, or a list of them, as what JSON has. Rows are passed on as they are: ``asdict`` would copy
    each cell."""
    kind: Any = value.__class__
    if kind is list or kind is tuple:
        return [encoded(item) for item in value] if value and _names(value[0].__class__) else value
    names = _names(kind)
    return {name: encoded(getattr(value, name)) for name in names} if names else value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a frozen class; none of any other."""
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()


def _same(value: Any) -> Any:
    return value


@cache
def _reader(kind: Any) -> Reader:
    if get_origin(kind) is tuple:
        item = _reader(get_args(kind)[0])
        return tuple if item is _same else lambda value: tuple(map(item, value))
    if is_dataclass(kind):
        return _value_reader(kind)
    inner = [each for each in get_args(kind) if is_dataclass(each)]
    if inner and NoneType in get_args(kind):
        optional = _reader(inner[0])
        return lambda value: None if value is None else optional(value)
    return _same


def _value_reader(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    readers = [(each.name, _reader(hints[each.name])) for each in fields(kind)]
    return lambda value: kind(**{name: reader(value[name]) for name, reader in readers if name in value})
