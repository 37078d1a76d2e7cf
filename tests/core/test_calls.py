"""One call of a tool gets one result, whatever happens; and a change is made whole or not at all."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from ba_tui.core.calls import CIRCLES, CallStopped, Commit, callable_tool, commit_whole, run_call
from ba_tui.core.errors import NoThread, StopTurn
from ba_tui.core.events import PERSON, MessageDone, ToolFinished, ToolStarted, TurnStarted
from ba_tui.core.messages import Message, ToolUse, user
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn

USE = ToolUse("call-1", "write", {"path": "a.txt"})


class Desk:
    """Runs one call and keeps what was published."""

    def __init__(self, agent: str = "main") -> None:
        self.events: list[Any] = []
        self.turn = Turn(self.events.append)
        self.transcript = Transcript(agent)
        self.call = Call("call-1", Branch(self.turn, self.transcript))

    def run(self, work: Callable[[Mapping[str, Any], Call], Any]) -> asyncio.Task[ToolResult]:
        tool = Tool("write", "", {}, work, Effect.WRITE, facts=ToolFacts(target="path"), so_far=str.upper)
        return asyncio.create_task(run_call(tool, USE, self.call))

    @property
    def finished(self) -> ToolFinished:
        """The one end of the call."""
        (event,) = [each for each in self.events if isinstance(each, ToolFinished)]
        return event


def failing(error: BaseException) -> Callable[[Mapping[str, Any], Call], Any]:
    async def work(args: Mapping[str, Any], call: Call) -> ToolResult:
        raise error

    return work


async def waiting(args: Mapping[str, Any], call: Call) -> ToolResult:
    await asyncio.Event().wait()
    raise AssertionError


async def passed(steps: int = 3) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("waited", "seconds"), [(1.0, 4.0), (5.0, 0.0), (9.0, 0.0)])
async def test_a_call_has_a_start_and_an_end_with_its_seconds_of_work(
    monkeypatch: pytest.MonkeyPatch, waited: float, seconds: float
) -> None:
    desk, clock = Desk(), [100.0]
    monkeypatch.setattr("ba_tui.core.calls.time", type("Clock", (), {"monotonic": staticmethod(lambda: clock[0])}))

    async def work(args: Mapping[str, Any], call: Call) -> ToolResult:
        clock[0] += 5
        call.progress.waited = waited
        return ToolResult("done")

    assert (await desk.run(work)).text == "done"
    started = next(each for each in desk.events if isinstance(each, ToolStarted))
    assert (started.call, started.target) == (USE, "a.txt")
    assert (desk.finished.call_id, desk.finished.result.text, desk.finished.duration) == ("call-1", "done", seconds)


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit("bad"), KeyboardInterrupt("bad"), RuntimeError("bad")])
async def test_whatever_a_tool_raises_is_its_result(error: BaseException) -> None:
    desk = Desk()
    result = await desk.run(failing(error))
    assert result.error
    assert (result.error.kind, result.error.message) == ("internal_error", f"{type(error).__name__}: bad")
    assert "Tool Call ID: call-1" in result.text
    assert desk.finished.result == result


@pytest.mark.parametrize("error", [NoThread(), RuntimeError("can't start new thread")])
async def test_a_system_without_threads_ends_the_turn(error: BaseException) -> None:
    desk = Desk()
    with pytest.raises(NoThread):
        await desk.run(failing(error))
    assert desk.finished.result.error
    assert desk.finished.result.error.kind == "resource_error"
    assert "raise the limit" in desk.finished.result.text


@pytest.mark.parametrize(("given", "closing"), [("", "Enough."), ("The budget is used.", "The budget is used.")])
async def test_a_tool_that_ends_the_turn_has_a_result_too(given: str, closing: str) -> None:
    desk = Desk()
    with pytest.raises(StopTurn) as stopped:
        await desk.run(failing(StopTurn("Enough.", closing=given)))
    assert stopped.value.closing == closing
    assert desk.finished.result.error
    assert (desk.finished.result.error.kind, desk.finished.result.error.message) == ("interrupted", "Enough.")


@pytest.mark.parametrize(
    ("agent", "closed", "why"),
    [
        ("main", False, "Interrupted by the user."),
        (PERSON, False, "Interrupted by the user."),
        ("main/explore-1", False, "Interrupted: this agent was stopped."),
        ("main", True, "Interrupted: the session was closed."),
    ],
)
async def test_a_cancelled_call_says_who_stopped_it(agent: str, closed: bool, why: str) -> None:
    desk = Desk(agent)
    task = desk.run(waiting)
    await passed()
    desk.turn.closed = closed
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert desk.finished.result.error
    assert desk.finished.result.error.message == why


async def test_a_cancelled_call_has_what_it_had_printed() -> None:
    desk = Desk()

    async def work(args: Mapping[str, Any], call: Call) -> ToolResult:
        call.report("line\x1b[2J\n")
        return await waiting(args, call)

    task = desk.run(work)
    await passed()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert desk.finished.result.error
    assert desk.finished.result.error.message == "Interrupted by the user.\nOutput so far:\nLINE\n"


async def test_a_cancel_after_a_change_tells_what_was_changed() -> None:
    desk, changed = Desk(), asyncio.Event()

    async def work(args: Mapping[str, Any], call: Call) -> ToolResult:
        await commit_whole(lambda commit: ToolResult("wrote a.txt"), call)
        changed.set()
        return await waiting(args, call)

    task = desk.run(work)
    await changed.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    result = desk.finished.result
    assert not result.is_error
    assert result.text.startswith("wrote a.txt\nNote: Interrupted by the user. The files were being written")


async def test_a_change_that_has_begun_is_finished_before_the_cancel_counts() -> None:
    desk = Desk()
    begun, go_on = threading.Event(), threading.Event()

    def change(commit: Commit) -> ToolResult:
        commit.begin()
        begun.set()
        assert go_on.wait(20)
        return ToolResult("wrote a.txt")

    task = desk.run(lambda args, call: commit_whole(change, call))
    await asyncio.to_thread(begun.wait, 20)
    for _ in range(2):
        task.cancel()
        await passed()
        assert not task.done()
        assert desk.call.progress.committing
    go_on.set()
    await asyncio.wait({task})
    assert task.cancelled()
    assert desk.finished.result.text.startswith("wrote a.txt\nNote: Interrupted")
    progress = desk.call.progress
    assert (progress.committing, progress.outlasted, progress.changed) == (False, True, "wrote a.txt")


async def test_a_change_that_was_not_begun_is_never_made_and_leaves_no_error_behind() -> None:
    desk = Desk()
    errors: list[Mapping[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
    started, go_on = threading.Event(), threading.Event()

    def change(commit: Commit) -> ToolResult:
        started.set()
        assert go_on.wait(20)
        commit.begin()
        desk.events.append("changed")
        return ToolResult("wrote a.txt")

    task = desk.run(lambda args, call: commit_whole(change, call))
    await asyncio.to_thread(started.wait, 20)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    (threaded,) = asyncio.all_tasks() - {asyncio.current_task()}
    go_on.set()
    await asyncio.wait({threaded})
    await passed()
    del task, threaded
    gc.collect()
    assert errors == []
    assert "changed" not in desk.events
    assert desk.finished.result.error
    assert desk.finished.result.error.kind == "interrupted"
    assert not desk.call.progress.committing


async def test_a_change_without_a_cancel_has_its_result_or_its_error() -> None:
    desk = Desk()

    def begin(commit: Commit) -> ToolResult:
        commit.begin()
        return ToolResult("wrote a.txt")

    def fail(commit: Commit) -> ToolResult:
        raise OSError("disk full")

    assert await commit_whole(begin, desk.call) == ToolResult("wrote a.txt")
    assert (desk.call.progress.committing, desk.call.progress.outlasted) == (False, False)
    with pytest.raises(OSError, match="disk full"):
        await commit_whole(fail, desk.call)
    assert (await desk.run(lambda args, call: commit_whole(begin, call))).text == "wrote a.txt"


def test_either_the_change_or_the_interrupt_comes_first() -> None:
    stopped = Commit()
    assert stopped.stop()
    with pytest.raises(CallStopped):
        stopped.begin()
    assert stopped.stop()
    begun = Commit()
    begun.begin()
    assert not begun.stop()
    begun.begin()
    assert not begun.stop()


def told(use: ToolUse, tool: Tool | None, made: list[ToolUse], *known: str) -> Callable[[], Any]:
    """Makes an impossible call after ``made``, with tools of the names ``known``."""
    tools = [Tool(name, "", {}, waiting) for name in known]
    answers = [MessageDone(Message("assistant", (each,), origin="assistant")) for each in made]
    transcript = Transcript(events=[TurnStarted(user("go")), *answers])
    call = Call(use.id, Branch(Turn(), transcript))
    return lambda: callable_tool(use, tool, tools).run(use.input, call)


def test_a_call_that_is_possible_runs_its_tool() -> None:
    tool = Tool("write", "Writes.", {}, waiting)
    assert callable_tool(USE, tool, []) is tool
    broken = callable_tool(replace(USE, malformed="{"), tool, [])
    assert (broken.name, broken.description, broken.run == waiting) == ("write", "Writes.", False)
    assert callable_tool(USE, None, []).name == "write"
    assert callable_tool(replace(USE, malformed="{"), None, []).name == "write"


async def test_an_unknown_tool_is_answered_with_the_three_closest_names() -> None:
    use = ToolUse("1", "read_fil", {})
    result = await told(use, None, [use], "read_file", "read_file1", "read_files", "read_all_files", "shell")()
    assert result.error
    assert result.error.message == "There is no tool 'read_fil'. Did you mean read_file, read_files, read_file1?"
    assert result.error.hint == "Available: read_file, read_file1, read_files, read_all_files, shell."
    far = await told(use, None, [use], "shell")()
    assert far.error.message == "There is no tool 'read_fil'."


async def test_arguments_that_are_no_object_are_shown_up_to_a_length() -> None:
    use = ToolUse("1", "write", {}, malformed="x" * 300)
    for tool in (Tool("write", "", {}, waiting), None):
        result = await told(use, tool, [use], "write")()
        assert result.error
        assert result.error.kind == "invalid_parameters"
        assert result.error.message == f"The arguments of write were not a JSON object: {'x' * 200}"


async def test_the_same_impossible_call_ends_the_turn_at_last() -> None:
    made = [ToolUse(str(number), "none", {"a": 1}) for number in range(CIRCLES)]
    changes: list[dict[str, Any]] = [{"name": "other"}, {"input": {}}, {"malformed": "{"}]
    others = [replace(made[0], id="other", **change) for change in changes]
    for count in range(1, CIRCLES):
        result = await told(made[count - 1], None, [*others, *made[:count]])()
        assert result.error.kind == "not_found", count
        # Calls that come later in the same message are no repetition yet.
        assert (await told(made[count - 1], None, made)()).error.kind == "not_found"
    with pytest.raises(StopTurn, match=f"the same impossible call of 'none' was made {CIRCLES} times") as stopped:
        await told(made[-1], None, made)()
    assert "differently" in stopped.value.hint
    # Ids may come again: the newest call of that id is meant.
    same = [replace(each, id="1") for each in made]
    with pytest.raises(StopTurn):
        await told(same[0], None, same)()
