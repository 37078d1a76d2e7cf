"""Commands that run unasked are run over hostile files: they change nothing, and print no secret.

``python -m tests.eval.shell --count 5000 --seed 1`` tries many more.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.eval.shell.commands import command
from tests.eval.shell.execution import Level, Runner, Setting, judges_of
from tests.permissions.toolset import cases

pytestmark = pytest.mark.skipif(not shutil.which("git") or not shutil.which("bash"), reason="needs bash and git")
HOSTILE = [str(each) for each in cases("hostile.yaml")]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    made = Runner(tmp_path_factory.mktemp("hostile") / "world")
    yield made
    made.close()


@pytest.fixture(scope="module")
def judges(runner: Runner) -> dict[Setting, Callable[[str, Path], bool]]:
    return judges_of(runner.world)


def effects(runner: Runner, judges: dict[Setting, Callable[[str, Path], bool]], text: str) -> list[str]:
    """What the command did at the levels at which it runs unasked."""
    levels: list[Level] = sorted(
        {setting.level for setting, judged in judges.items() if judged(text, runner.world.work)}
    )
    found = (runner.run(text, level) for level in levels if level == "plain" or runner.confines())
    return [effect.what for effect in found if effect]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_nothing_that_runs_unasked_has_an_effect_or_shows_a_secret(
    runner: Runner, judges: dict[Setting, Callable[[str, Path], bool]], seed: int
) -> None:
    text = command(Random(seed))
    assert effects(runner, judges, text) == [], text


@pytest.mark.parametrize("part", range(8))
def test_no_hostile_command_has_an_effect_or_shows_a_secret(
    runner: Runner, judges: dict[Setting, Callable[[str, Path], bool]], part: int
) -> None:
    for text in HOSTILE[part::8]:
        assert effects(runner, judges, text) == [], text


def test_the_world_is_as_hostile_as_it_should_be(runner: Runner) -> None:
    """Without anything that judges, such commands do have effects, and are seen to."""
    for text in ("cat e-n", "echo x > new-file", "cat out-link", "cat 'e n'", "cat $'e\\xff'", "cat < -"):
        assert runner.run(text, "plain"), text
    assert runner.run("ls | sort", "plain") is None
    if runner.confines():
        for text in (
            "cat e-n",
            "echo x > new-file",
            "git status",
            "cat < -",
            "cat twin id_rsa",
            "cat d-home/notes.txt",
        ):
            assert runner.run(text, "held") is None, text
