"""The tool calculator: what is given to it and how the answer reads. The arithmetic is arithmetic.py."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ba_tui.core.results import ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.tools.definitions import Definition

if TYPE_CHECKING:
    from ba_tui.tools.builtin.arithmetic import Value

_SHORT = regex(r"(?!.*\*\*)[\d .+*/()-]{1,60}")
"""Sums and products that are done sooner than a thread begins."""


def calculator_tool(definition: Definition) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        expression = " ".join(args["expression"].split())
        value = _value(expression) if _SHORT.fullmatch(expression) else await asyncio.to_thread(_value, expression)
        sign = "≈" if value.rounded else "="
        return ToolResult(f"{expression} {sign} {value.text}", summary=f"{sign} {value.text}"[:60])

    facts = ToolFacts("calculation", target="expression")
    return Tool("calculator", definition.description, definition.input_schema, run, facts=facts)


def _value(expression: str) -> Value:
    from ba_tui.tools.builtin.arithmetic import evaluate  # noqa: PLC0415 - not before something is reckoned

    return evaluate(expression)
