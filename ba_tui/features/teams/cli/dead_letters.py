"""What was set aside on the Redis server of teams, because nobody could handle it."""

from __future__ import annotations

import json
import time
from pathlib import Path

from ba_tui.cli.config import print_line
from ba_tui.core.errors import UsageError
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line
from ba_tui.features.teams.cli.worker import team_settings

LINE = 160
"""Characters of a reason."""


async def print_dead_letters(folder: Path, *, as_json: bool) -> int:
    """Raises UsageError where no server is set, StorageError when it can't be used."""
    from ba_tui.features.teams.engine.over_redis.server import RedisServer  # noqa: PLC0415 - --help must not pay for it
    from ba_tui.features.teams.engine.over_redis.state import dead_letters  # noqa: PLC0415

    settings = team_settings({}, folder)
    if settings.bus_url is None:
        hint = "Set team.bus_url. Within one process they last as long as the team."
        raise UsageError("Messages that nobody could handle are kept on a Redis server, and none is set.", hint)
    server = RedisServer(settings.bus_url)
    try:
        letters = await dead_letters(server)
    finally:
        await server.close()
    if as_json:
        rows = [
            {
                "topic": each.topic,
                "group": each.group,
                "reason": each.reason,
                "id": each.message.id,
                "from": each.message.sender,
                "type": each.message.type,
                "team": each.message.team,
                "at": each.message.at,
            }
            for each in letters
        ]
        print_line(json.dumps(rows, indent=2))
        return 0
    for each in letters:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.message.at))
        words = f"{at}  {each.topic}  {each.message.type} from {each.message.sender}: {one_line(each.reason, LINE)}"
        print_line(paintable(words, newlines=False))
    if not letters:
        print_line("Nothing was set aside.")
    return 0
