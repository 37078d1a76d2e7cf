"""run_skill_script: what a script is given and gives back, what is refused, when a person is asked again."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import CommandText, ScriptCall, Source, ToolResult
from ba_tui.core.tool import Tool
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.workspace_scan import FileReach
from ba_tui.permissions.verdicts import Allow, Ask, Bounds, Deny, JudgedCall
from ba_tui.skills.dependencies import Environments
from ba_tui.skills.scripts import AllowedScripts
from ba_tui.tools.builtin.skill_scripts import SkillScripts
from ba_tui.tools.command_runner import CommandRunner
from ba_tui.tools.shells import Shell
from tests.tools.running.processes import Floor, all_gone, floor, within_guards

__all__ = ["floor"]

ECHO = """\
import json, os, sys
given = [sys.argv[1:], json.loads(sys.stdin.read() or "null")]
names = sorted(value for name, value in os.environ.items() if name.startswith(("PYTHON", "OPENAI", "CLAUDE_SKILL")))
print(json.dumps({"given": given, "cwd": os.getcwd(), "root": os.environ["AGENT_WORKSPACE_PATH"], "names": names}))
"""

INSIDE = """\
import lib, pathlib
pathlib.Path("made").write_text(lib.word)
own = pathlib.Path(__file__).parent.parent
print([path.name for path in own.parent.iterdir()])
try:
    (own / "x").write_text("x")
except OSError:
    print("read only")
