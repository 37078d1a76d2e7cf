"""Values that features contribute: changing tools, lines of the doctor's report, shares of the context report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, Literal, TypeAlias, TypeVar, cast

from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen

T = TypeVar("T")
CheckState: TypeAlias = Literal["ok", "warn", "fail"]


@frozen
class CheckResult:
    """A line of the doctor's report. ``fix`` says what to do, empty if all is well. ``detail``: further lines."""

    name: str
    state: CheckState
    text: str
    fix: str = ""
    detail: str = ""


@frozen
class SourceTool:
    """A tool of a source and the ``file`` that defines it, if any."""

    tool: Tool
    file: str = ""


@frozen
class ToolsFound:
    """The current tools of a source, and a sentence for each that cannot be used."""

    tools: Sequence[SourceTool] = ()
    problems: Sequence[str] = ()


@frozen
class ToolSource:
    """Tools that may change while ba runs, from ``origin``. ``look`` is called whenever tools are listed, and may
    block; the same objects mean no change. ``outdated`` returns whether a look within a turn would find changes; by
    default tools are listed once a turn."""

    origin: Literal["built-in", "package", "workflow", "mcp", "feature"]
    look: Callable[[], ToolsFound]
    outdated: Callable[[], bool] = bool


def nothing_said(transcript: Transcript) -> str:
    return ""


@frozen
class MarkedShare:
    """A share of the context report: results and notes that contain ``mark``, whose first group names the item.
    ``listed``: what the end of the system prompt says of it; ``detail``: a line about the whole share."""

    label: str
    mark: re.Pattern[str]
    listed: str = ""
    detail: Callable[[Transcript], str] = nothing_said


class Ports(Mapping[type[Any], object]):
    """What the base and the open features offer under types. Offers are named ``module:class``, so that a type is
    imported by those who look it up, and what is offered is made by the function beside the name at each look-up."""

    def __init__(self) -> None:
        self._offers: dict[str, Callable[[], object]] = {}

    def add(self, offers: Mapping[str, Callable[[], object]]) -> None:
        """Add ``offers``; they replace earlier ones under the same names."""
        self._offers |= offers

    def offer(self, kind: type[T]) -> Callable[[], T]:
        """Return the function that returns what is offered now. Raises KeyError if nothing is."""
        return cast("Callable[[], T]", self._offers[f"{kind.__module__}:{kind.__qualname__}"])

    def __getitem__(self, kind: type[T]) -> T:
        return self.offer(kind)()

    def __iter__(self) -> Iterator[type[Any]]:
        return (resolve_name(name) for name in self._offers)

    def __len__(self) -> int:
        return len(self._offers)
