"""``python -m tests.eval.figures [--cases FILE] [--errors N]``: how well the figures of answers are judged.

Without ``--cases`` the handwritten cases are judged. Ends with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.eval.figures.cases import handwritten, load
from tests.eval.figures.scoring import bars, confusion, judged


def main() -> int:
    """Judge and print the table."""
    flags = argparse.ArgumentParser(description="Compare verdicts on figures with labels.")
    flags.add_argument("--cases", type=Path, metavar="FILE", help="JSON lines of labelled answers")
    flags.add_argument("--errors", type=int, default=0, metavar="N", help="show so many figures that were misjudged")
    given = flags.parse_args()
    cases = load(given.cases) if given.cases else handwritten()
    begun = time.process_time()
    scored = judged(cases)
    spent = time.process_time() - begun
    found = bars(scored)
    print(f"{len(cases)} answers, {len(scored)} labelled spans, {1000 * spent / max(1, len(cases)):.0f} ms CPU each\n")
    for bar in found:
        print(f"{'ok ' if bar.met else 'MISSED'} {bar.name:34} {bar.value:.3f} (bar {bar.limit})")
    print(f"\n{confusion(scored)}")
    for each in [each for each in scored if _misjudged(each.label, each.found)][: given.errors]:
        print(f"{each.case}: {each.text!r} is {each.label}, judged {each.found} ({', '.join(sorted(each.tags))})")
    return 0 if all(bar.met for bar in found) else 1


def _misjudged(label: str, found: str) -> bool:
    return (label == "unsourced") != (found == "unsourced") or (label == "not_a_figure") != (
        found in {"not_a_figure", "none"}
    )


if __name__ == "__main__":
    sys.exit(main())
