"""Facts of a model as its server tells them, and how single values are read. What is not told, or wrong, is None."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, cast

from ba_tui.core.provider import Prices
from ba_tui.core.values import frozen

SMALLEST, LARGEST = 256, 100_000_000
"""Tokens that a window or an answer may have; a server that claims less or more is wrong."""
DEAREST = 100_000.0
"""US dollars per million tokens. A price beyond is one in another unit."""
MILLION = 1_000_000


@frozen
class ModelFacts:
    """``window`` and ``max_output`` in tokens. ``tools``: calls tools; ``thinking``: takes an effort; ``temperature``:
    takes one. None: the server did not say."""

    name: str
    window: int | None = None
    max_output: int | None = None
    prices: Prices | None = None
    vision: bool | None = None
    tools: bool | None = None
    thinking: bool | None = None
    temperature: bool | None = None
    owner: str = ""
    """Who made the model, or which server this is, in the server's words."""


@frozen
class Listed:
    """An answer that was read: its models, and what was wrong with others, in one line each."""

    models: tuple[ModelFacts, ...] = ()
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> ModelFacts | None:
        """The model of that name; Ollama's may be asked for without their tag ``:latest``."""
        wanted = {name, f"{name}:latest"}
        return next((facts for facts in self.models if facts.name in wanted), None)


def merged(first: ModelFacts, *more: ModelFacts) -> ModelFacts:
    """``first``, and what it does not say from those after it."""
    for other in more:
        told = {each.name: getattr(other, each.name) for each in fields(other)}
        gaps = {name: value for name, value in told.items() if getattr(first, name) in (None, "")}
        first = replace(first, **gaps)
    return first


class Doubts:
    """Values that can't be right, collected by kind, so that 10,000 wrong models are one line and not as many."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, object]] = {}
        self._count: dict[str, int] = {}

    def tokens(self, name: str, what: str, *told: object) -> int | None:
        """The first of ``told`` that was told, as a number of tokens."""
        value = next((each for each in told if each is not None), None)
        number = _whole(value)
        if value is None or (number is not None and SMALLEST <= number <= LARGEST):
            return number
        return self._wrong(what, name, value)

    def prices(self, name: str, told: Sequence[object], unit: float) -> Prices | None:
        """``told``: input, output, cached input, writing the cache; ``unit`` makes them dollars per million tokens.

        Where a discount for cached input is not told, none is assumed.
        """
        numbers = [None if value is None else _amount(value) for value in told]
        first, last, *cached = numbers
        if told[0] is None or told[1] is None or -1 in numbers:
            # -1: a router's price, which depends on where the request goes.
            return None
        if first is None or last is None or not all(_fair(each, unit) for each in numbers if each is not None):
            return self._wrong("price", name, next(t for t, n in zip(told, numbers, strict=True) if not _fair(n, unit)))
        read, write = (first if each is None else each for each in cached)
        return Prices(*(round(each * unit, 6) for each in (first, last, read, write)))

    def lines(self) -> tuple[str, ...]:
        """A line for each kind of value that was wrong."""
        return tuple(self._line(what, *first) for what, first in self._first.items())

    def _wrong(self, what: str, name: str, value: object) -> None:
        self._first.setdefault(what, (name, value))
        self._count[what] = self._count.get(what, 0) + 1

    def _line(self, what: str, name: str, value: object) -> str:
        more = self._count[what] - 1
        others = f", and so do {more:,} more models" if more else ""
        return f"{shown(name)} has an invalid {what}, {shown(value)}{others}. ba does not use it."


def shown(value: object) -> str:
    """``value`` in quotes, short and on one line."""
    text = value if isinstance(value, str) else repr(value)
    return f"“{''.join(letter if letter.isprintable() else '?' for letter in text[:60])}”"


def switch(value: object) -> bool | None:
    """True or false where ``value`` says so plainly, else None."""
    return value if isinstance(value, bool) else None


def within(value: object, *wanted: str) -> bool | None:
    """Whether a list of names holds one of ``wanted``; None for what is no list of names."""
    if not isinstance(value, list):
        return None
    return any(name in wanted for name in cast("list[Any]", value) if isinstance(name, str))


def _whole(value: Any) -> int | None:
    number = _amount(value)
    return int(number) if number is not None and number == int(number) else None


def _amount(value: object) -> float | None:
    """A finite number, also one that was sent as text."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | str)
        or (isinstance(value, str) and len(value) > 40)
    ):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _fair(number: float | None, unit: float) -> bool:
    return number is not None and 0 <= number * unit <= DEAREST
