"""Values that features bring: tools that may change, lines of the doctor's report, shares of the context report."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen

CheckState: TypeAlias = Literal["ok", "warn", "fail"]


@frozen
class CheckResult:
    """One line of the doctor's report. ``fix`` says what to do; empty when all is well. ``detail``: more lines."""

    name: str
    state: CheckState
    text: str
    fix: str = ""
    detail: str = ""


@frozen
class JoiningTool:
    """A tool of a source, and the ``file`` that it comes from; empty when there is none."""

    tool: Tool
    file: str = ""


@frozen
class ToolsFound:
    """The tools that a source has now, and a sentence for each that can't be used."""

    tools: Sequence[JoiningTool] = ()
    problems: Sequence[str] = ()


@frozen
class ToolSource:
    """Tools that may change while ba runs; ``origin`` says where they come from. ``look`` is asked whenever
    tools are looked for, and may block. The same objects mean that nothing changed. ``outdated``: whether a look
    within a turn would bring others; by default tools are looked for once a turn."""

    origin: Literal["built-in", "package", "workflow", "mcp"]
    look: Callable[[], ToolsFound]
    outdated: Callable[[], bool] = bool


def nothing_said(transcript: Transcript) -> str:
    return ""


@frozen
class MarkedShare:
    """A share of the context report: results and notes that hold ``mark``, whose first group names the item.

    ``listed``: what the end of the system prompt says of it; ``detail``: a line about the whole.
    """

    label: str
    mark: re.Pattern[str]
    listed: str = ""
    detail: Callable[[Transcript], str] = nothing_said
