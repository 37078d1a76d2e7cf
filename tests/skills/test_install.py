"""An installation that is killed: the skill is the old one or the new one, and nothing of the killed one stays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from ba_tui.skills.install import SkillCandidate, install_skill, staged_copy
from tests.noticing.file_faults import crashes


def candidate(folder: Path, id: str, words: str) -> SkillCandidate:
    source = folder / words / id
    (source / "scripts").mkdir(parents=True)
    (source / "SKILL.md").write_text(f"---\nname: {id}\ndescription: {words}\n---\n")
    (source / "scripts" / "run.py").write_text(words)
    return staged_copy(source, folder / f"{words} copy")


def test_the_next_installation_removes_what_a_killed_one_left_and_brings_the_old_skill_back(tmp_path: Path) -> None:
    new, other = candidate(tmp_path, "forms", "new"), candidate(tmp_path, "tables", "other")
    old, numbers = candidate(tmp_path, "forms", "old"), count()

    def made() -> Path:
        root = tmp_path / f"skills {next(numbers)}"
        install_skill(old, root)
        (root / ".new-ideas_25" / "drafts").mkdir(parents=True)
        return root

    def install(root: Path, tell: Callable[[str], None]) -> None:
        install_skill(new, root)
        tell("new")

    seen: set[str] = set()
    left = 0
    for root, told in crashes(install, made):
        left += len(list(root.glob(".new-*/new")))
        install_skill(other, root)
        words = {(root / "forms" / name).read_text() for name in ("SKILL.md", "scripts/run.py")}
        now = (root / "forms" / "scripts" / "run.py").read_text()
        assert all(now in each for each in words)
        assert not told or now == "new"
        assert sorted(path.name for path in root.iterdir()) == [".new-ideas_25", "forms", "tables"]
        seen.add(now)
    assert seen == {"old", "new"}
    assert left > 5
