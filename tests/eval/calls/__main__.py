"""``python -m tests.eval.calls [--cases FILE]``: prints the calls that are read out of each case, and the score.

The cases lie beside the checkout, one JSON object a line: ``suite, format, raw, expected {kind, …}, id``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.eval.calls.scoring import CASES, Figures, cases, judge


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.eval.calls", description=__doc__)
    parser.add_argument("--cases", type=Path, default=CASES, help=f"by default {CASES.name} of the shared data")
    parser.add_argument("--wrong", action="store_true", help="print only the cases that were read wrongly")
    given = parser.parse_args()
    figures, cut = Figures(), list[str]()
    for case in cases(given.cases):
        judged = judge(case)
        figures.add(judged)
        if judged.cut:
            cut.append(judged.id)
        if not judged.right or not given.wrong:
            print(f"{'right' if judged.right else 'WRONG'} {judged.id} {json.dumps(judged.got, ensure_ascii=False)}")
        if not judged.right:
            print(f"      expected {json.dumps(judged.expected, ensure_ascii=False)}")
    print("\n| suite | right |\n|---|---:|")
    for name, score in sorted(figures.suites.items()):
        print(f"| {name} | {score} |")
    if cut:
        print(f"\nCompared without an observation that the model had made up: {', '.join(cut)}")
    print(f"\n{figures}")


if __name__ == "__main__":
    main()
