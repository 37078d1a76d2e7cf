"""Paths in instructions of skills: what the model is told, what commands in the sandbox and readers of files find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.skills.world import World, call, put, questions, results, said, yes

BODY = """\
Run `python scripts/show.py INPUT`, or ${CLAUDE_SKILL_DIR}/scripts/show.py, or {baseDir}/run.sh, or ./run.sh.
Read references/format.md and format.md; other/scripts/show.py, https://example.org/scripts/show.py and scripts/no.py
are none of ours. The plugin is $CLAUDE_PLUGIN_ROOT.
Or ~/.claude/skills/forms/run.sh, `cd .claude/skills/forms`, "$HOME/.claude/skills/forms/run.sh", $SKILL_DIR/run.sh, but
neither ~/.claude/skills/formsets/run.sh nor /else/.claude/skills/forms/run.sh.
"""
SHOW = (
    "import os, sys\nprint(sys.argv[1:], os.environ['CLAUDE_SKILL_DIR'] == os.path.dirname(os.path.dirname(__file__)))"
)
FREE: dict[str, Any] = {"permissions.allow": ["shell"]}

SCRIPTS: dict[str, Any] = {"permissions.allow": ["shell", "run_skill_script(forms/show.py)"]}


@pytest.fixture
def skill(world: World) -> Path:
    folder = put(
        world.trusted().own,
        "forms",
        BODY,
        scripts__show_py=SHOW,
        references__format_md="The format.",
        run_sh='#!/bin/sh\ncat "$CLAUDE_SKILL_DIR/references/format.md"; echo "$@"',
        notes_md="Some notes.",
    )
    (folder / "run.sh").chmod(0o755)
    return folder


async def test_instructions_name_whole_paths_of_the_skills_own_files(world: World, skill: Path) -> None:
    conversation = world.open(call("activate_skill", skill_id="forms"))
    (told,) = results(await said(conversation, "go"))
    assert (
        f"Run `python {skill}/scripts/show.py INPUT`, or {skill}/scripts/show.py, or {skill}/run.sh, or {skill}/run.sh."
    ) in told
    assert (
        f"Read {skill}/references/format.md and format.md; other/scripts/show.py, https://example.org/scripts" in told
    )
    assert f"and scripts/no.py\nare none of ours. The plugin is {skill}." in told
    assert f'Or {skill}/run.sh, `cd {skill}`, "{skill}/run.sh", {skill}/run.sh, but' in told
    assert "neither ~/.claude/skills/formsets/run.sh nor /else/.claude/skills/forms/run.sh." in told
    assert f"The folder of this skill is {skill}." in told
    await conversation.close()


async def test_commands_run_what_the_instructions_name(world: World, skill: Path) -> None:
    conversation = world.open(
        call("activate_skill", skill_id="forms"),
        call("shell", command=f"python3 {skill}/scripts/show.py 'a b' c"),
        call("shell", command='python3 "$CLAUDE_SKILL_DIR/scripts/show.py" x; "${CLAUDE_SKILL_DIR}"/run.sh y'),
        call("shell", command=f"cp {skill}/notes.md . && rm {skill}/notes.md"),
        call("end_skill"),
        call("shell", command="echo [$CLAUDE_SKILL_DIR]"),
        **FREE,
    )
    events = await said(conversation, "go", yes)
    _, whole, variable, copied, _, after = results(events)
    assert whole == "['a b', 'c'] True"
    assert variable == "['x'] True\nThe format.y"
    assert (world.project / "notes.md").read_text() == "Some notes."
    assert (skill / "notes.md").exists(), copied
    assert after == "[]"
    asked = [question.args["command"] for question in questions(events)]
    assert [command.partition("/")[0] for command in asked][:2] == ['python3 "$CLAUDE_SKILL_DIR', "cp "]
    await conversation.close()


async def test_the_remedy_for_a_relative_path_works(world: World, skill: Path) -> None:
    remedy = f"python3 {skill}/scripts/show.py z"
    conversation = world.open(
        call("activate_skill", skill_id="forms"),
        call("shell", command="python3 scripts/show.py z"),
        call("shell", command=remedy),
        call("read_file", path="references/format.md"),
        call("read_file", path=f"{skill}/references/format.md"),
        call("read_file", path="references/none.md"),
        call("run_skill_script", skill_id="forms", script_name=f"{skill}/scripts/show.py", args=["w"]),
        **SCRIPTS,
    )
    events = await said(conversation, "go")
    _, refused, run, missing, read, nowhere, script = results(events)
    assert f"scripts/show.py of the skill forms is {skill}/scripts/show.py" in refused
    assert run == "['z'] True"
    assert f"references/format.md of the skill forms is {skill}/references/format.md: read that." in missing
    assert "The format." in read
    assert "of the skill" not in nowhere
    assert script == "['w'] True"
    assert questions(events) == []
    await conversation.close()


async def test_rules_of_a_skill_are_about_its_own_files(world: World, skill: Path) -> None:
    tools = "Bash(python3 scripts/show.py:*), Bash(${CLAUDE_SKILL_DIR}/run.sh:*), TaskCreate"
    text = (skill / "SKILL.md").read_text()
    (skill / "SKILL.md").write_text(text.replace("---\n\n", f"allowed-tools: {tools}\n---\n\n", 1))
    conversation = world.open(
        call("activate_skill", skill_id="some-plugin:forms"),
        call("shell", command=f"python3 {skill}/scripts/show.py a"),
        call("shell", command=f"{skill}/run.sh b"),
    )
    events = await said(conversation, "go", yes)
    (consent,) = questions(events)
    assert consent.args["allowed_tools"] == [f"shell(python3 {skill}/scripts/show.py:*)", f"shell({skill}/run.sh:*)"]
    told, *ran = results(events)
    assert "Of the tools it names, these are not here or can't be allowed beforehand: TaskCreate." in told
    assert ran == ["['a'] True", "The format.b"]
    await conversation.close()
