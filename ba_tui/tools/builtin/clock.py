"""The tool now: date and time here or in a named time zone. The clock is handed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from ba_tui.core.messages import utc_now
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed


def now_tool(definition: Definition, clock: Callable[[], datetime] = utc_now) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - when somebody asks for the time

        moment = clock()
        name: str = args.get("timezone", "")
        try:
            local = moment.astimezone(ZoneInfo(name)) if name else moment.astimezone()
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            hint = "Use an IANA name such as Europe/Berlin, or leave it out."
            raise Failed("invalid_parameters", f"There is no time zone {name!r}.", hint) from error
        utc = moment.astimezone(UTC)
        zone = f" {name}" if name else ""
        text = f"{local:%A} {local.isoformat(timespec='seconds')}{zone} ({utc:%Y-%m-%dT%H:%M:%SZ} UTC)"
        # Two looks within a second are no repetition.
        return ToolResult(text, summary=f"{local:%Y-%m-%d %H:%M}", meta={"at": moment.timestamp()})

    facts = ToolFacts("calculation", target="timezone", repeatable=True)
    return Tool("now", definition.description, definition.input_schema, run, facts=facts)
