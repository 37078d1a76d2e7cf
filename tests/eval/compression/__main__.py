"""``python -m tests.eval.compression``: prints how many facts each way of shortening keeps."""

from __future__ import annotations

import argparse

from tests.eval.compression.measure import BUDGETS, WAYS, Counted, Score
from tests.eval.compression.stories import KINDS_OF_FACT, stories


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
    print(f"| budget | way | kept | {' | '.join(KINDS_OF_FACT)} |")
    print(f"|---|---|---:|{'---:|' * len(KINDS_OF_FACT)}")
    lost: list[str] = []
    for budget in BUDGETS:
        for name, way in WAYS.items():
            score = Score()
            for story in told:
                score.add(story, way, budget)
            cells = " | ".join(f"{score.of(kind):.0%}" for kind in KINDS_OF_FACT)
            note = f" ({score.over} too large)" if score.over else ""
            print(f"| {budget:.0%} | {name} | {score.share:.1%}{note} | {cells} |", flush=True)
            if name == "EXTRACT":
                lost += [f"{budget:.0%} {words}" for words in score.lost]
    if given.by_story:
        for story in told:
            for budget in BUDGETS:
                score = Score()
                score.add(story, WAYS["EXTRACT"], budget)
                print(f"{story.name:16} {budget:.0%} {score.share:.1%}")
    if given.lost:
        print("\n".join(["", "Lost by EXTRACT:", *lost]))


if __name__ == "__main__":
    main()
