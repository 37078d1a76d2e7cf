"""What finding skills costs: the first look at 200 of them, and every later one."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ba_tui.skills.catalog import SkillCatalog, SkillRoot
from tests.bench.figures import Effort, Figure, median
from tests.entering import open_ingress

SKILLS = 200
BODY = "A line of instructions that nobody needs before the skill is wanted.\n" * 100


def skills(effort: Effort) -> Iterator[Figure]:
    """CPU of this process; YAML is loaded before, as the settings have by then."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for number in range(SKILLS):
            one = folder / f"skill-{number}"
            one.mkdir()
            head = f"---\nname: skill-{number}\ndescription: Does thing {number}. Use it when {number} comes up.\n---\n"
            (one / "SKILL.md").write_text(head + BODY, "utf-8")
        SkillCatalog([SkillRoot(folder / "skill-0", "bundled")], open_ingress()).look()
        first: list[float] = []
        again: list[float] = []
        for _ in range(effort.starts):
            catalog = SkillCatalog([SkillRoot(folder, "bundled")], open_ingress())
            first.append(_look(catalog))
            again.append(_look(catalog))
            assert len(catalog.usable()) == SKILLS
    yield Figure(f"{SKILLS} skills, the first look at them, CPU", 1_000 * median(first), "ms", 100.0)
    yield Figure("the same once more", 1_000 * median(again), "ms", 20.0)


def _look(catalog: SkillCatalog) -> float:
    start = time.process_time()
    catalog.look()
    return time.process_time() - start
