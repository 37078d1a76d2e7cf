"""An example of a feature in a package of its own: a tool, a shell command, a slash command and a screen."""

from ba_tui.command import AppParts, Command
from ba_tui.feature import Feature

WEATHER = Feature(
    "weather",
    open="ba_weather.session:open_weather",
    app=AppParts(
        commands=(
            Command(
                "weather",
                "Show the weather of a city",
                "ba_weather.screen:show_weather",
                argument="[city]",
                cli="ba_weather.session:print_weather",
                help="Print the weather of a city.",
            ),
        )
    ),
)
