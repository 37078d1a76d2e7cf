"""``ba run``: a workflow file from the command line, with real tools in a real folder."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from ba_tui.core.errors import UsageError
from ba_tui.features.plans.cli.run import run
from ba_tui.permissions.trust.grants import trust_folder
from tests.program import Program

COUNT = """\
name: count
description: Counts words of a file.
version: "3"
parameters:
  type: object
  properties:
    file: {type: string}
    times: {type: integer, default: 2}
  required: [file]
steps:
- {id: list, tool: glob, args: {pattern: "*.txt"}, save_as: files}
- {id: product, tool: calculator, args: {expression: "{{ times }} * 21"}, needs: [], save_as: answer}
- id: note
  tool: write_file
  args: {path: "{{ file }}", content: "{{ answer }}\\n"}
  needs: [list, product]
output: "{{ answer }}"
"""
MAIN = """
import sys, typer
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.features.plans.cli.run import run
app = typer.Typer()
app.command()(run)
sys.exit(app(standalone_mode=False))
"""


class Line:
    """The command in a folder of its own, in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self._app = typer.Typer()
        self._app.command()(run)

    def write(self, text: str, name: str = "flow.yaml") -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def __call__(self, *args: str) -> tuple[int, str, str]:
        code = self._app([*args, "--cwd", str(self.folder)], standalone_mode=False)
        said = self._capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "pyproject.toml").touch()
    return Line(tmp_path / "work", capsys)


def test_it_runs_and_prints_the_output_only(line: Line):
    code, out, err = line(line.write(COUNT), "--param", "file=a.txt", "--permission-mode", "accept-edits")
    assert (code, out) == (0, "2 * 21 = 42\n")
    assert "note (write_file): ok" in err
    assert (line.folder / "a.txt").read_text() == "2 * 21 = 42\n"


def test_json_has_the_steps_and_parameters_come_from_a_file_too(line: Line, tmp_path: Path):
    (tmp_path / "params.json").write_text('{"file": "b.txt", "times": 3}')
    args = ("--params-json", str(tmp_path / "params.json"), "--param", "times=4", "--allow", "write_file(*.txt)")
    code, out, _ = line(line.write(COUNT), *args, "--output-format", "json")
    report = json.loads(out)
    assert code == 0
    assert (report["ok"], report["output"], report["version"]) == (True, "4 * 21 = 84", "3")
    assert [(row["step"], row["ok"]) for row in report["steps"]][-1] == ("note", True)


def test_what_would_ask_is_denied_and_listed(line: Line):
    code, out, err = line(line.write(COUNT), "--param", "file=a.txt")
    assert (code, out) == (4, "")
    assert "Denied, because nobody can be asked here: Allow write_file?" in err
    assert "--allow 'write_file(a.txt)'" in err
    assert not (line.folder / "a.txt").exists()


def test_what_the_mode_denies_is_listed_too(line: Line):
    args = ("--param", "file=a.txt", "--permission-mode", "plan", "--output-format", "json")
    code, out, _ = line(line.write(COUNT), *args)
    (denied,) = json.loads(out)["denied"]
    assert (code, denied["tool"]) == (4, "write_file")
    assert "Plan mode" in denied["reason"]


def test_a_gate_is_denied_and_listed(line: Line):
    flow = line.write("name: x\ndescription: y\nsteps: [{approval: Send it}, {tool: now}]")
    code, out, _ = line(flow, "--output-format", "json")
    report = json.loads(out)
    assert code == 4
    assert report["denied"][0]["question"] == "Send it"
    assert report["error"]["kind"] == "permission_denied"
    assert len(report["steps"]) == 1


def test_a_failed_step_exits_2_and_undoes(line: Line):
    flow = line.write(
        """\
name: x
description: y
steps:
- {tool: write_file, args: {path: a, content: x}, undo: {tool: write_file, args: {path: undone, content: "yes"}}}
- {tool: read_file, args: {path: nowhere}}
"""
    )
    code, _, err = line(flow, "--permission-mode", "accept-edits")
    assert code == 2
    assert "Step 2 of x (flow.yaml:5) failed: " in err
    assert (line.folder / "undone").exists()


