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


HERE = "@skill:forms"
"""How models name the folder of the skill."""


async def test_instructions_name_the_skills_own_files_from_its_folder(world: World, skill: Path) -> None:
    conversation = world.open(call("activate_skill", skill_id="forms"))
    (told,) = results(await said(conversation, "go"))
    assert (
        f"Run `python {HERE}/scripts/show.py INPUT`, or {HERE}/scripts/show.py, or {HERE}/run.sh, or {HERE}/run.sh."
    ) in told
    assert f"Read {HERE}/references/format.md and format.md; other/scripts/show.py, https://example.org/scripts" in told
    assert f"and scripts/no.py\nare none of ours. The plugin is {HERE}." in told
    assert f'Or {HERE}/run.sh, `cd {HERE}`, "{HERE}/run.sh", {HERE}/run.sh, but' in told
    assert "neither ~/.claude/skills/formsets/run.sh nor /else/.claude/skills/forms/run.sh." in told
    assert f"{HERE} is the folder of this skill" in told
    assert str(skill) not in told
    await conversation.close()


async def test_commands_run_what_the_instructions_name(world: World, skill: Path) -> None:
    conversation = world.open(
        call("activate_skill", skill_id="forms"),
        call("shell", command=f"python3 {HERE}/scripts/show.py 'a b' c"),
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


@pytest.mark.parametrize("folder", ["forms", "two words & more"])
async def test_every_call_that_runs_something_knows_the_folder(world: World, skill: Path, folder: str) -> None:
    skill = skill.rename(skill.with_name(folder))
    conversation = world.open(
        call("activate_skill", skill_id="forms"),
        call("shell", command=f"cat {HERE}/notes.md"),
        call("shell", command=f'cat "{HERE}/notes.md"; cd {HERE} && ls notes.md'),
        call("python", code=f"print(open('{HERE}/notes.md').read())"),
        call("run_skill_script", skill_id="forms", script_name=f"{HERE}/scripts/show.py", args=[f"{HERE}/run.sh"]),
        call("read_file", path=f"{HERE}/notes.md"),
        call("shell", command="echo @skill:nowhere/x me@skill:forms/x"),
        **SCRIPTS,
    )
    events = await said(conversation, "go", yes)
    _, plain, quoted, python, script, read, unknown = results(events)
    assert plain == "Some notes."
    assert quoted.startswith("Some notes.notes.md")
    assert python.startswith("Some notes.")
    assert script == f"['{skill}/run.sh'] True"
    assert "Some notes." in read
    assert unknown == "@skill:nowhere/x me@skill:forms/x"
    await conversation.close()


async def test_the_user_and_the_rules_see_the_whole_path_that_a_command_gets(world: World, skill: Path) -> None:
    conversation = world.open(call("activate_skill", skill_id="forms"), call("shell", command=f"rm {HERE}/notes.md"))
    events = await said(conversation, "go")
    (question,) = questions(events)
    assert question.args["command"] == f"rm {skill}/notes.md"
    assert (skill / "notes.md").exists()
    await conversation.close()


async def test_the_remedy_for_a_relative_path_works(world: World, skill: Path) -> None:
    remedy = f"python3 {HERE}/scripts/show.py z"
    conversation = world.open(
        call("activate_skill", skill_id="forms"),
        call("shell", command="python3 scripts/show.py z"),
        call("shell", command=remedy),
        call("read_file", path="references/format.md"),
        call("read_file", path=f"{HERE}/references/format.md"),
        call("read_file", path="references/none.md"),
        call("run_skill_script", skill_id="forms", script_name=f"{HERE}/scripts/show.py", args=["w"]),
        **SCRIPTS,
    )
    events = await said(conversation, "go")
    _, refused, run, missing, read, nowhere, script = results(events)
    assert f"scripts/show.py of the skill forms is {HERE}/scripts/show.py" in refused
    assert run == "['z'] True"
    assert f"references/format.md of the skill forms is {HERE}/references/format.md: read that." in missing
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
        call("shell", command=f"python3 {HERE}/scripts/show.py a"),
        call("shell", command=f"{HERE}/run.sh b"),
    )
    events = await said(conversation, "go", yes)
    (consent,) = questions(events)
    assert consent.args["allowed_tools"] == [f"shell(python3 {skill}/scripts/show.py:*)", f"shell({skill}/run.sh:*)"]
    told, *ran = results(events)
    assert "Of the tools it names, these are not here or can't be allowed beforehand: TaskCreate." in told
    assert ran == ["['a'] True", "The format.b"]
    await conversation.close()
