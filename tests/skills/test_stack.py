"""The activation stack: a call stack with a limit, whose mismatches are refused."""

from __future__ import annotations

import pytest

from ba_tui.core.results import ActiveSkill
from ba_tui.skills.activation import SkillRefused, SkillStack, framed, whole_in


def skill(id: str, by: str = "model") -> ActiveSkill:
    return ActiveSkill(id, f"{id}-1", "d", by="core" if by == "core" else "model")


def test_what_settings_started_is_no_depth_and_stays() -> None:
    stack = SkillStack([skill(f"core-{number}", "core") for number in range(4)])
    for name in ("a", "b", "c"):
        stack.push(skill(name))
    with pytest.raises(SkillRefused, match="At most 3"):
        stack.push(skill("d"))
    assert [each.id for each in stack.end("core-0")] == ["c", "b", "a", "core-0"]
    assert stack.path() == "core-1 → core-2 → core-3"


def test_instructions_are_whole_or_they_are_not() -> None:
    one = skill("a")
    text = framed(one, "First.\nLast.")
    assert whole_in(f"before\n{text}\nafter", one)
    assert not whole_in(text.replace("First.", "…"), one)
    assert not whole_in(text, ActiveSkill("a", "a-2", "d"))
