"""The strict check: the same verdict as the public reference validator, on folders of our own and on real cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import skills_ref
from hypothesis import given, reject
from hypothesis import strategies as st
from strictyaml.ruamel.constructor import DuplicateKeyError

from ba_tui.skills.validator import check, read_head

NAMES = ("my-skill", "'my-skill'", " my-skill ", "My-skill", "my_skill", "-my", "a--b", "other", "", "[my]")
VALUES = (
    *("plain text", "'quoted'", '"a\\n"', "[a, b]", "{a: b}", "yes", "1.5", "null", "", "x: y", "a # c", "&a x", "*a"),
    *("\n  - k: v", "\n  - k: v\n  - j: w", "# only a remark", "|+\n  kept\n\n", "é" * 1025),
    *("!!str x", "!x", "|\n  block", ">-\n  folded", "\n  - a\n  - b", "\n  k: v", "\n  k: v\n  k: w", "@x", "x --- y"),
    *(
        "\n  a:\n    b: c\n  d:\n      e: f",
        "<<",
        "=",
        "'open",
        "x" * 1024,
        "x" * 1025,
        "\tx",
        "x\n  more",
        "2026-01-01",
    ),
)
KEYS = ("description", "license", "compatibility", "metadata", "allowed-tools", "extra", "<<", "'name'", "1", " odd")
ENDS = ("\n---\nBody\n", "\n---", "\n", "\n...\n---\n")


def faults(folder: Path, raw: bytes) -> tuple[int, int]:
    """How many faults we find in a folder with such a SKILL.md, and how many the reference does."""
    skill = folder / "my-skill"
    skill.mkdir(exist_ok=True)
    (skill / "SKILL.md").write_bytes(raw)
    return len(check(skill).errors), len(skills_ref.validate(skill))


@given(
    st.sampled_from(NAMES),
    st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES)), max_size=3),
    st.sampled_from(("---\n", "---\r\n", "--- \n", "\n---\n", "")),
    st.sampled_from(ENDS),
)
def test_verdicts_agree(
    tmp_path_factory: pytest.TempPathFactory, name: str, fields: list[tuple[str, str]], start: str, end: str
) -> None:
    lines = [f"name: {name}", *(f"{key}: {value}" for key, value in fields)]
    raw = (start + "\n".join(lines) + end).encode()
    try:
        ours, theirs = faults(tmp_path_factory.mktemp("skill"), raw)
    except DuplicateKeyError:
        reject()  # the reference gives no verdict on a doubled <<
    assert ours == theirs


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"name: my-skill", "must begin with a line ---"),
        (b"---\nname: my-skill\n", "not closed"),
        (b"---\nname: my-skill\ndescription: a: b\n---\n", "line 3"),
        (b"\xff\xfe---", "not UTF-8"),
        (b"\xef\xbb\xbf---\nname: my-skill\ndescription: x\n---\n", "must begin"),
        (b"---\nname: my-skill\ndescription: x\nversion: 1\n---\n", "Unknown fields: version"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, raw: bytes, said: str) -> None:
    (tmp_path / "my-skill").mkdir()
    (tmp_path / "my-skill" / "SKILL.md").write_bytes(raw)
    report = check(tmp_path / "my-skill" / "SKILL.md")
    assert not report.valid
    assert said in report.errors[0]
    assert "\n" not in report.errors[0]


def test_what_is_no_skill_is_an_error_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "folder" / "SKILL.md").mkdir(parents=True)
    for name in ("nothing", "file", "loop", "folder", "no\0name"):
        assert not check(tmp_path / name).valid


@pytest.mark.parametrize("break_", ["\u0085", "\u2028", "\u2029"])
def test_line_ends_that_only_old_yaml_knows_are_words_like_any(tmp_path: Path, break_: str) -> None:
    for number, field in enumerate((f"description: a{break_}b", f"description: {break_}b", f"description: '{break_}'")):
        folder = tmp_path / str(number)
        folder.mkdir()
        raw = f"---\nname: my-skill\n{field}\n---\nBody\n"
        ours, theirs = faults(folder, raw.encode())
        assert ours == theirs, field
    assert read_head(f"---\nname: x\ndescription: a{break_}b\n---\n", "x").trouble == ""


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("Use when: the user asks: why", "Use when: the user asks: why"),
        ("Use when: it\n  goes on: here", "Use when: it goes on: here"),
        ("[draft] notes", "[draft] notes"),
        ("@mention the team 🎉", "@mention the team 🎉"),
        ("`code` and *stars*", "`code` and *stars*"),
        ('it\'s 100% "so"', 'it\'s 100% "so"'),
        ("'it's", "'it's"),
    ],
)
def test_a_description_that_is_no_yaml_is_read_as_it_stands(tmp_path: Path, value: str, read: str) -> None:
    text = f"---\nname: my-skill\ndescription: {value}\nallowed-tools: Read\n---\nBody\n"
    head = read_head(text, "my-skill")
    assert (head.trouble, head.description, head.tools) == ("", read, ("Read",))
    ours, theirs = faults(tmp_path, text.encode())
    assert bool(head.warnings) == bool(ours) == bool(theirs)
    if head.warnings:
        assert "line 3" in head.warnings[0]


def test_a_switch_that_is_no_yaml_is_no_guess() -> None:
    assert read_head("---\nname: x\ndescription: y\ndisable-model-invocation: [true\n---\n", "x").trouble


def test_a_large_body_is_a_warning(tmp_path: Path) -> None:
    skill = tmp_path / "large"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: large\ndescription: x\n---\n" + "word " * 5_000)
    report = check(skill)
    assert report.valid
    assert "tokens" in report.warnings[0]


@pytest.mark.outside
def test_real_cases(outside_data: Path, tmp_path: Path) -> None:
    cases = [json.loads(line) for line in (outside_data / "skills_spec_cases.jsonl").read_text().splitlines()]
    for number, case in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        if case["files"] == "file":
            (folder / case["dir"]).write_text("x")
        elif case["files"] != "missing":
            (folder / case["dir"]).mkdir()
            for name, text in case["files"].items():
                (folder / name).write_text(text)
        report = check(folder / case["dir"])
        assert len(report.errors) == len(case["errors"]), case
