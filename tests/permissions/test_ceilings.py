"""A ceiling only takes away: whatever rules and modes allow, a sub-agent may never do more than its parent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.effects import READ_ONLY, READING, AgentCeiling, Effect, Profile
from ba_tui.core.events import Mode
from ba_tui.core.tool import Tool
from ba_tui.permissions.verdicts import Allow, Ask, Bounds, Deny, JudgedCall, Judgement
from ba_tui.resources import places
from tests.permissions.toolset import EDIT, FETCH, PYTHON, READ, SHELL, lines, policy

CALLS: tuple[tuple[Tool, dict[str, Any]], ...] = (
    (READ, {"path": "a.txt"}),
    (READ, {"path": "../b.txt"}),
    (EDIT, {"path": "a.txt"}),
    (EDIT, {"path": ".env"}),
    (SHELL, {"command": "ls"}),
    (SHELL, {"command": "make"}),
    (SHELL, {"command": "cd sub && make; git status"}),
    (SHELL, {"command": "git log > a.txt"}),
    (SHELL, {"command": "make", "outside": True}),
    (PYTHON, {"code": "print(1)"}),
    (FETCH, {"url": "https://example.org/"}),
)
RULES = ("shell", "shell(make)", "outside(make)", "edit_file", "web_fetch", "read_file(../*)", "python")
PROFILES = ("reading", "working", "outside")
CEILINGS = st.builds(
    AgentCeiling,
    st.frozensets(st.sampled_from(Effect)) | st.just(frozenset(Effect)),
    st.none() | st.frozensets(st.sampled_from([tool.name for tool, _ in CALLS])),
    st.booleans(),
    st.frozensets(st.sampled_from([tool.name for tool, _ in CALLS])),
)
MODES: tuple[Mode, ...] = ("default", "accept-edits", "plan", "auto", "bypass")


def rank(judged: Judgement) -> int:
    return (Deny, Ask, Allow).index(type(judged))


def reach(judged: Judgement) -> int:
    """How far what is allowed at once may reach; nothing where it is not allowed at once."""
    if not isinstance(judged, Allow):
        return -1
    profiles: tuple[Profile, ...] = tuple(step.profile for step in judged.steps) or (judged.profile,)
    return max(PROFILES.index(profile.name) for profile in profiles)


@given(
    st.sampled_from(CALLS), CEILINGS, CEILINGS, st.sampled_from(MODES), st.sets(st.sampled_from(RULES)), st.booleans()
)
def test_no_verdict_for_a_child_is_wider_than_for_its_parent(
    new_folder: Any,
    call: tuple[Tool, Any],
    above: AgentCeiling,
    below: AgentCeiling,
    mode: Mode,
    rules: set[str],
    held: bool,
) -> None:
    root = new_folder("ceiling")
    bounds = Bounds(own=places(), bypass=True, confined=lambda: held, unheld=lambda: "" if held else "no sandbox")
    judging = policy(root, *lines("allow", *sorted(rules)), mode=mode, bounds=bounds)
    parent = JudgedCall(*call, root, "main/a-1", above)
    child = replace(parent, agent="main/a-1/b-1", ceiling=below.within(above))
    for mine, theirs in ((child, parent), (parent, replace(parent, ceiling=AgentCeiling()))):
        narrow, wide = judging.judge(mine), judging.judge(theirs)
        assert rank(narrow) <= rank(wide), (narrow, wide)
        assert reach(narrow) <= reach(wide), (narrow, wide)


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_that_only_reads_runs_what_reads_and_nothing_else(tmp_path: Path, mode: Mode) -> None:
    bounds = Bounds(own=places(), bypass=True, confined=lambda: True, unheld=str)
    judging = policy(tmp_path, *lines("allow", "shell", "edit_file"), mode=mode, bounds=bounds)

    def judged(tool: Tool, **args: Any) -> Judgement:
        return judging.judge(JudgedCall(tool, args, tmp_path, "main/explore-1", READ_ONLY))

    assert isinstance(judged(READ, path="a.txt"), Allow)
    listed = judged(SHELL, command="ls")
    assert isinstance(listed, Allow)
    assert listed.profile.name == READING.name
    for tool, args in ((EDIT, {"path": "a"}), (SHELL, {"command": "make"}), (FETCH, {"url": "https://x.org"})):
        refused = judged(tool, **args)
        assert isinstance(refused, Deny)
        assert "main/explore-1 is limited to: read" in refused.reason or mode == "plan"
    again = JudgedCall(SHELL, {"command": "ls"}, tmp_path, "main/explore-1", READ_ONLY, tried="a.txt")
    assert isinstance(judging.judge(again), Deny), "what tried to write may not run again with write access"
    assert "may run nothing outside" in str(judged(SHELL, command="ls", outside=True))
