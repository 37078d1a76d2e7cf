"""Build settings from simple valid data without pydantic, whose import takes 10 MB and a tenth of the first paint.

pydantic alone decides what is valid: any data that is not simple is left to ``checks``.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt, MinLen

from ba_tui.settings.fields import FieldCheck

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
PLAIN = (str, bool, int, NoneType)


class NotPlain(Exception):
    """The data needs pydantic's full check."""


def build(kind: type[T], data: Mapping[str, Any]) -> T:
    """Build the dataclass ``kind`` from ``data``. Raises NotPlain."""
    hints = hints_of(kind)
    if not data.keys() <= field_names(kind):
        raise NotPlain
    try:
        return kind(**{name: _value(hints[name], value) for name, value in data.items()})
    except (TypeError, ValueError) as error:
        raise NotPlain from error


@cache
def adapter(kind: type[T]) -> TypeAdapter[T]:
    """Return pydantic's adapter of a group of settings."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - most starts need no more than ``build``

    return TypeAdapter(kind)


def made(kind: type[T], data: Mapping[str, Any]) -> T:
    """Build ``kind`` from ``data``, with pydantic if necessary. Raises pydantic.ValidationError."""
    try:
        return build(kind, data)
    except NotPlain:
        return adapter(kind).validate_python(data)


@cache
def field_names(kind: type[Any]) -> Set[str]:
    """Return the names of the fields of ``kind``, in order."""
    return dict.fromkeys(each.name for each in fields(kind)).keys()


@cache
def hints_of(kind: type[Any]) -> Mapping[str, Any]:
    """Return the types of the fields of ``kind``, with their checks."""
    return get_type_hints(kind, include_extras=True)


def _value(hint: Any, value: Any) -> Any:
    origin = get_origin(hint)
    if hint is Any:
        return value
    if origin is Annotated:
        return _checked(hint, value)
    if origin in {Union, UnionType}:
        return _one_of(get_args(hint), value)
    if origin is Literal:
        if value in get_args(hint) and isinstance(value, str):
            return value
    elif origin is tuple and isinstance(value, list | tuple):
        return tuple(_value(get_args(hint)[0], item) for item in cast("list[Any]", value))
    elif origin is dict and isinstance(value, Mapping):
        key, inner = get_args(hint)
        return {_value(key, name): _value(inner, item) for name, item in cast("Mapping[Any, Any]", value).items()}
    elif is_dataclass(hint) and isinstance(value, Mapping):
        return build(cast("type[Any]", hint), cast("Mapping[str, Any]", value))
    elif hint is Path and isinstance(value, str):
        return Path(value)
    elif isinstance(hint, type) and issubclass(hint, Enum) and isinstance(value, str):
        return hint(value)
    elif hint is float and type(value) in {int, float}:
        return float(value)
    elif hint in PLAIN and type(value) is hint:
        return value
    raise NotPlain


def _checked(hint: Any, value: Any) -> Any:
    kind, *checks = get_args(hint)
    for check in checks:
        if isinstance(check, FieldCheck) and check.first:
            value = check.check(value)
    value = _value(kind, value)
    for check in checks:
        if isinstance(check, FieldCheck):
            value = value if check.first else check.check(value)
        elif not _within(check, value):
            raise NotPlain
    return value


def _within(limit: object, value: Any) -> bool:
    match limit:
        case Ge():
            return value >= limit.ge
        case Gt():
            return value > limit.gt
        case Le():
            return value <= limit.le
        case Lt():
            return value < limit.lt
        case MinLen():
            return len(value) >= limit.min_length
        case _:
            return False


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    for kind in kinds:
        try:
            return _value(kind, value)
        except NotPlain:
            continue
    raise NotPlain
