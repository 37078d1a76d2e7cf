"""Whether a command failed, by the exit statuses of its parts. What bash says of real commands: see test_shell."""

from __future__ import annotations

import sys

import pytest

from ba_tui.core.effects import WORKING, ProfileStep
from ba_tui.tools.shells import judged
from tests.tools.running.processes import Floor, floor
from tests.tools.running.test_command_runner import Yard, sandbox_at

__all__ = ["floor"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs name spaces")
async def test_a_step_of_a_list_that_failed_fails_the_list(floor: Floor) -> None:
    yard = Yard(floor, sandbox_at(floor.harness))
    yard.steps = tuple(ProfileStep(each, WORKING) for each in ("false | cat", "echo done"))
    result = await yard.harness.run("shell", command="false | cat; echo done")
    assert (result.exit_status, result.failed) == (0, True)
    assert result.summary == "exit 0 · `false | cat` failed"


def test_where_bash_says_nothing_the_exit_status_judges() -> None:
    assert [judged("make", code).failed for code in (None, 0, 1, 2)] == [False, False, True, True]


def test_a_pipe_that_cannot_be_told_apart_is_named_by_its_place() -> None:
    assert judged("a | b; c | d", 0, (0,), "3 0 ;").parts == ("part 1 of the pipe exited 3",)
    assert judged("( broken", 0, (4, 0)).parts == ("part 1 of the pipe exited 4",)


def test_an_early_reader_and_answers_are_no_failures() -> None:
    assert not judged("yes | head", 0, (141, 0)).failed
    assert judged("grep a b", 1, (1,), "1 grep a b;grep a b") == judged("rg a b", 1, (1,), "1 rg a b;rg a b")
    assert not judged("grep a b", 1, (1,), "1 grep a b;grep a b").failed
    assert judged("grep a b", 2, (2,), "2 grep a b;grep a b").failed
    assert judged("head | yes", 141, (0, 141), "0 141 yes;yes").failed
