"""``frozen``, the decorator for immutable values, and values that are made when they are needed.

``dataclass(frozen=True, slots=True)`` compiles six methods for each class, half a millisecond each, and the first paint
needs hundreds of classes. Here the classes share five of the methods, and ``__init__`` is compiled with the first
value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from pkgutil import resolve_name
from threading import RLock
from typing import Any, Generic, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class a dataclass with slots whose instances are immutable, compared and hashed by their fields. The
    standard library sees an ordinary dataclass: ``fields``, ``replace``, ``asdict``, ``match`` and ``copy`` work."""
    # Without a docstring, dataclass would compute a signature for it.
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
    """Return a function that reads the fields ``names`` of a value."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _compiled(value: type[Any], held: Sequence[Field[Any]]) -> Any:
    """Return ``__init__`` as ``dataclass`` would write it."""
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


def late(name: str) -> Callable[..., Any]:
    """Return the function or class ``module:name``, imported when it is called."""

    def function(*args: Any, **named: Any) -> Any:
        return resolve_name(name)(*args, **named)

    return function


class Once(Generic[T]):
    """Calls ``make`` at the first call and returns its value then and later. Thread-safe."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = RLock()
        self.made: T | None = None
        """The value, if it was needed already."""

    def __call__(self) -> T:
        with self._lock:
            if self.made is None:
                self.made = self._make()
            return self.made
