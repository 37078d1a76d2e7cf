"""The tool ``weather`` and the command ``ba weather``."""

from typing import Any

from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Tool
from ba_tui.feature import OpenFeature, SessionContext

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def look_up(city: str) -> str:
    return f"{city}: 21 °C, sunny"


def open_weather(context: SessionContext) -> OpenFeature:
    """Called once for each session; ``context`` has its settings, folders and tools."""

    async def run(args: dict[str, Any], call: Call) -> ToolResult:
        return ToolResult(look_up(args["city"]))

    tool = Tool("weather", "Return the weather of a city.", SCHEMA, run, effect=Effect.READ)
    return OpenFeature(tools=(tool,))


def print_weather(city: str) -> None:
    """Print the weather of CITY."""
    print(look_up(city))
