"""``python -m tests.bench``: measures the whole table and prints it. Nothing is measured here."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.bench import (
    caching,
    charts,
    compressing,
    confined,
    counting,
    data,
    engine,
    flow,
    grid,
    grounding,
    long,
    memory,
    names,
    planning,
    requests,
    rest,
    servers,
    skills,
    start,
    steps,
    verdicts,
    worker,
)
from tests.bench.figures import HEAD, QUICK, Effort, Family, Figure, as_json, line

FAMILIES: dict[str, Family] = {
    "words": start.words,
    "screen": start.screen,
    "flags": requests.flags,
    "request": requests.requests,
    "steps": steps.few,
    "many-steps": steps.many,
    "long-answer": flow.long_answer,
    "trickle": flow.trickle,
    "agents": flow.agents,
    "idle": rest.idle,
    "sessions": long.sessions,
    "engine": engine.engine,
    "tokens": counting.tokens,
    "names": names.names,
    "skills": skills.skills,
    "verdicts": verdicts.verdicts,
    "confined": confined.confined,
    "worker": worker.worker,
    "mcp": servers.mcp,
    "data": data.data,
    "grid": grid.grid,
    "charts": charts.charts,
    "grounding": grounding.grounding,
    "caching": caching.caching,
    "compressing": compressing.compressing,
    "memory": memory.memory,
    "plans": planning.overhead,
    "planning": planning.planning,
}


PAGE = Path(__file__).resolve().parents[2] / "config" / "guide" / "speed.md"
BEGIN, END = "<!-- the table of tests.bench begins -->", "<!-- the table of tests.bench ends -->"


def publish(figures: list[Figure]) -> None:
    """Put the table into the guide, in place of the one before."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    table = "\n".join([HEAD, *map(line, figures)])
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure ba against its targets.")
    parser.add_argument("--only", action="append", choices=FAMILIES, help="measure this family only; repeatable")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and shorter looks")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a Markdown table")
    parser.add_argument("--guide", action="store_true", help="also put the table into the guide")
    given = parser.parse_args()
    effort = QUICK if given.quick else Effort()
    figures: list[Figure] = []
    if not given.json:
        print(HEAD, flush=True)
    for name in given.only or FAMILIES:
        for figure in FAMILIES[name](effort):
            figures.append(figure)
            if not given.json:
                print(line(figure), flush=True)
    if given.json:
        print(as_json(figures))
    if given.guide:
        publish(figures)
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
