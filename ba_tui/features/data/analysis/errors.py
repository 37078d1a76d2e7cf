"""Errors of data and queries, and messages between ba and its helper processes: frozen values as JSON, and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from ba_tui.core.errors import BaError
from ba_tui.core.ports.tables import Progress
from ba_tui.core.text.wording import one_line, similar
from ba_tui.processes.serving import HandlerFailed


class AnalysisError(BaError):
    """Base class. ``str(error)`` is one line for users and models; ``hint`` is what to do."""

    kind = "execution_error"


class DataRefused(AnalysisError):
    kind = "permission_denied"


class DataUnreadable(AnalysisError):
    kind = "validation_error"


class QueryRefused(AnalysisError):
    kind = "permission_denied"


class QueryFailed(AnalysisError):
    """``kind`` is ``validation_error`` for wrong SQL, ``timeout`` or ``resource_error`` for a limit."""

    def __init__(self, message: str, hint: str = "", kind: str = "validation_error") -> None:
        super().__init__(message, hint)
        self.kind = kind


class UnknownTable(AnalysisError):
    kind = "not_found"


class SourceFailed(AnalysisError):
    kind = "dependency_error"


class EngineFailed(AnalysisError):
    kind = "execution_error"


MOST_NAMES = 12


def nearest_names(name: str, known: Iterable[str], label: str) -> str:
    """Return a hint with the names most similar to ``name``, else the first names. ``label``: "Tables", "Columns"."""
    names = list(dict.fromkeys(known))
    folded = {each.lower(): each for each in names}
    close = [folded[each] for each in similar(name.lower(), folded)]
    close += [each for each in names if name.lower() in each.lower() and each not in close]
    if close:
        return f"Did you mean {' or '.join(close[:3])}?"
    if not names:
        return f"No {label.lower()} are known yet."
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{label}: {', '.join(names[:MOST_NAMES])}{more}."


Reader: TypeAlias = Callable[[Any], Any]


def decoded(kind: Any, reply: object) -> Any:
    """Return ``reply`` as a value of ``kind``: a frozen class, a tuple of one type, or a JSON type."""
    return _reader(kind)(reply)


def progress_for(listener: Callable[[Progress], None] | None) -> Callable[[object], None] | None:
    """Return what passes the progress of a helper to ``listener``."""
    return listener and (lambda value: listener(decoded(Progress, value)))


def encoded(value: Any) -> Any:
    """Return a frozen value, or a list of them, as JSON types. Rows are passed unchanged: ``asdict`` would copy each
    cell."""
    kind: Any = value.__class__
    if kind is list or kind is tuple:
        return [encoded(item) for item in value] if value and _names(value[0].__class__) else value
    names = _names(kind)
    return {name: encoded(getattr(value, name)) for name in names} if names else value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the field names of a frozen class; empty for other types."""
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


# Errors as one line and a hint.

LONGEST = 300


def failed(message: str, hint: str = "", kind: str = "validation_error") -> HandlerFailed:
    """Return the error of a wrong query, or one that exceeds a limit."""
    return HandlerFailed(f"query_failed:{kind}", f"{one_line(message, LONGEST)}\n{hint}")


def unreachable(message: str, hint: str = "") -> HandlerFailed:
    """Return the error of a source that can't be used."""
    return HandlerFailed("source_failed", f"{one_line(message, LONGEST)}\n{hint}")


def cleaned(error: HandlerFailed, secrets: Iterable[str]) -> HandlerFailed:
    """Return ``error`` without any of ``secrets``."""
    text = str(error)
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return HandlerFailed(error.kind, text)


def first_line(error: BaseException) -> str:
    """Return the first line of an error, without the excerpt of the statement."""
    text = str(error).strip() or type(error).__name__
    return text.split("\n", 1)[0].strip()
