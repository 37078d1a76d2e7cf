"""``python -m tests.eval.compression``: prints how many facts each way of shortening keeps."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from tests.eval.compression.measure import BUDGETS, WAYS, Counted, Score
from tests.eval.compression.shapes import KEPT_BACK, SHAPES, conversation
from tests.eval.compression.stories import KINDS_OF_FACT, Story, stories
from tests.eval.compression.used import USED_KINDS, facts_used

SEEDS = 3
"""How many conversations of each shape are made."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.eval.compression", description=__doc__)
    parser.add_argument("--lost", action="store_true", help="also name the facts that EXTRACT loses")
    parser.add_argument("--by-story", action="store_true", help="also print what EXTRACT keeps of each story")
    given = parser.parse_args()
    told = list(stories())
    sizes = [Counted()(story.messages) for story in told]
    lengths = [len(story.messages) for story in told]
    print(
        f"{len(told)} conversations of {min(lengths)}–{max(lengths)} messages, {min(sizes):,}–{max(sizes):,} tokens, "
    )
    print(f"{sum(len(story.labels) for story in told)} labelled facts\n")
    lost = _table(told, KINDS_OF_FACT, WAYS)
    for shape in SHAPES:
        made = [story for seed in range(SEEDS) for story in facts_used(conversation(shape, seed), shape)]
        tuned = "kept back" if shape in KEPT_BACK else "used to choose weights"
        print(f"\n{shape} ({tuned}): {sum(len(story.labels) for story in made)} facts that later steps use\n")
        lost += _table(made, USED_KINDS, ("plain truncation", "EXTRACT"))
    if given.by_story:
        for story in told:
            for budget in BUDGETS:
                score = Score()
                score.add(story, WAYS["EXTRACT"], budget)
                print(f"{story.name:16} {budget:.0%} {score.share:.1%}")
    if given.lost:
        print("\n".join(["", "Lost by EXTRACT:", *lost]))


def _table(told: Sequence[Story], kinds: Sequence[str], ways: Iterable[str]) -> list[str]:
    """Prints a table, and returns what EXTRACT lost."""
    print(f"| budget | way | kept | {' | '.join(kinds)} |")
    print(f"|---|---|---:|{'---:|' * len(kinds)}")
    lost: list[str] = []
    for budget in BUDGETS:
        for name in ways:
            score = Score()
            for story in told:
                score.add(story, WAYS[name], budget)
            cells = " | ".join(f"{score.of(kind):.0%}" if score.asked[kind] else "" for kind in kinds)
            note = f" ({score.over} too large)" if score.over else ""
            print(f"| {budget:.0%} | {name} | {score.share:.1%}{note} | {cells} |", flush=True)
            if name == "EXTRACT":
                lost += [f"{budget:.0%} {words}" for words in score.lost]
    return lost


if __name__ == "__main__":
    main()
