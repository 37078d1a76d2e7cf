"""What holds for every script: bad input is told in one line, and nothing outside of the workspace is touched."""

from __future__ import annotations

import pytest

from tests.bundled_skills.bench import SKILLS, Bench

# One script for each way of reading its input, and those that write.
READERS = {
    "xlsx/check.py": {},
    "report/build.py": {"output": "r.html"},
}


@pytest.mark.parametrize("script", READERS)
def test_files_outside_are_not_read(bench: Bench, script: str) -> None:
    (bench.folder.parent / "secret.csv").write_text("a\n1\n")
    (bench.folder / "link.csv").symlink_to(bench.folder.parent / "secret.csv")
    assert "is not a path inside the workspace" in bench.refused(script, {"path": "link.csv", **READERS[script]})
    assert not list(bench.folder.glob("*.svg")) + list(bench.folder.glob("*.html"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", '"path" is missing'),
        ("{", "standard input is not JSON"),
        ("[1]", "must hold one JSON object"),
        ('{"path": 5}', '"path" must be text'),
        ('{"path": "a.csv", "pth": 1}', "unknown: pth; known: path, output"),
        ('{"path": "none.csv"}', "none.csv: there is no such file"),
        ('{"path": "a.csv\\u0000"}', "is not a path inside the workspace"),
        ('{"path": "../a.csv"}', "is not a path inside the workspace"),
        ('{"path": "\\ud800"}', "is not a path inside the workspace"),
        ('{"path": "a.csv", "output": "a.html", "contents": 1}', '"contents" must be true or false'),
    ],
)
def test_wrong_input_is_told(bench: Bench, given: str, said: str) -> None:
    bench.write("a.csv", "a,b\n1,2\n")
    assert said in bench.refused("report/build.py", given)


def test_what_exists_is_replaced_only_when_that_was_said(bench: Bench) -> None:
    bench.write("a.md", "# Title\n\nWords.\n")
    bench.write("r.html", "mine")
    args = {"path": "a.md", "output": "r.html"}
    assert '"overwrite" to true' in bench.refused("report/build.py", args)
    assert (bench.folder / "r.html").read_text() == "mine"
    assert "is not a path inside" in bench.refused("report/build.py", {**args, "output": "../r.html"})
    assert bench.run("report/build.py", {**args, "overwrite": True})["written"] == "r.html"
    assert not (bench.folder.parent / "r.html").exists()


def test_running_leaves_nothing_in_the_skills(bench: Bench) -> None:
    assert list(SKILLS.rglob("__pycache__")) == []
