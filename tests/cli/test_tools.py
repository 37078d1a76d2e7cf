"""``ba tools``: what there is, a new one within a minute, and a try through the whole pipeline."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from ba_tui.cli import tools
from ba_tui.core.errors import BaError
from ba_tui.permissions.trust.grants import trust_folder
from tests.program import Program


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    return folder


def run(*argv: str) -> Result:
    return CliRunner().invoke(tools.app, list(argv), catch_exceptions=True, standalone_mode=False)


def told(*argv: str) -> Any:
    done = run(*argv, "--json")
    assert done.exception is None, done.exception
    return json.loads(done.stdout)


def refused(*argv: str) -> BaError:
    error = run(*argv).exception
    assert isinstance(error, BaError), error
    return error


def own(project: Path, text: str, name: str = "mine") -> Path:
    file = project / ".ba" / "tools" / f"{name}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"from ba_tui import tool\n{text}")
    return file


MINE = '@tool(effect="read")\ndef mine(x: int = 1) -> str:\n    "Double it. More words."\n    return str(2 * x)\n'


def test_a_new_tool_works_at_once_and_so_does_its_test(project: Path):
    wrote = run("new", "word_count")
    assert wrote.exception is None, wrote.exception
    assert ".ba/tools/word_count.py and its test test_word_count.py" in wrote.stdout
    done = told("test", "word_count", "--args", '{"text": "some words"}')
    assert (done["ok"], done["text"]) == (True, "word_count read 10 characters")
    assert told("show", "word_count")["description"].startswith("Word count: not written yet.")
    wrong = told("test", "word_count", "--args", '{"text": "ba", "limit": 0}')
    assert wrong["error"] == "execution_error"
    assert "ValueError: limit must be 1 or more (line" in wrong["text"]
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".ba/tools"]
    # The plugins that ba's own tests use take longer to load than all else.
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ran = subprocess.run(pytest_, cwd=project, env=env, capture_output=True, text=True, check=False)
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr


def test_a_new_tool_for_all_projects(ba_home: Path):
    assert run("new", "word_count", "--user").exception is None
    assert (ba_home / "tools" / "test_word_count.py").is_file()
    assert told("test", "word_count", "--args", '{"text": "ba"}')["text"] == "word_count read 2 characters"


@pytest.mark.parametrize("name", ["Word", "word-count", "1st", "", "class", "json", "test_words", "conftest", "ä"])
def test_a_name_that_no_tool_can_have_is_refused(project: Path, name: str):
    refused("new", name)
    assert not (project / ".ba").exists()


def test_a_name_that_is_taken_is_refused(project: Path):
    assert "There is a tool shell already: built in" in str(refused("new", "shell"))
    own(project, MINE)
    assert "already exists" in str(refused("new", "mine"))


def test_a_new_tool_does_not_bring_others_trust(project: Path):
    own(project, MINE, "foreign")
    wrote = run("new", "word_count")
    assert "has tools that are not trusted" in wrote.stderr
    assert "ba trust" in str(refused("test", "word_count"))


def test_a_tool_runs_as_it_was_when_it_was_trusted(project: Path):
    file = own(project, MINE)
    trust_folder(project)
    assert told("test", "mine", "--args", '{"x": 4}')["text"] == "8"
    file.write_text(file.read_text().replace("2 *", "3 *"))
    assert "not trusted, so ba does not load them" in str(refused("test", "mine"))
    trust_folder(project)
    assert told("test", "mine", "--args", '{"x": 4}')["text"] == "12"


def test_list_shows_state_effect_and_source(project: Path, ba_home: Path):
    own(project, MINE)
    trust_folder(project)
    (ba_home / "tools.yaml").write_text("optional: {shell: {enabled: false}}\n")
    done = run("list")
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert lines["read_file"].split()[1:3] == ["core", "read"]
    assert lines["shell"].split()[1:3] == ["off", "execute"]
    assert lines["mine"].split()[1:] == ["on", "read", "Double", "it", f"({project / '.ba' / 'tools' / 'mine.py'}:2)"]
    rows = {row["name"]: row for row in told("list")["tools"]}
    assert rows["mine"]["parameters"]["properties"]["x"] == {"type": "integer", "default": 1}
    assert (rows["mine"]["origin"], rows["mine"]["bytes"] > 100) == ("project", True)


def test_list_tells_what_is_broken_and_the_rest_is_there(ba_home: Path):
    (ba_home / "tools").mkdir()
    (ba_home / "tools" / "bad.py").write_text("\nimport no_such_module\n")
    (ba_home / "tools.yaml").write_text("core: [shel]\n")
    done = run("list")
    assert done.return_value == 1
    assert "read_file" in done.stdout
    broken, unknown = done.stderr.splitlines()
    assert broken.startswith(f"ba: {ba_home / 'tools' / 'bad.py'}:2: the module 'no_such_module' is not installed")
    assert unknown == f"ba: {ba_home / 'tools.yaml'}:1: there is no tool 'shel'; did you mean 'shell'?"
    problems = told("list")["problems"]
    assert [problem["line"] for problem in problems] == [2, 1]
    assert "bad.py:2: the module" in str(refused("show", "bad"))


def test_show_tells_all_of_a_tool():
    shown = run("show", "calculator").stdout
    assert shown.startswith("Compute exactly.")
    assert '"expression"' in shown
    assert told("show", "calculator")["state"] == "core"
    assert "There is no tool 'calculater'. Did you mean calculator" in str(refused("show", "calculater"))


def test_a_try_passes_the_whole_pipeline(project: Path):
    (project / "a.txt").write_text("words\n")
    assert "words" in told("test", "read_file", "--args", '{"path": "a.txt"}')["text"]
    wrong = told("test", "read_file", "--args", '{"pth": "a.txt"}')
    assert wrong["error"] == "invalid_parameters"
    assert "did you mean 'path'" in wrong["text"]
    (project / ".env").write_text("KEY=1\n")
    assert told("test", "read_file", "--args", '{"path": ".env"}')["error"] == "permission_denied"
    assert run("test", "read_file", "--args", '{"path": "none.txt"}').return_value == 1


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_a_person_s_own_command_is_the_answer_where_a_rule_would_ask(project: Path):
    done = told("test", "shell", "--args", '{"command": "echo said > said.txt; cat said.txt"}')
    assert (done["ok"], done["text"]) == (True, "said")


PLAY = """\
steps:
  - calls: [{tool: mine, args: {x: 4}}]
  - say: Done.
"""


def test_a_model_calls_it_once_it_is_trusted_and_not_before(project: Path, tmp_path: Path):
    own(project, MINE)
    (project / "play.yaml").write_text(PLAY)
    ba = Program(project, tmp_path / "home")
    ba.home.mkdir()
    ba.here("-p", "-m", "scripted:play.yaml", "go")
    (before,) = results(ba)
    assert "There is no tool 'mine'" in before
    ba.here("trust", "--yes")
    ba.here("-p", "-m", "scripted:play.yaml", "go", "on")
    assert sorted(results(ba)) == sorted([before, "8"])


def results(ba: Program) -> list[str]:
    lines = [json.loads(line) for path in ba.journals() for line in path.read_text().splitlines()]
    return [line["result"]["text"] for line in lines if line["type"] == "tool_finished"]


@pytest.mark.parametrize("args", ["{", "[]", "3", "{'x': 1}"])
def test_arguments_that_are_no_object_are_refused(args: str):
    assert "--args" in str(refused("test", "now", "--args", args))


def test_the_group_has_its_commands():
    group = typer.main.get_command(tools.app)
    assert sorted(group.commands) == ["list", "new", "show", "test"]  # pyright: ignore
