"""What making a conversation shorter by rules costs the process, its tokens already counted once."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ba_tui.context.compression.extract import extract
from ba_tui.providers.token_counter import DynamicTokenCounter
from tests.bench.figures import Effort, Figure, median
from tests.eval.compression.stories import Story, stories

TOKENS = 150_000
SHARES = (0.5, 0.25, 0.1)


def compressing(effort: Effort) -> Iterator[Figure]:
    """CPU of EXTRACT over the written conversations, each made about as long as the target says."""
    spent: dict[float, list[float]] = {share: [] for share in SHARES}
    for story in _told():
        counter = DynamicTokenCounter()
        counter.conversation(story.messages)
        for share in SHARES:
            begin = time.process_time()
            extract(story.messages, int(TOKENS * share), counter.conversation)
            spent[share].append(1_000 * (time.process_time() - begin))
    for share, values in spent.items():
        name = f"EXTRACT of {TOKENS:,} tokens to {share:.0%}, CPU, the slowest of {len(values)}"
        yield Figure(name, max(values), "ms", 300.0, f"their median {median(values):.0f} ms")


def _told() -> Iterator[Story]:
    """Each story with as much filler as brings it to the length that is measured."""
    counter = DynamicTokenCounter()
    for number, short in enumerate(stories(scale=0.5)):
        size = counter.conversation(short.messages)
        scale = 0.5 * TOKENS / size
        yield next(story for place, story in enumerate(stories(scale=scale)) if place == number)