"""


class Kit:
    """A skill and the tool that runs its scripts, at a harness."""

    def __init__(self, floor: Floor, home: Path) -> None:
        self.floor = floor
        self.harness = floor.harness
        self.folder = home / "skills" / "pdf"
        self.environments = Environments(home / "cache" / "skills")
        self.allowed = AllowedScripts(home / "state" / "scripts.json")
        self.asked: list[Question] = []
        self.reply = Reply("once")
        self.harness.answer = self.answer
        self.equip()

    def equip(self, runner: CommandRunner = CommandRunner(), seconds: float = 30, **environment: str) -> Tool:  # noqa: B008 - a value
        shell = Shell(self.harness.bash, {**self.harness.environment, "BA_TAG": self.floor.tag, **environment})
        workspace, shells = self.harness.workspace, self.floor.shells
        known = (self.find, self.environments, self.allowed)
        tool = SkillScripts(*known, workspace, shell, shells, runner, seconds).tool(
            self.harness.definitions["run_skill_script"]
        )
        self.harness.tools["run_skill_script"] = within_guards(tool)
        return tool

    def find(self, skill: str) -> Path:
        if skill != "pdf":
            raise UsageError(f"There is no skill {skill!r}.")
        return self.folder

    def answer(self, question: Question) -> Reply:
        self.asked.append(question)
        return self.reply

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    async def run(self, name: str, *args: str, **more: Any) -> ToolResult:
        given = {"args": list(args)} if args else {}
        return await self.harness.run("run_skill_script", skill_id="pdf", script_name=name, **given, **more)


@pytest.fixture
def kit(floor: Floor, tmp_path: Path) -> Kit:
    made = Kit(floor, tmp_path)
    made.folder.mkdir(parents=True)
    return made


async def test_arguments_and_json_go_in_and_json_comes_out(kit: Kit) -> None:
    kit.write("scripts/echo.py", ECHO)
    kit.equip(OPENAI_API_KEY="sk-not-for-scripts", PYTHONPATH="/elsewhere")
    result = await kit.run("echo.py", "--in", "a b.csv", "$(id) 'x'", stdin={"名": ["ä", 1.5, None]})
    root, own = str(kit.harness.root), str(kit.folder)
    given = [["--in", "a b.csv", "$(id) 'x'"], {"名": ["ä", 1.5, None]}]
    assert json.loads(result.text) == {"given": given, "cwd": root, "root": root, "names": [own, own]}
    assert result.kind == "json"
    assert isinstance(result.display, CommandText)
    shown = """pdf/echo.py --in 'a b.csv' '$(id) '"'"'x'"'"'' <<< {"名": ["ä", 1.5, null]}"""
    assert result.display.command == shown
    assert not (kit.folder / "scripts" / "__pycache__").exists()
    assert kit.asked == []


async def test_shell_and_node_scripts_run_when_their_programs_are_there(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.write("scripts/a.sh", 'read -r line; echo "got $line"; exit 3')
    assert (await kit.run("scripts/a.sh", stdin='{"a": 1}')).text == 'got {"a": 1}\n[exit code 3]'
    kit.write("scripts/b.js", "console.log(process.argv.slice(2).join('+'))")
    if shutil.which("node"):
        assert (await kit.run("b.js", "one", "two words")).text == "one+two words"
    monkeypatch.setenv("PATH", str(kit.folder))
    missing = (await kit.run("b.js")).text
    assert "pdf/b.js needs node, which is not installed." in missing
    assert "install nodejs" in missing


async def test_the_first_line_of_a_script_says_what_runs_it(kit: Kit) -> None:
    kit.write("scripts/a.sh", "#!/usr/bin/env python3\nimport sys\nprint(sys.version_info[0], sys.argv[1:])")
    assert (await kit.run("a.sh", "x")).text == "3 ['x']"
    kit.write("scripts/first", "#!/usr/bin/env -S sed -n -f\n1p\n")
    assert (await kit.run("first", stdin="one\ntwo")).text == "one"
    kit.write("scripts/count", "#!/bin/sh\necho $# arguments")
    assert (await kit.run("count", "1", "2")).text == "2 arguments"
    kit.write("scripts/x", "#!/usr/bin/env ruby-of-nobody\n")
    assert "pdf/x needs ruby-of-nobody, which is not installed." in (await kit.run("x")).text


async def test_a_script_may_lie_anywhere_in_its_skill_and_be_named_as_instructions_do(kit: Kit) -> None:
    kit.write("ooxml/scripts/unpack.py", "from core.words import word\nprint(word)")
    kit.write("core/words.py", "word = 'fine'")
    kit.write("scripts/pack.py", "print('packed')")
    for name in (
        "ooxml/scripts/unpack.py",
        f"{kit.folder}/ooxml/scripts/unpack.py",
        "{baseDir}/ooxml/scripts/unpack.py",
    ):
        assert (await kit.run(name)).text == "fine", name
    for name in ("pack.py", "./scripts/pack.py", "skills/pdf/scripts/pack.py", "${CLAUDE_SKILL_DIR}/scripts/pack.py"):
        assert (await kit.run(name)).text == "packed", name
        assert kit.equip().target({"skill_id": "pdf", "script_name": name}) == "pdf/pack.py"
    assert kit.asked == []
    (kit.folder / "notes.md").write_text("Other words.")
    assert (await kit.run("pack.py")).text == "packed"
    assert kit.asked == []
    (kit.folder / "core" / "words.py").write_text("word = 'changed'")
    assert (await kit.run("pack.py")).text == "packed"
    assert [question.text for question in kit.asked] == ["Run pdf/pack.py, which has changed?"]


async def test_only_what_lies_in_the_scripts_folder_runs(kit: Kit, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("print('ran')")
    kit.write("scripts/sub/ok.py", "print('fine')")
    kit.write("scripts/notes.txt", "")
    (kit.folder / "scripts" / "away.py").symlink_to(outside)
    (kit.folder / "scripts" / "near.py").symlink_to(kit.folder / "scripts" / "sub" / "ok.py")
    for name in ("../../../outside.py", str(outside), "sub/../../x.py", "away.py", "..\\x.py", ""):
        result = await kit.run(name)
        assert result.is_error, name
        assert "ran" not in result.text.splitlines()
    assert "There are: near.py" not in (missing := (await kit.run("nope.py")).text)
    assert "has no script 'nope.py'" in missing
    assert "There are: sub/ok.py." in missing
    assert "is no package name" in (await kit.run("sub/ok.py", packages=["-r", "../x"])).text
    assert "can't be run: scripts end in .py" in (await kit.run("notes.txt")).text
    assert [(await kit.run(name)).text for name in ("sub/ok.py", "near.py")] == ["fine", "fine"]
    other = await kit.harness.run("run_skill_script", skill_id="other", script_name="ok.py")
    assert "Error Type: not_found\nError Message: There is no skill 'other'." in other.text


async def test_a_scripts_folder_that_is_a_link_is_none(kit: Kit, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "x.py").write_text("print('ran')")
    (kit.folder / "scripts").symlink_to(tmp_path / "theirs")
    result = await kit.run("x.py")
    assert result.is_error
    assert "leads out of the skill's folder" in result.text


async def test_a_script_that_takes_too_long_ends_with_all_it_started(kit: Kit) -> None:
    kit.write("scripts/slow.sh", "sleep 60 & echo begun; wait")
    kit.equip(seconds=0.5)
    result = await kit.run("slow.sh")
    assert result.error is not None
    assert result.error.kind == "timeout"
    assert "begun" in result.text
    await all_gone(kit.floor.tag)


async def test_a_missing_module_is_named(kit: Kit) -> None:
    kit.write("scripts/x.py", "import nobody_has_this")
    text = (await kit.run("x.py")).text
    assert 'nobody_has_this is not installed for this script: call again with packages: ["nobody_has_this"]' in text
    kit.write("scripts/y.py", "raise ModuleNotFoundError(\"No module named 'PIL.Image'\")")
    assert 'packages: ["pillow"]' in (await kit.run("y.py")).text
    kit.write("scripts/z.js", "require('nothing-of-that-name')")
    if shutil.which("node"):
        there = kit.folder / "scripts"
        assert f"tell the user to run npm install nothing-of-that-name in {there}" in (await kit.run("z.js")).text
    assert (await kit.run("x.py", "x" * 100_001)).error is not None
    assert (await kit.run("x.py", "a\0b")).error is not None


async def test_a_rule_for_a_script_does_not_mean_another_in_its_place(kit: Kit) -> None:
    verdict: list[Allow | Deny | Ask] = [Allow("run_skill_script(pdf/x.py)")]
    kit.equip(CommandRunner(None, lambda asked: verdict[0]))
    kit.write("scripts/x.py", "print('old')")
    assert (await kit.run("x.py")).text == "old"
    kit.write("scripts/lib.py", "1")
    kit.reply = Reply("deny", "not now")
    refused = await kit.run("x.py")
    assert "has changed since" in refused.text
    assert "The user said: not now" in refused.text
    (question,) = kit.asked
    assert (question.kind, question.text) == ("permission", "Run pdf/x.py, which has changed?")
    assert question.preview == Source("skills/pdf/scripts/x.py", "print('old')")
    kit.reply = Reply("once")
    assert (await kit.run("x.py")).text == "old"
    assert (await kit.run("x.py")).text == "old"
    assert len(kit.asked) == 2
    kit.write("scripts/x.py", "print('new')")
    verdict[0] = Allow()
    assert (await kit.run("x.py")).text == "new", "where nobody is ever asked"
    verdict[0] = Deny("Denied by the rule run_skill_script.")
    kit.write("scripts/x.py", "print('newer')")
    assert "Denied by the rule" in (await kit.run("x.py")).text
    assert len(kit.asked) == 2


async def test_a_question_shows_what_the_script_is_given_and_has_its_source(kit: Kit) -> None:
    kit.write("scripts/x.py", "print(1)")
    tool = kit.equip()
    assert tool.preview is not None
    args = {"skill_id": "pdf", "script_name": "scripts/x.py", "args": ["--n", 1], "stdin": {"sql": "select 1"}}
    shown = ScriptCall("skills/pdf/scripts/x.py", ("--n", "1"), {"sql": "select 1"}, "print(1)")
    assert await tool.preview(args) == shown


async def test_what_a_person_was_just_asked_about_is_not_asked_again(kit: Kit) -> None:
    kit.write("scripts/x.py", "print(1)")
    tool = kit.equip()
    await kit.run("x.py")
    kit.write("scripts/x.py", "print(2)")
    assert tool.preview is not None
    await tool.preview({"skill_id": "pdf", "script_name": "x.py"})
    assert (await kit.run("x.py")).text == "2"
    assert kit.asked == []


def test_rules_are_about_the_skill_and_the_script(kit: Kit, ba_home: Path) -> None:
    tool, args = kit.equip(), {"skill_id": "pdf", "script_name": "scripts/x.py"}
    assert tool.target(args) == "pdf/x.py"

    def judged(*rules: str, confined: bool = False, mode: Any = "auto") -> Allow | Deny | Ask:
        read = [RuleLine(rule, "allow", "") for rule in rules]
        policy = Policy(kit.harness.workspace, read, mode, None, Bounds(confined=lambda: confined))
        return policy.judge(JudgedCall(tool, args, kit.harness.root))

    assert judged("run_skill_script(pdf/*)") == Allow("run_skill_script(pdf/*)")
    asked = judged("run_skill_script(other/*)")
    assert isinstance(asked, Ask)
    assert asked.rule == "run_skill_script(pdf/x.py)"
    assert judged(confined=True) == Allow()
    assert isinstance(judged(confined=True, mode="default"), Ask)


@pytest.mark.skipif(sys.platform != "linux", reason="needs name spaces")
async def test_it_runs_in_the_sandbox_and_sees_its_skill_there(kit: Kit, tmp_path: Path) -> None:
    sandbox = Sandbox(FileReach((kit.harness.root,), hidden=(tmp_path / "skills",)), "required")
    if sandbox.found.mechanism is None:
        pytest.skip("nothing confines here")
    (tmp_path / "skills" / "secret").write_text("x")
    kit.equip(CommandRunner(sandbox))
    kit.write("scripts/lib.py", "word = 'here'")
    kit.write("scripts/x.py", INSIDE)
    text = (await kit.run("x.py")).text
    assert text == "['pdf']\nread only"
    assert (kit.harness.root / "made").read_text() == "here"
    sandbox.close()
