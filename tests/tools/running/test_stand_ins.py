"""What a command sees in place of a folder or file that the sandbox hides, and what the model is told about it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ba_tui.core.effects import READING, WORKING, Profile
from ba_tui.core.results import ToolResult
from ba_tui.permissions.verdicts import Allow, JudgedCall
from ba_tui.resources import user_home
from tests.permissions.toolset import SHELL, lines, policy
from tests.tools.running.processes import Floor, floor
from tests.tools.running.test_command_runner import Yard, sandbox_at

__all__ = ["floor"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs name spaces")


@pytest.fixture
def yard(floor: Floor) -> Iterator[Yard]:
    sandbox = sandbox_at(floor.harness)
    yield Yard(floor, sandbox)
    sandbox.close()


async def unasked(yard: Yard, command: str, *rules: str) -> ToolResult:
    """Run what these deny rules let run without a question, in the profile that goes with that."""
    made = policy(yard.harness.root, *lines("deny", *rules), held=True)
    verdict = made.judge(JudgedCall(SHELL, {"command": command}, yard.harness.root))
    assert isinstance(verdict, Allow)
    yard.profile = verdict.profile
    return await yard.harness.run("shell", command=command)


async def test_a_list_of_a_folder_that_the_sandbox_hides_says_so(yard: Yard) -> None:
    hidden = "not shown as on the disk: in the sandbox the folders for temporary files are private"
    assert f"[/tmp is {hidden}" in (await unasked(yard, "ls /tmp")).text
    assert f"/tmp, {user_home()} are {hidden}" in (await unasked(yard, "ls /tmp ~")).text
    assert f"/ is {hidden}" in (await unasked(yard, "ls -a /")).text
    assert hidden not in (await unasked(yard, "ls /usr; echo /tmp; ls")).text


async def test_files_that_a_rule_keeps_are_hidden_and_named(yard: Yard) -> None:
    for name in ("kept/a", "kept/b", "free"):
        yard.harness.write(name, "hunter2")
    found = await unasked(yard, "grep -rc hunter2 . | sort", "read_file(kept/)")
    assert found.text.splitlines()[:3] == ["./free:1", "./kept/a:0", "./kept/b:0"]
    assert "permission rules are about reading kept/a, kept/b, so the command did not see what is in" in found.text
    assert "hunter2" not in (await unasked(yard, "cat $(find kept -type f | sort | head -1)", "read_file(kept/a)")).text
    assert (yard.harness.root / "kept/a").read_text() == "hunter2"


@pytest.mark.parametrize("profile", [READING, WORKING], ids=["reading", "working"])
async def test_no_more_than_five_such_files_are_named(yard: Yard, profile: Profile) -> None:
    for number in range(7):
        yard.harness.write(f"kept/{number}", "hunter2")
    yard.profile = replace(profile, masked=tuple(sorted((yard.harness.root / "kept").iterdir())))
    found = await yard.harness.run("shell", command="cat kept/*")
    assert "hunter2" not in found.text
    assert found.text.count("a permission rule is about reading it (ba permissions list)") == 7
    assert "kept/4 and 2 more, so" in found.text


async def test_a_dry_run_of_make_has_no_effect_and_shows_no_secret(yard: Yard) -> None:
    yard.harness.write(".env", "TOKEN=hunter2")
    yard.harness.write("kept", "hunter2")
    made = "touch made 2>/dev/null || true"
    yard.harness.write("Makefile", f"X := $(shell cat .env kept; {made})\nall:\n\t+{made}\n\techo $(X)\n")
    found = await unasked(yard, "make -n", "read_file(kept)")
    assert "hunter2" not in found.text
    assert "ba hides" in found.text
    assert not (yard.harness.root / "made").exists()


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("sha256sum .env", True),
        ("wc -c < ./.env", True),
        ("sort -u .en* | wc -l", True),
        ("sort -u .en? | wc -l", True),
        ("wc -c ?env || true", False),
        ("ls *", False),
        ("cat plain.txt", False),
        ("echo .environment", False),
    ],
)
async def test_an_answer_over_a_masked_copy_says_so(yard: Yard, command: str, told: bool) -> None:
    yard.profile = READING
    yard.harness.write(".env", "TOKEN=hunter2\nOTHER=hunter2hunter2\n")
    yard.harness.write("plain.txt", "x\n")
    result = await yard.harness.run("shell", command=command)
    assert ("ba masked secrets of .env" in result.text) == told
