"""What the user allowed a skill to use: just these tools, for just this content, whatever a session file says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.results import ActiveSkill
from ba_tui.skills.active import ActiveSkills, ConfirmedSkills, SkillContext
from ba_tui.skills.catalog import SkillCatalog, SkillChoices, SkillRoot
from ba_tui.skills.content import digest_of
from tests.entering import open_ingress
from tests.skills.world import put

TOOLS = ("write_file", "shell(git:*)")


def active_in(folder: Path, *active: ActiveSkill) -> ActiveSkills:
    catalog = SkillCatalog([SkillRoot(folder / "skills", "user")], open_ingress())
    context = SkillContext(active=lambda: active)
    return ActiveSkills(catalog, SkillChoices(), ConfirmedSkills(folder / "confirmed.yaml"), context)


@pytest.mark.parametrize("tools", [("shell(*)",), (*TOOLS, "shell(*)"), ("write_file", "shell(git:*)", "edit_file")])
@pytest.mark.parametrize("restarted", [True, False])
def test_a_session_gives_a_skill_no_tool_that_the_user_did_not_allow(
    tmp_path: Path, tools: tuple[str, ...], restarted: bool
) -> None:
    put(tmp_path / "skills", "lister", head="allowed-tools: Write Bash(git:*)\n")
    skill = active_in(tmp_path).found("lister")
    honest = ActiveSkill("lister", "1", digest_of(skill), "", TOOLS)
    skills = active_in(tmp_path, honest)
    skills.confirmed.add("lister", honest.digest, TOOLS)
    assert skills.granted() == TOOLS
    forged = active_in(tmp_path, replace(honest, allowed_tools=tools))
    if not restarted:
        forged.confirmed = skills.confirmed
    assert forged.granted() == ()


def test_the_same_content_in_two_folders_keeps_both_answers(tmp_path: Path) -> None:
    first, second = ("shell(/a/run.sh:*)",), ("shell(/b/run.sh:*)",)
    confirmed = ConfirmedSkills(tmp_path / "confirmed.yaml")
    confirmed.add("lister", "d", first)
    assert not confirmed.has("lister", "d", second)
    confirmed.add("lister", "d", second)
    again = ConfirmedSkills(tmp_path / "confirmed.yaml")
    assert all(kept.has("lister", "d", tools) for kept in (confirmed, again) for tools in (first, second))
    assert not again.has("lister", "e", first)


@pytest.mark.parametrize("tools", [None, "write_file", [1], {}])
def test_a_damaged_entry_allows_nothing(tmp_path: Path, tools: object) -> None:
    path = tmp_path / "confirmed.yaml"
    path.write_text(json.dumps({"lister": [{"hash": "d", "tools": tools}]}))
    assert not ConfirmedSkills(path).has("lister", "d", ("write_file",))
