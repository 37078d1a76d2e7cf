"""The guard that keeps the files before the first change: what is told meanwhile, and that nobody has to wait."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import StorageError
from ba_tui.core.events import (
    Checkpointed,
    Event,
    Notice,
    ToolFinished,
    ToolProgress,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from ba_tui.core.messages import user
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.sessions.checkpoints.git import GitStopped, GitWatch
from ba_tui.sessions.checkpoints.keeper import TurnWrites
from ba_tui.tools.guards.checkpoint import CheckpointGuard


async def changed(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult("changed")


def changing(take: Callable[[int, GitWatch], str]) -> tuple[Tool, Call, Turn]:
    keeping = CheckpointGuard(take, lambda turn, writes: None, lambda: 0)
    turn = Turn()
    tool = Tool("edit", "", {}, changed, Effect.WRITE)
    return keeping.guard(tool), Call("c1", Branch(turn, Transcript())), turn


async def heard(turn: Turn) -> Any:
    return await anext(aiter(turn))


async def test_it_is_told_how_far_it_is_and_then_the_call_runs() -> None:
    told = threading.Event()

    def take(number: int, watch: GitWatch) -> str:
        watch.done, watch.total = 1_200, 9_000
        told.wait(5)
        return "kept"

    tool, call, turn = changing(take)
    running = asyncio.ensure_future(tool.run({}, call))
    progress = await heard(turn)
    assert isinstance(progress, ToolProgress)
    assert progress.text == "Saving the files before the first change: 1,200 of 9,000\n"
    told.set()
    assert (await running).text == "changed"
    while isinstance(event := await heard(turn), ToolProgress):
        pass
    assert isinstance(event, Checkpointed)
    assert call.tail == ""


async def test_cancelling_does_not_wait_for_it() -> None:
    begun, ended, watches = threading.Event(), threading.Event(), list[GitWatch]()

    def take(number: int, watch: GitWatch) -> str:
        watches.append(watch)
        begun.set()
        ended.wait(5)
        watch.check()
        return "kept"

    tool, call, _ = changing(take)
    running = asyncio.ensure_future(tool.run({}, call))
    await asyncio.to_thread(begun.wait, 5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(GitStopped):
        watches[0].check()
    ended.set()
    # What became of it is no news to anybody, and no error of the loop.
    errors: list[Mapping[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: errors.append(context))
    await loop.shutdown_default_executor()
    await asyncio.sleep(0)
    gc.collect()
    assert errors == []


class Kept:
    """A session whose checkpoints fail while ``trouble`` is set."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.turn = 0
        self.taken: list[int] = []
        self.settled: list[int] = []
        self.writes: list[TurnWrites] = []
        self.trouble: StorageError | None = None
        self.loose = False
        """Whether a program that a call started still runs."""
        self.keeping = CheckpointGuard(self._take, self._settle, lambda: self.turn, lambda: self.loose)
        self.branch = Branch(Turn(self.events.append), Transcript())

    def _take(self, number: int, watch: GitWatch) -> str:
        self.taken.append(number)
        if self.trouble:
            raise self.trouble
        return f"kept-{number}"

    def _settle(self, number: int, writes: TurnWrites) -> None:
        self.settled.append(number)
        self.writes.append(writes)
        if self.trouble:
            raise self.trouble

    async def call(self, effect: Effect = Effect.WRITE) -> None:
        tool = self.keeping.guard(Tool("edit", "", {}, changed, effect))
        assert (await tool.run({}, Call("c", self.branch))).text == "changed"

    async def play(self, *effects: Effect) -> list[str]:
        """What is told of checkpoints in one turn with such calls."""
        self.turn += 1
        self.events.clear()
        self.keeping.apply(TurnStarted(user("go")))
        for effect in effects:
            await self.call(effect)
        self.keeping.apply(TurnEnded("done"))
        await self.keeping.close()
        return [event.type for event in self.events if isinstance(event, Notice | Checkpointed)]


async def test_each_turn_that_changes_something_is_kept_once_and_at_its_end() -> None:
    kept = Kept()
    assert await kept.play(Effect.READ, Effect.NETWORK) == []
    assert await kept.play(Effect.READ, Effect.WRITE, Effect.EXECUTE) == ["checkpointed"]
    assert await kept.play() == []
    assert await kept.play(Effect.EXECUTE) == ["checkpointed"]
    assert (kept.taken, kept.settled) == ([2, 4], [2, 4])