def test_a_wrong_file_exits_1_and_names_the_lines(line: Line):
    flow = line.write(COUNT.replace("tool: glob", "tool: golb").replace("{{ answer }}\\n", "{{ anser }}"))
    code, out, err = line(flow, "--param", "file=a.txt")
    assert (code, out) == (1, "")
    assert f"{flow}:11: steps[1].tool: there is no tool 'golb'; did you mean 'glob'?" in err
    assert f"{flow}:15: steps[3].args.content: 'anser' is not known here; did you mean 'answer'?" in err
    code, out, _ = line(line.write("name: [\n"), "--output-format", "json")
    assert code == 1
    assert json.loads(out)["problems"][0]["line"] == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "lacks 'file'"),
        (("--param", "fiel=x"), "did you mean 'file'?"),
        (("--param", "file"), "is not NAME=VALUE"),
        (("--param", "file=x", "--param", "file=y"), "given twice"),
        (("--param", "file=x", "--param", "times=many"), 'times: expected integer, got string "many"'),
        (("--params-json", "gone.json"), "can't be read as JSON"),
    ],
)
def test_wrong_parameters_run_nothing(line: Line, args: tuple[str, ...], said: str):
    with pytest.raises(UsageError) as caught:
        line(line.write(COUNT), *args)
    assert said in str(caught.value)
    assert sorted(path.name for path in line.folder.iterdir()) == ["flow.yaml", "pyproject.toml"]


def test_a_dry_run_lists_the_steps_and_runs_none(line: Line):
    code, out, _ = line(line.write(COUNT), "--param", "file=a.txt", "--dry-run")
    assert code == 0
    assert [row.split() for row in out.splitlines()] == [
        ["11", "list", "glob", "read"],
        ["12", "product", "calculator", "read"],
        ["13", "note", "write_file", "write"],
    ]
    assert not (line.folder / "a.txt").exists()


def test_workflows_are_found_by_name(line: Line, ba_home: Path):
    (ba_home / "workflows").mkdir()
    (ba_home / "workflows" / "c.yaml").write_text(COUNT)
    nesting = "name: x\ndescription: y\nsteps: [{flow: count, args: {file: c.txt}, save_as: it}]\noutput: '{{ it }}'"
    args = ("--permission-mode", "accept-edits")
    assert line("count", "--param", "file=d.txt", *args)[0] == 0
    assert line(line.write(nesting), *args)[1] == "2 * 21 = 42\n"
    assert (line.folder / "c.txt").exists()
    with pytest.raises(UsageError, match="no workflow 'cuont'") as caught:
        line("cuont")
    assert caught.value.hint == "Did you mean count?"


def test_a_projects_own_workflows_need_trust(line: Line):
    (line.folder / ".ba" / "workflows").mkdir(parents=True)
    line.write(COUNT, ".ba/workflows/count.yaml")
    args = ("count", "--param", "file=e.txt", "--allow", "write_file")
    with pytest.raises(UsageError) as caught:
        line(*args)
    assert "are not trusted: run ba trust" in caught.value.hint
    trust_folder(line.folder)
    assert line(*args)[0] == 0
    line.write(COUNT + "# changed\n", ".ba/workflows/count.yaml")
    with pytest.raises(UsageError):
        line(*args)


def test_an_interrupt_stops_the_step_and_runs_no_other(tmp_path: Path):
    (tmp_path / "flow.yaml").write_text(
        "name: x\ndescription: y\nsteps:\n"
        "- {tool: write_file, args: {path: a, content: x}, undo: {tool: write_file, args: {path: u, content: x}}}\n"
        "- {id: wait, tool: shell, args: {command: sleep 60}}\n"
        "- {tool: write_file, args: {path: b, content: x}}\n"
    )
    args = ["flow.yaml", "--permission-mode", "accept-edits", "--allow", "shell(sleep 60)"]
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, *args],
        cwd=tmp_path,
        env=Program(tmp_path, tmp_path).environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr
        assert any("wait: shell sleep 60" in said for said in iter(process.stderr.readline, ""))
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
    assert process.returncode == 130
    assert "x was stopped. Nothing is undone. Done: 1." in err
    assert (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "u").exists()
