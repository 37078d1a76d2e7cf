"""``python -m tests.eval.traps [--cases FILE] [--json] [--errors N]``: how well the traps of the cases are found."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.eval.traps.cases import FOLDER, HOLDOUT, load
from tests.eval.traps.measure import measured, report


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.eval.traps", description=__doc__)
    parser.add_argument(
        "--cases", type=Path, help="a YAML or JSON-lines file or a folder (default: all but the holdout)"
    )
    parser.add_argument("--json", action="store_true", help="print figures and errors as JSON")
    parser.add_argument("--errors", type=int, default=10, metavar="N", help="list at most N misses and false warnings")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose id holds TEXT")
    given = parser.parse_args()
    cases = (
        load(given.cases) if given.cases else [each for path in sorted(FOLDER.glob("*.yaml")) for each in load(path)]
    )
    cases = [each for each in cases if given.only in each.id]
    # The cases kept back tell nothing but totals.
    quiet = given.cases is not None and given.cases.resolve() == HOLDOUT.resolve()
    score = measured(cases)
    if given.json:
        print(json.dumps(score.figures() | ({} if quiet else {"errors": score.errors[: given.errors]}), indent=2))
    else:
        print(report(score, 0 if quiet else given.errors, kinds=not quiet))


main()
