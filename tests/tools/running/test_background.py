"""Background shells with real processes: what is new of them, their end, and that none outlives its conversation."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

import pytest

from ba_tui.core.agent import Agent
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Steered, TurnStarted
from ba_tui.core.messages import ToolUse, user
from ba_tui.core.ports.tools import Jobs
from ba_tui.core.results import CommandText, ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.tools.shells import MAX_SHELLS, EndedShells
from tests.tools.own.test_loop import Script, assert_paired, calls
from tests.tools.running.processes import Floor, all_gone, another, floor, printed, tagged, until_printed, word

__all__ = ["floor"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends what detached itself")


@pytest.fixture(autouse=True)
async def closed(floor: Floor) -> object:
    """Whatever a test leaves running ends with its conversation."""
    yield
    await floor.shells.close()


def body(text: str) -> str:
    """What a look brought, without the line about the shell."""
    return text.partition("\n")[2]


async def test_each_look_brings_what_is_new(floor: Floor) -> None:
    harness = floor.harness
    os.mkfifo(harness.root / "gate")
    id = await floor.start("echo first; read line < gate; echo $line; exit 3")
    assert re.fullmatch(r"bg-[0-9a-f]{4}", id)
    looked = await harness.run("shell_output", id=id, wait=20)
    assert re.match(rf"\[{id} running, \d+ s, 6 bytes printed]\nfirst$", looked.text)
    assert looked.summary == "running"
    assert body((await harness.run("shell_output", id=id)).text) == "(nothing new)"
    await asyncio.to_thread((harness.root / "gate").write_text, "second\n")
    await floor.ended(id)
    looked = await harness.run("shell_output", id=id)
    assert re.match(rf"\[{id} ended with exit code 3, \d+ s, 13 bytes printed]\nsecond$", looked.text)
    assert (looked.summary, looked.is_error) == ("exit 3", False)
    assert isinstance(looked.display, CommandText)
    assert looked.display.output == "first\nsecond\n"
    assert looked.display.exit_code == 3
    assert body((await harness.run("shell_output", id=id)).text) == "(nothing new)"
    assert body((await harness.run("shell_output", id=id, all=True)).text) == "first\nsecond"


async def test_the_folder_of_the_session_stays(floor: Floor) -> None:
    (floor.harness.root / "sub").mkdir()
    await floor.ended(await floor.start("cd sub"))
    assert (await floor.harness.run("shell", command="pwd")).text == str(floor.harness.root)


async def test_lines_can_be_chosen(floor: Floor) -> None:
    harness = floor.harness
    id = await floor.start("for i in $(seq 50); do echo line $i; echo ERROR $i; done")
    await floor.ended(id)
    looked = await harness.run("shell_output", id=id, filter="error 4", tail=2)
    assert body(looked.text) == "ERROR 48\nERROR 49"
    assert body((await harness.run("shell_output", id=id)).text) == "(nothing new)"
    assert body((await harness.run("shell_output", id=id, all=True, tail=1)).text) == "ERROR 50"
    assert body((await harness.run("shell_output", id=id, all=True, filter="nowhere")).text) == "(nothing)"


async def test_waiting_for_a_line_ends_with_it(floor: Floor) -> None:
    harness = floor.harness
    os.mkfifo(harness.root / "gate")
    os.mkfifo(harness.root / "never")
    id = await floor.start("echo noise; read line < gate; echo noise; echo Listening on 80; cat < never")
    waiting = asyncio.create_task(harness.run("shell_output", id=id, filter="listening", wait=20))
    await asyncio.to_thread((harness.root / "gate").write_text, "go\n")
    assert body((await waiting).text) == "Listening on 80"
    assert not floor.shells.find(id).ended


async def test_waiting_ends_with_the_shell_and_with_the_time(floor: Floor) -> None:
    id = await floor.start("true")
    assert "ended with exit code 0" in (await floor.harness.run("shell_output", id=id, wait=20)).text
    id = await floor.start("exec sleep 60")
    assert "running" in (await floor.harness.run("shell_output", id=id, wait=0.01)).text


async def test_characters_and_lines_are_not_cut_between_looks(floor: Floor) -> None:
    harness = floor.harness
    # One for each reader: the second one may be there before the first writer has left.
    os.mkfifo(harness.root / "gate")
    os.mkfifo(harness.root / "second")
    id = await floor.start(r"printf 'a\xc3'; read x < gate; printf '\xa9 par'; read x < second; echo tial")
    assert body((await harness.run("shell_output", id=id, wait=20)).text) == "a"
    await asyncio.to_thread((harness.root / "gate").write_text, "go\n")
    assert body((await harness.run("shell_output", id=id, wait=20)).text) == "é par"
    assert body((await harness.run("shell_output", id=id, filter="tial")).text) == "(nothing new)"
    await asyncio.to_thread((harness.root / "second").write_text, "go\n")
    assert body((await harness.run("shell_output", id=id, filter="tial", wait=20)).text) == "tial"


async def test_a_flood_is_stored_and_memory_is_bounded(floor: Floor) -> None:
    id = await floor.start("seq 300000")
    await floor.ended(id)
    looked = await floor.harness.run("shell_output", id=id)
    whole = "".join(f"{number}\n" for number in range(1, 300_001)).encode()
    assert floor.stored(looked.artifact) == whole
    assert str(looked.artifact) in looked.text
    assert "no longer in memory" in looked.text
    assert looked.text.endswith("299999\n300000")
    assert len(looked.text) < 30_000
    assert len(floor.shells.output(id)) < 300_000


@linux_only
async def test_killing_ends_all_of_it(floor: Floor) -> None:
    id = await floor.start(
        "trap 'echo bye; exit 7' TERM; trap '' INT\n"
        "setsid sh -c 'trap \"\" INT TERM; sleep 60; sleep 60' & echo up; wait"
    )
    await floor.harness.run("shell_output", id=id, wait=20)
    result = await floor.harness.run("shell_kill", id=id)
    assert result.text.startswith(f"{id} was ended, and all it had started.\n[{id} was killed,")
    assert result.text.endswith("Not read yet:\nbye")
    await all_gone(floor.tag)
    assert [running.state for running in floor.shells.list()] == ["killed"]
    again = await floor.harness.run("shell_kill", id=id)
    assert "had ended already" in again.text
    assert not floor.shells.news("main")


async def test_a_deaf_shell_is_killed(floor: Floor) -> None:
    id = await floor.start("trap '' INT TERM HUP; echo up; sleep 60; sleep 60")
    await floor.harness.run("shell_output", id=id, wait=20)
    assert "was ended" in (await floor.harness.run("shell_kill", id=id)).text
    assert floor.shells.list()[0].exit_code == 128 + signal.SIGKILL
    await all_gone(floor.tag)


async def test_a_shell_that_kills_its_supervisor_has_ended(floor: Floor) -> None:
    id = await floor.start("setsid sleep 60 & echo up; kill -9 $PPID; sleep 60")
    await floor.ended(id)
    looked = await floor.harness.run("shell_output", id=id)
    assert looked.text.startswith(f"[{id} ended, ")
    assert (body(looked.text), looked.summary) == ("up", "ended")
    if sys.platform == "linux":
        await all_gone(floor.tag)


async def test_closing_ends_every_shell(floor: Floor) -> None:
    for _ in range(2):
        await floor.start("exec sleep 60")
    flood = await floor.start("seq 30000; echo all of it; exec sleep 60")
    await floor.harness.run("shell_output", id=flood, filter="all of it", wait=20)
    assert floor.files
    await floor.shells.close()
    await all_gone(floor.tag)
    assert floor.files == [], "nobody can read it any more"
    result = await floor.harness.run("shell", command="true", background=True)
    assert "is being closed" in result.text
    assert "is being closed" in (await floor.harness.run("shell", command="true")).text


@linux_only
async def test_a_killed_ba_leaves_no_shell_behind(floor: Floor) -> None:
    tag = word()
    floor.harness.write(
        "ba.py",
        textwrap.dedent(
            """
            import asyncio, os, shutil
            from pathlib import Path
            from ba_tui.core.tool import Call, Tool
            from ba_tui.core.transcript import Transcript
            from ba_tui.core.turn import Branch, Turn
            from ba_tui.tools.shells import Shells
            from ba_tui.processes.values import Program

            async def main():
                shells, call = Shells(), Call("call", Branch(Turn(), Transcript()))
                script = "trap '' INT TERM; setsid sleep 60 & setsid sleep 60 & echo ready; wait"
                program = Program((shutil.which("bash"), "-c", script), Path.cwd(), dict(os.environ))
                job = shells.start(program, script, call)
                while "ready" not in job.process.output.text():
                    await asyncio.sleep(0.01)
                print("ready", flush=True)
                await asyncio.Event().wait()

            asyncio.run(main())
            """
        ),
    )
    with another(floor.harness, tag) as ba:
        assert ba.stdout is not None
        assert await asyncio.to_thread(ba.stdout.readline) == b"ready\n"
        assert len(tagged(tag)) >= 4
        ba.send_signal(signal.SIGKILL)
        await all_gone(tag)


async def test_an_id_that_is_none_names_those_that_are(floor: Floor) -> None:
    for tool in ("shell_output", "shell_kill"):
        result = await floor.harness.run(tool, id="bg-none")
        assert result.error is not None
        assert result.error.kind == "not_found"
        assert "None was started" in result.text
    id = await floor.start("exec sleep 60")
    assert f"{id} (exec sleep 60)" in (await floor.harness.run("shell_output", id="bg-none")).text
    with pytest.raises(UsageError, match="no background shell"):
        floor.shells.output("bg-none")
    with pytest.raises(UsageError, match="no background shell"):
        await floor.shells.end("bg-none")
    await floor.shells.end(id)
    assert [job.state for job in floor.shells.list()] == ["killed"]


async def test_the_end_is_told_once_and_to_who_started_it(floor: Floor) -> None:
    interceptor = EndedShells(floor.shells)
    branch = floor.harness.branch

    async def told() -> list[str]:
        before = len(floor.harness.events)
        await interceptor.before(branch)
        return [event.message.text for event in floor.harness.events[before:] if isinstance(event, Steered)]

    quiet = await floor.start("exec sleep 60")
    assert await told() == []
    first, second = await floor.start("exit 4"), await floor.start("true")
    await floor.ended(first)
    await floor.ended(second)
    assert floor.shells.news("main/other") == ()
    notes = await told()
    assert len(notes) == 1
    assert f"{first} (exit 4) has ended with exit code 4" in notes[0]
    assert f"{second} (true) has ended with exit code 0" in notes[0]
    assert "<system-reminder>" in notes[0]
    assert await told() == []
    read = await floor.start("true")
    await floor.ended(read)
    await floor.harness.run("shell_output", id=read)
    await floor.harness.run("shell_kill", id=quiet)
    assert await told() == []


async def test_within_a_turn_the_end_is_told_before_the_next_request(floor: Floor) -> None:
    async def until_ended(args: Mapping[str, Any], call: Call) -> ToolResult:
        floor.harness.write("go", "")
        await floor.ended(floor.shells.list()[0].id)
        return ToolResult("waited")

    tools = (floor.harness.tools["shell"], Tool("wait", "", {"type": "object"}, until_ended))
    command = "until [ -e go ]; do sleep 0.02; done; exit 6"
    script = Script(calls(("shell", {"command": command, "background": True})), calls(("wait", {})))
    branch = Branch(floor.harness.turn, Transcript())
    branch.emit(TurnStarted(user("go")))
    await Agent(script, tools, "", (EndedShells(floor.shells),)).run(branch)
    assert_paired(branch.transcript, floor.harness.events)
    *_, results, answer = branch.transcript.messages
    assert answer.text == "done"
    assert "exit 6) has ended with exit code 6" in results.text
    assert sum("has ended" in message.text for message in branch.transcript.messages) == 1


async def test_the_list_and_who_hears_of_it(floor: Floor) -> None:
    heard: list[int] = []
    jobs: Jobs = floor.shells
    stop = jobs.listen(lambda: heard.append(len(floor.shells.list())))
    id = await floor.start("echo hello")
    await floor.ended(id)
    (running,) = floor.shells.list()
    assert (running.id, running.command, running.state, running.exit_code, running.size) == (
        id,
        "echo hello",
        "ended",
        0,
        6,
    )
    assert running.until is not None
    assert running.until >= running.since
    assert heard == [1, 1]
    stop()
    await floor.ended(await floor.start("true"))
    assert heard == [1, 1]
    await floor.harness.run("shell", command="echo in the foreground")
    assert len(floor.shells.list()) == 2


async def test_only_so_many_run_and_only_so_many_ended_ones_are_kept(floor: Floor) -> None:
    for _ in range(MAX_SHELLS):
        await floor.start("exec sleep 60")
    result = await floor.harness.run("shell", command="sleep 60", background=True)
    assert result.error is not None
    assert result.error.kind == "resource_error"
    for running in floor.shells.list():
        await floor.harness.run("shell_kill", id=running.id)
    last = await floor.start("true")
    await floor.ended(last)
    ids = [running.id for running in floor.shells.list()]
    assert len(ids) == MAX_SHELLS
    assert ids[-1] == last


async def test_a_running_command_moves_to_the_background(floor: Floor) -> None:
    harness = floor.harness
    os.mkfifo(harness.root / "gate")
    use = ToolUse("call", "shell", {"command": "echo first; read line < gate; echo $line; exit 5", "timeout": 600})
    running = asyncio.create_task(harness.finish(use))
    await until_printed(harness, "first")
    assert not floor.shells.detach("another")
    assert floor.shells.list() == ()
    assert floor.shells.detach("call")
    assert not floor.shells.detach("call")
    result = await running
    (moved,) = floor.shells.list()
    assert result.text.startswith(f"Moved to the background by the user, as {moved.id}:")
    assert result.text.endswith("Output so far:\nfirst")
    assert (moved.state, result.is_error, result.changes) == ("running", False, None)
    await asyncio.to_thread((harness.root / "gate").write_text, "second\n")
    await floor.ended(moved.id)
    assert body((await harness.run("shell_output", id=moved.id)).text) == "second"
    assert printed(harness) == "first\n", "the call has ended"
    assert not floor.shells.detach("call")


async def test_cancelling_a_look_or_a_kill_leaves_the_shell_to_itself(floor: Floor) -> None:
    id = await floor.start("exec sleep 60")
    call = Call("call", Branch(floor.harness.turn, Transcript()))
    looking = asyncio.ensure_future(floor.harness.tools["shell_output"].run({"id": id, "wait": 100}, call))
    await asyncio.sleep(0)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    assert floor.shells.list()[0].state == "running"
