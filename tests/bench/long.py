"""A session of 10 000 messages against one of 100: how soon it is there, and what a key costs in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle, islice

from ba_tui.core.events import MessageDone, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, ToolUse, user
from ba_tui.core.results import ToolResult
from ba_tui.resources import folder_slug
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.records import Header
from tests.bench.figures import Effort, Figure, median, p95
from tests.bench.place import KEYS, MODEL, Place, box, patiently, place
from tests.bench.prose import answer

LAST = "this was the newest answer of all"
PART = answer(1_500)


def write_session(spot: Place, messages: int) -> None:
    """Turns of four messages each: a prompt, an answer with a call, its output, an answer in Markdown."""
    folder = spot.home / "sessions" / folder_slug(spot.folder.resolve()) / f"{messages:032x}"
    journal = JournalFile(folder, Header(folder.name, str(spot.folder.resolve()), time.time() - 3600, MODEL))
    turns = messages // 4
    for number in range(turns):
        call = ToolUse(f"toolu_{number}", "read_file", {"path": f"part-{number}.csv"})
        words = LAST if number == turns - 1 else f"Part {number}\n\n{PART}"
        journal.append(TurnStarted(user(f"What is in part {number}?")))
        journal.append(MessageDone(Message("assistant", (Text("I look."), call), model=MODEL, origin="assistant")))
        journal.append(ToolStarted(call, f"part-{number}.csv"))
        journal.append(ToolFinished(call.id, ToolResult("a,b\n1,2\n" * 20, summary="20 lines"), 0.01))
        journal.append(MessageDone(Message("assistant", (Text(words),), model=MODEL, origin="assistant")))
        journal.append(TurnEnded("done"))
    journal.close()


def opened(spot: Place, effort: Effort) -> tuple[float, list[float]]:
    """Seconds from the first screen until the newest answer shows, and what keys take then."""
    with spot.app("-c") as terminal:
        begin = terminal.until(box)
        shown = terminal.until(lambda screen: LAST in screen) - begin
        terminal.watch(2.0)
        return shown, patiently(terminal, list(islice(cycle(KEYS), 2 * effort.keys)), 0.05)


def sessions(effort: Effort) -> Iterator[Figure]:
    with place() as few, place() as many:
        write_session(few, 100)
        write_session(many, 10_000)
        # In turns, so that what else the machine does is in both; the first also lists sessions that nobody has opened.
        looks = [(opened(few, effort), opened(many, effort)) for _ in range(effort.starts // 2 + 2)][1:]
    short, long = (median([look[which][0] for look in looks]) for which in (0, 1))
    short_keys, keys = ([key for look in looks for key in look[which][1]] for which in (0, 1))
    against = f"100 messages: {short:.2f}"
    yield Figure("10,000 messages, first screen to newest answer", long, "s", 0.5, against)
    yield Figure("the same against 100 messages", long / short, "×", 1.2)
    yield Figure("a key in 10,000 messages, p95", p95(keys) * 1e3, "ms", 30.0)
    ratio = p95(keys) / p95(short_keys)
    yield Figure("the same against 100 messages", ratio, "×", 1.2, f"100 messages: {p95(short_keys) * 1e3:.1f} ms")
