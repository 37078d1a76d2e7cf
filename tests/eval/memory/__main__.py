"""``python -m tests.eval.memory [--cases FILE]``: prints how well memory finds what was said.

Without ``--cases``, the handwritten dialogues and facts. The last line names the figures with all parts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles

from tests.eval.memory.cases import BadCases, Case, loaded
from tests.eval.memory.handwritten import handwritten, unrelated
from tests.eval.memory.measure import DEPTHS, PARTS, Ranks, Store, ranks, reminders, stores


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the tables. Exits with 2 when there are no cases."""
    flags = argparse.ArgumentParser(prog="python -m tests.eval.memory", description=__doc__)
    flags.add_argument("--cases", type=Path, metavar="FILE", help="JSON lines of memories with questions")
    flags.add_argument("--embedder", default="fuse", choices=["fuse", "e5", "none"], help="for vectors")
    flags.add_argument("--only", action="store_true", help="measure all parts together, not without each of them")
    flags.add_argument("--bare", action="store_true", help="leave out speakers, sessions and times")
    flags.add_argument("--vectors", type=Path, metavar="FILE", help="keep vectors here for the next run")
    given = flags.parse_args(arguments)
    try:
        cases = loaded(given.cases, bare=given.bare) if given.cases else handwritten(bare=given.bare)
    except BadCases as error:
        sys.exit(_refused(str(error)))
    questions = sum(len(case.questions) for case in cases)
    if not questions:
        sys.exit(_refused("No case has a question with evidence."))
    print(f"{len(cases)} cases, {sum(len(case.entries) for case in cases)} memories, {questions} questions\n")
    with stores(cases, "" if given.embedder == "none" else given.embedder, given.vectors) as found:
        _report(found, () if given.only else PARTS)


def _report(found: Sequence[tuple[Case, Store]], parts: Sequence[str]) -> None:
    every = ranks(found)
    head = "  ".join(f"{f'@{depth}':>5}" for depth in DEPTHS)
    print(f"{'':22} {head}   mrr")
    print(_row("all parts", every))
    for part in parts:
        print(_row(f"without {part}", ranks(found, part)), flush=True)
    print()
    for kind in every.kinds:
        print(f"{kind:22} {'  '.join(f'{every.recall(depth, kind):5.1f}' for depth in DEPTHS)}")
    prompts = reminders(found, unrelated())
    print(
        f"\ninjected when relevant / when not: {prompts.evidence:.1f} % of questions get evidence"
        f" ({prompts.questions:.1f} % get anything) / {prompts.unrelated:.1f} % of unrelated prompts get anything"
    )
    slow = quantiles(every.seconds, n=20)[-1] if len(every.seconds) > 1 else every.seconds[0]
    print(f"p95 {1000 * slow:.1f} ms a question")
    print(every.line())


def _row(name: str, of: Ranks) -> str:
    return f"{name:22} {'  '.join(f'{of.recall(depth):5.1f}' for depth in DEPTHS)}  {of.mrr:.2f}"


def _refused(message: str) -> int:
    print(message, file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
