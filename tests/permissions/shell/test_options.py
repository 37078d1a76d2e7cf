"""A rule for a command covers the options that do no harm; one that is not known whole may be any other, and asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.permissions.verdicts import Ask, JudgedCall
from tests.permissions.toolset import SHELL, cases, judge, lines, policy

CALLS: dict[str, dict[str, list[str]]] = cases("options.yaml")
GRAVE, COVERED = CALLS["grave"], CALLS["covered"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "a.txt").write_text("x")
    return tmp_path


@pytest.mark.parametrize("name", GRAVE)
def test_an_option_that_is_not_known_whole_asks_under_a_rule(root: Path, name: str) -> None:
    for held in (False, True):
        rules = policy(root, *lines("allow", f"shell({name}:*)", "write_file(**)"), held=held)
        for command in GRAVE[name]:
            assert judge(rules, SHELL, command) != "allow", command


@pytest.mark.parametrize("name", COVERED)
def test_options_that_do_no_harm_are_covered(root: Path, name: str) -> None:
    rules = policy(root, *lines("allow", f"shell({name}:*)", "write_file(**)"))
    for command in COVERED[name]:
        judged = rules.judge(JudgedCall(SHELL, {"command": command}, root))
        assert judge(rules, SHELL, command) == "allow", (command, judged)


def test_a_rule_that_names_the_option_covers_it(root: Path) -> None:
    rules = policy(
        root, *lines("allow", "shell(git push --force:*)", "shell(make -sf build.mk:*)", "shell(git reset --har)")
    )
    for command in ("git push --force origin", "make -sf build.mk all", "git reset --har"):
        assert judge(rules, SHELL, command) == "allow"
    judged = rules.judge(JudgedCall(SHELL, {"command": "git push --forc"}, root))
    assert isinstance(judged, Ask)
    assert judged.reason == "`git push --force` may lose work."
