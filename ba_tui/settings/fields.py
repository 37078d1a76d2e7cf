"""What the settings' fields are made of: their descriptions, their checks and the kinds of numbers and texts.

No pydantic at import: it loads when something is checked that is not plainly right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Le, Lt


class FieldCheck:
    """Runs ``check`` on the value before or after its type is looked at. Raises ValueError there.

    A class of its own, because pydantic must not load with this module: most starts need nothing checked by it.
    """

    def __init__(self, check: Callable[[Any], object], *, first: bool = False) -> None:
        self.check = check
        self.first = first

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - see above

        if self.first:
            return core_schema.no_info_before_validator_function(self.check, handler(source))
        return core_schema.no_info_after_validator_function(self.check, handler(source))


def off_as_word(value: object) -> object:
    """``value`` for a setting that has ``off`` among its words; YAML reads that as a switch."""
    return "off" if value is False else value


def about(description: str) -> dict[str, str]:
    """What the JSON Schema and `ba config` say of a setting."""
    return {"description": description}


def _no_switch(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


def web_address(value: str) -> str:
    """Return ``value``. Raises ValueError when it is no address of a web server."""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("expected an address that begins with http:// or https://")
    return value


def finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("expected a finite number")
    return value


NUMBER = FieldCheck(_no_switch, first=True)
Whole = Annotated[int, NUMBER]
Address = Annotated[str, FieldCheck(web_address)]
Amount = Annotated[float, NUMBER, Ge(0), FieldCheck(finite)]
Seconds = Annotated[float, NUMBER, Gt(0), Le(600)]
Share = Annotated[float, NUMBER, Gt(0), Lt(1)]
Rounds = Annotated[Whole, Ge(0), Le(100)]
Count = Annotated[Whole, Ge(0)]
