"""Roles from files, and agents used as roles."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.core.errors import UsageError
from ba_tui.features.teams.engine.roles import Roles, best_role
from tests.team.house import TeamHouse

SCOUT = """---
name: scout
description: Looks ahead.
agent: explore
capabilities: scouting, maps
tools: [read_file]
authority: 0.8
members: 2
maxLoops: 7
---
Look ahead.
"""


def roles(house: TeamHouse) -> Roles:
    from tests.delegating.house import AnyModel, ingress

    return Roles(AgentFiles(house._folders, ingress(house.folder), AnyModel(lambda: house.tools)))


def test_a_project_has_roles_of_its_own_beside_the_bundled_ones(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.role("scout", SCOUT)
    found = {each.role.name: each for each in roles(house).look()}
    scout = found["scout"].role
    assert (scout.agent, scout.tools, scout.members, scout.max_loops) == ("explore", ("read_file",), 2, 7)
    assert scout.capabilities == ("scouting", "maps")
    assert found["researcher"].source == "bundled"
    assert found["general"].agent
    assert not [each.warnings for each in found.values() if each.warnings]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\nname: scout\n", "not closed"),
        ("---\nname: scout\ndescription: x\n---\n", "no prompt"),
        ("---\nname: scout\nauthority: much\n---\nLook.\n", "authority must be a number from 0 to 1"),
        ("---\nname: scout\nmessages: bid, shout\n---\nLook.\n", "messages shout"),
        ("---\nname: scout\ncolour: red\n---\nLook.\n", "colour: not a field"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    house = TeamHouse(tmp_path)
    house.role("scout", text)
    (line,) = house.teams.problems()
    assert said in line
    assert "\n" not in line


def test_a_broken_file_takes_no_place_from_a_role_that_works(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.role("writer", "---\nname: writer\n")
    (words,) = (each.role.description for each in roles(house).look() if each.role.name == "writer")
    assert words.startswith("Writes")


def test_a_name_may_say_how_many_members(tmp_path: Path) -> None:
    (role,) = roles(TeamHouse(tmp_path)).named(["analyst*3"])
    assert role.members == 3


@pytest.mark.parametrize(
    ("name", "hint"), [("reseacher", "researcher"), ("analyst*0", "at most"), ("analyst*x", "at most"), ("", "ba team")]
)
def test_a_wrong_name_is_refused_with_the_nearest(tmp_path: Path, name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        roles(TeamHouse(tmp_path)).named([name])
    assert hint in caught.value.hint


def test_work_is_matched_with_capabilities(tmp_path: Path) -> None:
    known = [role for role in roles(TeamHouse(tmp_path)).usable() if role.agent != role.name]
    for work, name in {"Fact-check the report": "verifier", "Fix the failing test in parser.py": "developer"}.items():
        found = best_role(work, known)
        assert found
        assert found.name == name
    assert best_role("zzz", known) is None
