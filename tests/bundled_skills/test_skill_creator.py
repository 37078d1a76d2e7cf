"""validate.py of skill-creator judges as the public reference validator does, with the standard library alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from skills_ref import validate

from tests.bundled_skills.bench import SKILLS, Bench

VALIDATE = "skill-creator/validate.py"
FRONTS = [
    "name: s\ndescription: x",
    "name: s\ndescription: [a, b]",
    "name: s\ndescription: a: b",
    "name: s\ndescription: 'it''s'",
    "name: s\ndescription: >\n  one\n  two",
    "name: s\ndescription: |-\n  one\n\n  two\nmetadata:\n  a: 1\n  b: two",
    "name: s\ndescription: one\n  two",
    "name: s\nname: s\ndescription: x",
    "name: s\ndescription: x\nallowed-tools:\n  - a\n  - b",
    "name: s",
    "",
    "# c\nname: s\n\ndescription: x # c",
    'name: s\ndescription: "x',
    "name: s\ndescription:",
    "- a",
    "name: s\n\tdescription: x",
    "name: s\ndescription: &a x",
    "name: s\ndescription: !x y",
    "name: s\ndescription: -",
    "name: s\ndescription: {a: b}",
    "name: s\ndescription: x\t",
    "name: s\ndescription: }",
    "name: s\ndescription: |\n  one\n two",
    "name: s\ndescription: x\nlicense:\n  - @x",
    "name: s\ndescription: x\ncompatibility:\n  a: b",
    "name: s\ndescription: `x`",
    "name: s\ndescription: @x",
    "name: s\ndescription: 'a' b",
    "name: s\n description: x",
    "name:s\ndescription: x",
    "name: s\r\ndescription: x\r",
    "name: s\ndescription: x --- y",
    "name: s\ndescription: http://x.y/z, x? [z]",
    "name: s\ndescription: x\nversion: 1",
    "name: t\ndescription: x",
    "name: s\ndescription: " + "x" * 1025,
]


def same(bench: Bench, folders: list[Path]) -> None:
    names = [folder.relative_to(bench.folder).as_posix() for folder in folders]
    found = bench.run(VALIDATE, {"paths": names})["skills"]
    ours = {one["path"]: one["valid"] for one in found}
    assert ours == {name: not validate(folder) for name, folder in zip(names, folders, strict=True)}


def test_it_agrees_with_the_reference(bench: Bench) -> None:
    folders: list[Path] = []
    for number, front in enumerate(FRONTS):
        path = bench.folder / str(number) / "s" / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\n{front}\n---\nbody\n", "utf-8", newline="")
        folders.append(path.parent)
    (bench.folder / "empty").mkdir()
    same(bench, [*folders, bench.folder / "empty"])


@pytest.mark.outside
def test_it_agrees_on_the_public_cases(bench: Bench, outside_data: Path) -> None:
    folders: list[Path] = []
    for number, line in enumerate((outside_data / "skills_spec_cases.jsonl").read_text("utf-8").splitlines()):
        case: dict[str, Any] = json.loads(line)
        if isinstance(case["files"], dict):
            folder = bench.folder / str(number) / case["dir"]
            folder.mkdir(parents=True)
            for name, text in case["files"].items():
                (folder.parent / name).write_text(text, "utf-8")
            folders.append(folder)
    assert folders
    same(bench, folders)


def test_advice_is_given_and_lines_are_named(bench: Bench) -> None:
    body = "See `references/none.md` and (/home/someone/x)."
    bench.write("a/SKILL.md", f"---\nname: a\ndescription: {'Sorts things. ' * 20}\n---\n{body}\n")
    said = bench.run(VALIDATE, {"path": "a/SKILL.md"})
    assert (said["path"], said["valid"], said["errors"]) == ("a", True, [])
    advice = "\n".join(said["warnings"])
    for part in ("it rides in every prompt", "does not say when", "references/none.md is mentioned", "one machine"):
        assert part in advice
    bench.write("b/SKILL.md", "---\nname: b\ndescription: a: b\n---\n")
    assert bench.run(VALIDATE, {"path": "b"})["errors"][0].startswith("line 3: ")
    assert "no such folder" in bench.refused(VALIDATE, {"path": "none"})


def test_its_own_example_runs(bench: Bench) -> None:
    """What the skill tells people to begin with works as it stands."""
    text = (SKILLS / "skill-creator" / "references" / "script.md").read_text("utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    namespace: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "example", "exec"), namespace)
    bench.write("notes.txt", "a\nb\n")
    namespace["ROOT"] = bench.folder.resolve()
    assert namespace["work"]({"path": "notes.txt"}) == {"path": "notes.txt", "lines": 2}
    with pytest.raises(namespace["Refused"], match="outside the workspace"):
        namespace["work"]({"path": "../x"})
