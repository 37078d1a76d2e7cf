"""The parts of a setting's field: its description, its checks, and types of numbers and texts.

This module does not import pydantic, which is loaded only for data that needs a full check.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, TypeAlias
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Le, Lt

from ba_tui.core.values import frozen

Who: TypeAlias = Literal["anyone", "project", "asked", "user"]
"""The least trusted source that may set a setting: a folder that is not trusted, a trusted project, a trusted project
after its own question that names the value, or the user only."""


@frozen
class Setter:
    """Who may set a setting, from which value.

    ``stricter``: values of a user's setting that a trusted project may set. ``lower``: a project may only lower the
    limit. ``question``: what a project asks for, with ``{value}``. ``names``: values are paths, which a project may
    choose below its own root, or models, of which a model file needs the question. ``refused``: keys and values that a
    project's entry of a list may not have.
    """

    who: Who = "user"
    stricter: tuple[object, ...] = ()
    lower: bool = False
    question: str = ""
    names: Literal["", "path", "model"] = ""
    refused: tuple[tuple[str, object], ...] = ()


USER = Setter()
MODEL = Setter("project", question="to run the model file {value}", names="model")
"""For settings that name a model."""


class FieldCheck:
    """Runs ``check``, which may raise ValueError, on a value before or after its type is checked.

    It replaces pydantic's validators, because pydantic must not load with this module.
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
    """Return ``value`` for a setting that accepts the word ``off``, which YAML parses as false."""
    return "off" if value is False else value


def about(description: str, who: Who | Setter = USER) -> dict[str, Any]:
    """Return the metadata of a setting: its description, and who may set it; by default the user only."""
    return {"description": description, "who": who if isinstance(who, Setter) else Setter(who)}


def _no_switch(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


def web_address(value: str) -> str:
    """Return ``value``. Raises ValueError when it is not the address of a web server."""
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


@frozen
class SettingsGroup:
    """A group of settings. Descriptions are in the fields, since reading them from docstrings would be slow."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
