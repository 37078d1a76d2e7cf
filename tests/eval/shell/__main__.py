"""``python -m tests.eval.shell [--count N] [--seed S]``: judges commands and runs those that need no question.

Prints each command that had an effect or showed a secret, and ends with 1 when there was one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.eval.shell.commands import command
from tests.eval.shell.execution import Level, Runner, judges_of


def main() -> int:
    """Run as many commands as the flags say."""
    flags = argparse.ArgumentParser(description="Run what ba allows unasked over hostile files; look for effects.")
    flags.add_argument("--count", type=int, default=2_000, metavar="N", help="commands to make (default 2000)")
    flags.add_argument("--seed", type=int, default=0, metavar="S", help="where the choices begin (default 0)")
    flags.add_argument("--verbose", action="store_true", help="print every command that runs")
    given = flags.parse_args()
    counts: Counter[str] = Counter()
    with TemporaryDirectory(prefix="ba-shell-") as place:
        runner = Runner(Path(place) / "world")
        judges = judges_of(runner.world)
        for number in range(given.count):
            text = command(Random(f"{given.seed}/{number}"))
            levels: set[Level] = {setting.level for setting, judge in judges.items() if judge(text, runner.world.work)}
            counts["judged"] += 1
            for level in sorted(levels):
                if level == "held" and not runner.confines():
                    continue
                counts[f"run, {level}"] += 1
                if given.verbose:
                    print(f"{level}: {text!r}", flush=True)
                if effect := runner.run(text, level):
                    counts["effects"] += 1
                    print(f"{given.seed}/{number} {level}: {effect.command!r}: {effect.what}", flush=True)
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    return 1 if counts["effects"] else 0


if __name__ == "__main__":
    sys.exit(main())
