"""What grounded figures cost: judging a long answer, and indexing what tools return while a step runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from random import Random

from ba_tui.core.events import Event, ToolFinished, ToolStarted, event_to_json
from ba_tui.core.messages import ToolUse
from ba_tui.core.results import ToolResult
from ba_tui.features.figures.check import check
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.session_evidence import EvidenceThread
from tests.bench.figures import Effort, Figure, median
from tests.bench.flow import ORDER
from tests.bench.place import Place, place, said
from tests.bench.prose import CLOSING

OBSERVATIONS, SECTIONS = 200, 25
PAGES = 15_000
"""Characters of five pages."""
RESULTS, SIZE = 80, 125_000
"""10 MB of results."""
REGIONS = ("North", "South", "East", "West", "Centre", "Coast", "Hills", "Lakes", "Plains", "Isles", "Delta", "Ridge")

PRODUCTS = [
    f"{first}{second}"
    for first in ("Oak", "Elm", "Ash", "Fir")
    for second in ("table", "chair", "bench", "desk", "shelf")
]


def units(number: int, place: int) -> int:
    return Random(number * 100 + place).randrange(10_000, 99_999)


def observation(number: int) -> str:
    rows = (f"{name},{units(number, at)},{(number * 31 + at) * 1.37:.2f}" for at, name in enumerate(REGIONS))
    return "\n".join(("region,units,price", *rows))


def answer() -> str:
    """Five pages: of each eighth result four figures and a difference, and now and then one that is nowhere."""
    parts: list[str] = []
    for section in range(SECTIONS):
        number = section * OBSERVATIONS // SECTIONS
        first, second = REGIONS[section % 12], REGIONS[(section + 5) % 12]
        one, two = units(number, section % 12), units(number, (section + 5) % 12)
        lost = f" Returns rose to {one / 31:.1f} units." if section % 5 == 0 else ""
        parts.append(
            f"## Product {PRODUCTS[number % 20]} {number}\n\nThe region {first} sold {one:,} units and {second} sold "
            f"{two:,} units, a difference of {abs(one - two):,} units.{lost}"
        )
    filler = " Nothing else is known of it, and nobody asked for more than that."
    return "\n\n".join(part + filler * ((PAGES // SECTIONS - len(part)) // len(filler)) for part in parts)


def judging(effort: Effort) -> Iterator[Figure]:
    """CPU for one answer, the evidence being there."""
    evidence = Evidence()
    evidence.add_words("compare the regions")
    for number in range(OBSERVATIONS):
        evidence.add(
            f"R{number}", observation(number), f"SELECT * FROM sales WHERE product = '{PRODUCTS[number % 20]} {number}'"
        )
    text = answer()
    times: list[float] = []
    for _ in range(max(3, effort.starts)):
        begin = time.process_time()
        check(text, evidence)
        times.append(1000 * (time.process_time() - begin))
    figures = len(check(text, evidence).verdicts)
    name = f"judge {figures} figures of a 5-page answer, {OBSERVATIONS} results"
    yield Figure(name, median(times), "ms CPU", 50)


def indexing(effort: Effort) -> Iterator[Figure]:
    """What 10 MB of results cost the loop when figures are checked, as a share of keeping them in the journal."""
    del effort
    whole = "\n".join(observation(number) for number in range(2_000))
    events: list[Event] = []
    for at in range(RESULTS):
        call = ToolUse(str(at), "shell", {"command": f"cat {at}"})
        start = at * 1_000 % (len(whole) - SIZE)
        events += [ToolStarted(call), ToolFinished(str(at), ToolResult(whole[start : start + SIZE]))]
    begin = time.thread_time()
    for event in events:
        event_to_json(event)
    kept = time.thread_time() - begin
    thread = EvidenceThread(str)
    begin, both = time.thread_time(), time.process_time()
    for event in events:
        thread.add((event,))
    spent = time.thread_time() - begin
    asyncio.run(thread.run(lambda seen: len(seen.calls)))
    yield Figure("hand 10 MB of results to the index, of a step's CPU", 100 * spent / kept, "%", 10)
    yield Figure("index 10 MB of results beside the loop", time.process_time() - both, "s CPU", float("inf"))
    thread.close()


def streaming(effort: Effort) -> Iterator[Figure]:
    """The same long answer with figures checked and not, each in an app of its own."""
    with place() as spot:
        spent = {mode: median([streamed(spot, mode) for _ in range(min(3, effort.starts))]) for mode in ("off", "show")}
    more = 100 * (spent["show"] / spent["off"] - 1)
    yield Figure("200 KB answer with figures checked, more CPU", more, "%", 10, f"of {spent['off']:.1f} s")


def streamed(spot: Place, mode: str) -> float:
    """CPU seconds from the prompt until the answer is on the screen and its figures are below it."""
    assert spot.server
    (spot.home / "config.yaml").write_text(f"analysis:\n  verify: {mode}\n")
    with spot.ready() as terminal:
        terminal.type("ж\x7f")
        terminal.watch(4.0)
        after = len(spot.server.lines)
        begin = terminal.cpu()
        said(terminal, ORDER)
        spot.server.line("first", after)
        terminal.painted(CLOSING, longest=120)
        if mode == "show":
            terminal.until(lambda screen: "/verify" in screen, longest=20)
        terminal.drain(1.0)
        return terminal.cpu() - begin


def grounding(effort: Effort) -> Iterator[Figure]:
    yield from judging(effort)
    yield from indexing(effort)
    yield from streaming(effort)
