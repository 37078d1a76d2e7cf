"""``python -m tests.eval.memory [--cases FILE] [--embedder NAME]``: how well memory finds what was said.

Without ``--cases``, the handwritten dialogues and facts. The last line names the figures with all parts.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import quantiles

from tests.eval.memory.cases import handwritten, loaded
from tests.eval.memory.measure import DEPTHS, PARTS, Ranks, ranks, stores, without


def main() -> None:
    """Measure and print the tables."""
    flags = argparse.ArgumentParser(description="Ask a memory questions whose evidence is known.")
    flags.add_argument("--cases", type=Path, metavar="FILE", help="JSON lines of memories with questions")
    flags.add_argument("--embedder", default="fuse", choices=["fuse", "e5", "none"], help="for vectors")
    flags.add_argument("--only", action="store_true", help="with all parts alone")
    given = flags.parse_args()
    cases = [case for case in (loaded(given.cases) if given.cases else handwritten()) if case.questions]
    questions = sum(len(case.questions) for case in cases)
    print(f"{len(cases)} cases, {sum(len(case.entries) for case in cases)} memories, {questions} questions\n")
    with stores(cases, "" if given.embedder == "none" else given.embedder) as found:
        every = ranks(found)
        head = "  ".join(f"{f'@{depth}':>5}" for depth in DEPTHS)
        print(f"{'':22} {head}   mrr")
        print(_row("all parts", every))
        for part in () if given.only else PARTS:
            print(_row(f"without {part}", ranks(found, without(part))))
        print()
        for kind in every.kinds:
            print(f"{kind:22} {'  '.join(f'{every.recall(depth, kind):5.1f}' for depth in DEPTHS)}")
    slow = quantiles(every.seconds, n=20)[-1] if len(every.seconds) > 1 else every.seconds[0]
    print(f"\np95 {1000 * slow:.1f} ms a question")
    print(every.line())


def _row(name: str, of: Ranks) -> str:
    return f"{name:22} {'  '.join(f'{of.recall(depth):5.1f}' for depth in DEPTHS)}  {of.mrr:.2f}"


if __name__ == "__main__":
    main()
