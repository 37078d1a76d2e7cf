"""Workflow files: what is read, and that everything wrong is told at once, with file, line and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.features.plans.engine.flow_files import load_flows, read_flow
from ba_tui.features.plans.engine.plan_mode import flow_folders
from ba_tui.features.plans.engine.workflows import Conditional, Invocation, Loop, walk
from tests.planning.stage import parse_flow

GOOD = """\
name: tidy
description: Tidies.
version: 2
parameters:
  type: object
  properties:
    folder: {type: string, default: .}
    since: {type: string, default: 2026-01-31}
steps:
  - id: find
    tool: glob
    args: {pattern: "**/*.md", path: "{{ folder }}"}
    save_as: files
  - if: "{{ files }}"
    then:
      - {tool: read_file, args: {path: a}, on_error: continue}
    else:
      - approval: Nothing there. Go on?
  - for_each: "{{ files | lines }}"
    as: file
    steps:
      - flow: other
        needs: []
        on_error: retry(2)
        undo: {tool: shell, args: {command: "git checkout {{ file }}"}}
output: "{{ files }}"
"""


def problems_of(text: str) -> list[str]:
    _, problems = parse_flow(Path("x.yaml"), text)
    return list(map(str, problems))


def test_a_whole_file_is_read():
    flow, problems = parse_flow(Path("tidy.yaml"), GOOD)
    assert flow
    assert not problems
    assert (flow.name, flow.version, flow.output) == ("tidy", "2", "{{ files }}")
    assert flow.takes["since"]["default"] == "2026-01-31"
    find, choice, loop = flow.steps
    assert find.work == Invocation("glob", {"pattern": "**/*.md", "path": "{{ folder }}"})
    assert isinstance(choice.work, Conditional)
    assert choice.work.then[0].on_error == "continue"
    assert choice.work.otherwise[0].approval
    assert isinstance(loop.work, Loop)
    (inner,) = loop.work.body
    assert inner.on_error == 2
    assert inner.needs == ()
    ids = [step.id for step in walk(flow.steps)]
    assert ids == [
        "find",
        "2",
        "2.then.1",
        "2.else.1",
        "3",
        "3.steps.1",
        "3.steps.1.undo",
    ]
    assert flow.line(inner) == 22


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    tool: glob", "    tol: glob", "x.yaml:10: steps[1]: the step does nothing; expected tool"),
        ("    tool: glob", "    tool: glob\n    flow: glob", "got tool and flow together"),
        ("    save_as: files", "    saveas: files", "x.yaml:13: steps[1].saveas: unknown key; did you mean 'save_as'?"),
        ("    save_as: files", "    save_as: my files", "steps[1].save_as: expected a name of letters"),
        ("description: Tidies.\n", "", "x.yaml:1: description: is missing"),
        ("name: tidy", "name: Tidy Up", "x.yaml:1: name: expected small letters, digits, _ and -, got 'Tidy Up'"),
        ("version: 2", "versoin: 2", "x.yaml:3: versoin: unknown key; did you mean 'version'?"),
        ("on_error: retry(2)", "on_error: retry(99)", "on_error: expected stop, continue, retry(1) to retry(10)"),
        ("    then:\n", "    than:\n", "expected `then:` with a list of steps beside it"),
        ("    steps:\n", "    step:\n", "expected `steps:` with a list of steps beside it"),
        ("      - approval: Nothing there. Go on?", "      - ", "else[1]: expected a step with tool, flow"),
        ("needs: []", "needs: [3]", "needs: expected a list of step ids, got 3"),
        ("args: {path: a}", "args: [a]", "args: expected a mapping of names to values, got a list"),
        ("  - if:", "  - id: find\n    if:", "the step in line 10 has the id 'find' already"),
        ("name: tidy", "name: tidy\nname: tidy", "x.yaml:2: name: is set again"),
        ("args: {path: a}", "args: {path: !!binary aGk=}", "expected text, a number, yes or no"),
        ("  - id: find", "  - id: [find", "x.yaml:"),
        ("  - id: find", " \t- id: find", "x.yaml:"),
        ("parameters:\n  type: object\n  properties:\n", "parameters:\n", "expected a JSON Schema: `type: object`"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, said: str):
    assert old in GOOD
    assert said in "\n".join(problems_of(GOOD.replace(old, new, 1)))


@pytest.mark.parametrize(
    "text", ["", "- a\n", "just words", "name: x\ndescription: y\nsteps: []\n", "a: &a [*a]\n", "\0"]
)
def test_no_workflow_is_no_crash(text: str):
    flow, problems = parse_flow(Path("x.yaml"), text)
    assert flow is None
    assert all(problem.where == "x.yaml" for problem in problems)
    assert problems


def test_all_that_is_wrong_is_told_at_once():
    text = GOOD.replace("tool: glob", "tol: glob").replace("version: 2", "versoin: 2").replace("retry(2)", "never")
    assert [line.split(":")[1] for line in problems_of(text)] == ["3", "10", "24"]


@given(st.text(alphabet="[]{}:-, \n\"'&*!|>%@`#\tabstepsidtool", max_size=120))
def test_any_text_gives_a_flow_or_problems_with_lines(text: str):
    flow, problems = parse_flow(Path("x.yaml"), "name: x\ndescription: y\nsteps:\n" + text)
    assert (flow is None) == bool(problems)
    assert all(problem.line > 0 for problem in problems)


def put(folder: Path, name: str, flow: str, description: str = "d") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"name: {flow}\ndescription: {description}\nsteps: [{{tool: now}}]\n")


def test_folders_are_read_by_rank(tmp_path: Path):
    bundled, user, project = tmp_path / "bundled", tmp_path / "user", tmp_path / "project"
    put(bundled / "workflows", "a.yaml", "same", "bundled")
    put(user / "workflows", "b.yml", "same", "user")
    put(user / "workflows", "c.yaml", "mine")
    put(user / "workflows", "d.yaml", "mine")
    put(user / "workflows", "_draft.yaml", "draft")
    put(project / ".ba" / "workflows", "e.yaml", "theirs")
    (user / "workflows" / "broken.yaml").write_text("name: [\n")
    flows, problems = load_flows(flow_folders(bundled, user, None))
    assert sorted(flows) == ["mine", "same"]
    assert flows["same"].description == "user"
    told = "\n".join(map(str, problems))
    assert "broken.yaml:" in told
    assert "d.yaml:1: name: " in told
    assert "c.yaml has the name 'mine' already" in told
    assert "theirs" in load_flows(flow_folders(bundled, user, project))[0]


def test_a_file_that_is_not_there_is_told(tmp_path: Path):
    flow, problems = read_flow(tmp_path / "gone.yaml")
    assert flow is None
    assert "there is no such file" in str(problems[0])
