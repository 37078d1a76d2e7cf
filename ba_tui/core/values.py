"""``frozen``: how values are made. What a value means is said where it stands.

``dataclass(frozen=True, slots=True)`` compiles six methods for each class, half a millisecond each time, and there are
hundreds of classes before the first line is on the screen. Here five of the six are shared, and the one that must be
compiled is when the first value is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A dataclass with slots whose values never change, are compared by what they hold and hashed by it.

    To the standard library it is a dataclass like any other: ``fields``, ``replace``, ``asdict``, ``match``, ``copy``.
    """
    # Without a text of its own, dataclass would work out a signature for it.
    cls.__doc__ = cls.__doc__ or cls.__name__
    value: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    held = fields(value)
    whole = _reader([each.name for each in held if each.compare])
    shown = [each.name for each in held if each.repr]

    def __init__(self: Any, *args: Any, **named: Any) -> None:
        value.__init__ = _compiled(value, held)
        value.__init__(self, *args, **named)

    def __eq__(self: Any, other: object) -> bool:
        return whole(self) == whole(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(whole(self))

    def __repr__(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    for method in (__init__, __eq__, __hash__, __repr__, __getstate__, __setstate__, __setattr__, __delattr__):
        if method.__name__ not in cls.__dict__:
            setattr(value, method.__name__, method)
    return value


def __setattr__(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def __delattr__(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def __getstate__(self: Any) -> Sequence[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def __setstate__(self: Any, state: Sequence[Any]) -> None:
    for each, content in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, content)


def _reader(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What a value holds in the fields ``names``."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _compiled(value: type[Any], held: Sequence[Field[Any]]) -> Any:
    """``__init__`` as dataclass would write it."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    positional, named, body = ["self"], list[str](), list[str]()
    for each in held:
        given, content = each.name, each.name
        if each.default is not MISSING:
            known[f"_default_{each.name}"] = each.default
            given += f"=_default_{each.name}"
            content = content if each.init else f"_default_{each.name}"
        elif each.default_factory is not MISSING:
            known[f"_make_{each.name}"] = each.default_factory
            given += "=_missing"
            made = f"_make_{each.name}()"
            content = f"{made} if {each.name} is _missing else {each.name}" if each.init else made
        elif not each.init:
            continue
        if each.init:
            (named if each.kw_only else positional).append(given)
        body.append(f"    _set(self, {each.name!r}, {content})")
    if hasattr(value, "__post_init__"):
        body.append("    self.__post_init__()")
    head = ", ".join((*positional, *(["*", *named] if named else [])))
    exec("\n".join((f"def __init__({head}):", *(body or ["    pass"]))), known)  # noqa: S102 - names and nothing else
    return known["__init__"]