async def test_what_is_done_before_a_turn_begins_belongs_to_it() -> None:
    kept = Kept()
    kept.turn = 6
    await kept.call()
    kept.turn = 7
    kept.keeping.apply(TurnStarted(user("go")))
    await kept.call()
    assert kept.taken == [7]


async def test_that_nothing_can_be_kept_is_told_once_and_stops_no_call() -> None:
    kept = Kept()
    kept.trouble = StorageError("The disk is full.")
    assert await kept.play(Effect.WRITE, Effect.WRITE) == ["notice"]
    assert await kept.play(Effect.WRITE) == []
    kept.trouble = None
    assert await kept.play(Effect.WRITE) == ["checkpointed"]
    kept.trouble = StorageError("The disk is full.")
    assert await kept.play(Effect.WRITE) == ["notice"]
    assert (kept.taken, kept.settled) == ([1, 2, 3, 4], [3])


async def test_an_end_that_cannot_be_kept_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept()
    kept.turn = 1
    kept.keeping.apply(TurnStarted(user("go")))
    await kept.call()
    kept.trouble = StorageError("The disk is full.")
    kept.keeping.apply(TurnEnded("done", agent="main/explore-1"))
    await kept.keeping.close()
    assert kept.settled == []
    kept.keeping.apply(TurnEnded("done"))
    await kept.keeping.close()
    assert kept.settled == [1]
    assert "the end of turn 1 is not kept: The disk is full." in caplog.text


@pytest.mark.parametrize("checkpointed", [True, False])
async def test_a_turn_that_is_resumed_is_kept_unless_it_was(checkpointed: bool) -> None:
    kept = Kept()
    kept.turn = 3
    kept.keeping.apply(TurnResumed((), checkpointed))
    await kept.call()
    kept.keeping.apply(TurnEnded("done"))
    await kept.keeping.close()
    assert (kept.taken, kept.settled) == ([] if checkpointed else [3], [3])


@pytest.mark.parametrize(("effect", "others"), [(Effect.WRITE, ("b.txt",)), (Effect.EXECUTE, ("a.txt", "b.txt"))])
async def test_files_that_a_call_names_are_its_own_and_what_is_written_later_is_another_programs(
    tmp_path: Path, effect: Effect, others: tuple[str, ...]
) -> None:
    kept = Kept()
    kept.turn = 1
    kept.keeping.apply(TurnStarted(user("go")))
    tool = kept.keeping.guard(Tool("edit", "", {}, changed, effect, facts=ToolFacts(paths=("path",))))
    await tool.run({"path": str(tmp_path / "a.txt")}, Call("c", kept.branch))
    kept.keeping.apply(ToolFinished("c", ToolResult("changed")))
    after = time.time_ns()
    for name in ("a.txt", "b.txt"):
        # The clock of a file system is behind.
        while not (tmp_path / name).exists() or (tmp_path / name).stat().st_ctime_ns <= after:
            (tmp_path / name).write_text("by somebody else")
    kept.keeping.apply(TurnEnded("done"))
    await kept.keeping.close()
    (writes,) = kept.writes
    assert writes.others(tmp_path, ["a.txt", "b.txt"]) == others


@pytest.mark.parametrize("loose", [True, False])
async def test_nobody_knows_who_wrote_a_file_in_a_resumed_turn_or_beside_a_program_that_ran(
    tmp_path: Path, loose: bool
) -> None:
    kept = Kept()
    kept.turn, kept.loose = 1, loose
    kept.keeping.apply(TurnStarted(user("go")) if loose else TurnResumed((), checkpointed=True))
    kept.loose = False
    await kept.call()
    kept.keeping.apply(ToolFinished("c", ToolResult("changed")))
    after = time.time_ns()
    while not (tmp_path / "a.txt").exists() or (tmp_path / "a.txt").stat().st_ctime_ns <= after:
        (tmp_path / "a.txt").write_text("by somebody")
    kept.keeping.apply(TurnEnded("done"))
    await kept.keeping.close()
    assert kept.writes[0].others(tmp_path, ["a.txt"]) == ()
