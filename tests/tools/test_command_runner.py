"""Commands in the sandbox first: what the model reads, who is asked before one runs outside, and how they end."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.events import Judged
from ba_tui.core.messages import ToolUse
from ba_tui.core.questions import Question, Reply
from ba_tui.core.tool import Call, Tool
from ba_tui.permissions.sandbox import Found, Sandbox, find
from ba_tui.permissions.sandbox_bwrap import Bubblewrap, bubblewraps
from ba_tui.permissions.sandbox_layout import Reach
from ba_tui.permissions.verdicts import Allow, Ask, Deny
from ba_tui.tools.command_runner import CommandRunner
from ba_tui.tools.limits import Limits
from ba_tui.tools.python import Python, python_tool
from ba_tui.tools.shell import Shell, shell_tool
from ba_tui.tools.workers import Code, WorkerPool, WorkerSettings
from tests.tools.conftest import Desk
from tests.tools.running import Floor, all_gone, floor, tagged, until_printed, within_guards

__all__ = ["floor"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs name spaces")


class Yard:
    """A floor whose commands run confined. ``verdict`` is what the rules say of running outside."""

    def __init__(self, floor: Floor, sandbox: Sandbox, limits: Limits = Limits()) -> None:  # noqa: B008 - a value
        self.floor = floor
        self.desk = floor.desk
        self.verdict: Allow | Deny | Ask = Ask("", None, ("runs a command",))
        self.judged: list[str] = []
        runner = CommandRunner(sandbox, self.judge)
        shell = Shell(self.desk.bash, {**self.desk.environment, "BA_TAG": floor.tag}, limits=limits)
        definitions, workspace = self.desk.definitions, self.desk.workspace
        tools = (
            shell_tool(definitions["shell"], workspace, shell, floor.shells, runner),
            python_tool(definitions["python"], workspace, shell, Python(None, limits, runner), floor.shells),
        )
        self.desk.tools = {**self.desk.tools, **{tool.name: within_guards(tool) for tool in tools}}

    def judge(self, tool: Tool, args: Mapping[str, Any], folder: Path) -> Allow | Deny | Ask:
        self.judged.append(str(args.get("command", args.get("code"))))
        return self.verdict

    def answers(self, reply: Reply) -> list[Question]:
        asked: list[Question] = []

        def answer(question: Question) -> Reply:
            asked.append(question)
            return reply

        self.desk.answer = answer
        return asked


def sandbox_at(desk: Desk) -> Sandbox:
    found = find(bubblewraps())
    if found.mechanism is None:
        pytest.skip("; ".join(found.troubles))
    return Sandbox(Reach((desk.root,)), look=lambda: found)


@pytest.fixture
def yard(floor: Floor) -> Iterator[Yard]:
    sandbox = sandbox_at(floor.desk)
    yield Yard(floor, sandbox)
    sandbox.close()


async def test_what_the_workspace_suffices_for_just_runs(yard: Yard) -> None:
    result = await yard.desk.run("shell", command="mkdir -p sub && cd sub && echo fine > a && cat a")
    assert result.text == "fine\n[the folder is now sub]"
    assert (yard.desk.root / "sub" / "a").exists()
    assert (await yard.desk.run("python", code="open('b', 'w').write('x')")).text == "1"
    assert yard.judged == []


async def test_what_failed_there_may_run_outside_when_the_person_says_so(yard: Yard) -> None:
    asked = yard.answers(Reply("once"))
    result = await yard.desk.run("shell", command="test -w /etc || { echo Read-only file system; exit 3; }; echo out")
    assert result.text.startswith("out\n[this is the run outside the sandbox; before, it ran in the sandbox, and what")
    (question,) = asked
    assert (question.kind, question.tool, question.rule) == ("permission", "shell", None)
    assert "It failed in the sandbox: what it wanted to write may only be read there." in question.reason
    assert "outside the workspace" in question.risks


async def test_a_no_leaves_the_first_run_and_the_words(yard: Yard) -> None:
    yard.answers(Reply("deny", "use a file here"))
    result = await yard.desk.run("shell", command="echo x > /etc/ba-test")
    assert "Read-only file system" in result.text
    assert "running it outside was not allowed and said: use a file here" in result.text
    assert not Path("/etc/ba-test").exists()
    (judged,) = [event for event in yard.desk.events if isinstance(event, Judged)]
    assert (judged.verdict, judged.by, judged.reason) == ("deny", "person", "to run outside the sandbox")


async def test_a_rule_decides_without_a_question(yard: Yard) -> None:
    command = "test -w /etc || { echo Read-only file system; exit 3; }; echo out"
    yard.verdict = Allow("shell(test:*)")
    assert (await yard.desk.run("shell", command=command)).text.startswith("out\n")
    yard.verdict = Deny("Denied by the rule shell(test).")
    denied = (await yard.desk.run("shell", command=command)).text
    assert "exit code 3" in denied
    assert "it may not run outside: Denied by the rule shell(test)." in denied


async def test_a_changed_command_is_judged_anew(yard: Yard) -> None:
    yard.answers(Reply("once", edited={"command": "echo other"}))
    result = await yard.desk.run("shell", command="echo x > /etc/ba-test")
    assert result.text.startswith("other\n")
    assert "the person changed what runs to: echo other" in result.text
    assert yard.judged == ["echo x > /etc/ba-test", "echo other"]


async def test_code_in_python_is_confined_as_well(yard: Yard) -> None:
    asked = yard.answers(Reply("deny"))
    result = await yard.desk.run("python", code="open('/etc/ba-test', 'w')")
    assert "Read-only file system" in result.text
    assert [question.tool for question in asked] == ["python"]


async def test_limits_hold_inside(floor: Floor) -> None:
    sandbox = sandbox_at(floor.desk)
    yard = Yard(floor, sandbox, Limits(300_000_000, 1_000_000, 300))
    result = await yard.desk.run("shell", command="head -c 3000000 /dev/zero > big; stat -c %s big; ulimit -u")
    size, processes = result.text.split()[-2:]
    assert (int(size), int(processes) >= 300) == (1_000_000, True)
    assert "MemoryError" in (await yard.desk.run("python", code="x = b'x' * 1_000_000_000")).text
    sandbox.close()


async def test_without_a_sandbox_that_is_required_nothing_runs(floor: Floor) -> None:
    nothing = Sandbox(Reach((floor.desk.root,)), "required", lambda: Found(None, ("bubblewrap: not allowed",)))
    yard = Yard(floor, nothing)
    for name, args in (("shell", {"command": "touch ran"}), ("python", {"code": "open('ran', 'w')"})):
        result = await yard.desk.run(name, **args)
        assert result.is_error
        assert "bubblewrap: not allowed" in result.text
        assert "Install bubblewrap" in result.text
    assert not (floor.desk.root / "ran").exists()


async def test_a_sandbox_that_breaks_is_told(floor: Floor) -> None:
    broken = floor.desk.write("bwrap", "#!/bin/sh\necho 'bwrap: no room' >&2\nexit 1\n")
    broken.chmod(0o755)
    yard = Yard(floor, Sandbox(Reach((floor.desk.root,)), look=lambda: Found(Bubblewrap(str(broken)))))
    asked = yard.answers(Reply("once"))
    assert (await yard.desk.run("shell", command="echo out")).text.startswith("out\n")
    assert "it could not be set up" in asked[0].reason


async def test_all_it_started_ends_with_it(yard: Yard) -> None:
    desk = yard.desk
    left = "setsid sleep 60 & (setsid sh -c 'sleep 60; sleep 60' &) ; echo kept"
    result = await desk.run("shell", command=left)
    assert "left in the background: ended" in result.text
    await all_gone(yard.floor.tag)
    timed = await desk.run("shell", command=f"{left}; sleep 60", timeout=3)
    assert timed.text.endswith("Output so far (partial):\nkept")
    await all_gone(yard.floor.tag)


async def test_an_end_of_the_supervisor_in_there_ends_the_rest(yard: Yard) -> None:
    result = await yard.desk.run("shell", command="setsid sleep 60 & echo before; kill -9 $PPID; sleep 60")
    assert result.is_error
    assert "before" in result.text
    await all_gone(yard.floor.tag)


async def test_cancelling_ends_it(yard: Yard) -> None:
    desk = yard.desk
    use = ToolUse("call", "shell", {"command": "echo ready; sleep 60"})
    running = asyncio.ensure_future(desk.tools["shell"].run(use.input, Call(use.id, desk.branch)))
    await until_printed(desk, "ready")
    assert tagged(yard.floor.tag)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await all_gone(yard.floor.tag)


async def test_background_shells_run_there_too(yard: Yard) -> None:
    result = await yard.desk.run("shell", command="echo x > /etc/ba-test; echo here > a", background=True)
    assert "in the sandbox" in result.text
    await yard.floor.ended(result.summary)
    assert (yard.desk.root / "a").exists()
    assert not Path("/etc/ba-test").exists()


OWN = """
from ba_tui import tool
import resource, subprocess
@tool(effect="read")
def own() -> str:
    "Try what can be written."
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    open("inside", "w").close()
    try:
        open("/etc/ba-test", "w").close()
    except OSError as error:
        return f"{error.strerror} {resource.getrlimit(resource.RLIMIT_FSIZE)[0]}"
    return "written"
"""


async def test_workers_of_a_project_are_confined(floor: Floor) -> None:
    desk = floor.desk
    file = desk.write("own.py", OWN)
    sandbox = sandbox_at(desk)
    environment = {**desk.environment, "BA_TAG": floor.tag}
    code = Code(str(file), digest=hashlib.sha256(file.read_bytes()).hexdigest())
    pool = WorkerPool(code, WorkerSettings(desk.root, environment, {"fsize": 1_000_000}, sandbox.confine))
    reply, _ = await pool.call("own", {}, print, keep=True)
    assert "Read-only file system 1000000" in str(reply)
    assert (desk.root / "inside").exists()
    assert tagged(floor.tag)
    pool.close()
    await all_gone(floor.tag)
    sandbox.close()
