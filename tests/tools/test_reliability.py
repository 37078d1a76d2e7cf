"""Retries, the breaker and the memory of calls, run through the loop as a model would see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import ErrorKind, UsageError
from ba_tui.core.events import ToolFinished
from ba_tui.core.results import ToolResult, failure, identified
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.tools.failures import failed_result, from_os
from ba_tui.tools.guards.reliability import FAILURES, Breakers, Patience, breaker, retry, timeout
from ba_tui.tools.guards.repeats import CallMemory, once
from tests.script import Script, collect, conversation, says


class Tries:
    """A tool function that fails so many times, then answers; it counts its runs."""

    def __init__(self, failures: int, kind: ErrorKind = "transient_error", **meta: Any) -> None:
        self.left, self.meta, self.runs = failures, meta, 0
        self.kind: ErrorKind = kind

    async def __call__(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        self.runs += 1
        if self.left > 0:
            self.left -= 1
            return replace(failure(self.kind, "not now"), meta=self.meta)
        return ToolResult(f"fine after {self.runs}")


class Sleeper:
    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


def tool(run: Any, effect: Effect = Effect.READ, **options: Any) -> Tool:
    return Tool("probe", "Probes.", {"type": "object"}, run, effect, **options)


async def results(tool: Tool, *args: Mapping[str, Any]) -> list[ToolResult]:
    """What calls of ``tool`` come to, one after the other, in one turn."""
    steps = [says(f"s{number}", ("probe", dict(given))) for number, given in enumerate(args or ({},))]
    events = await collect(conversation(Script(*steps, says("done")), tool).say("go"))
    return [event.result for event in events if isinstance(event, ToolFinished)]


async def test_a_passing_failure_is_tried_again_with_growing_waits():
    run, sleep = Tries(2), Sleeper()
    (result,) = await results(retry(Patience(jitter=0), sleep)(tool(run)))
    assert (result.text, result.meta["retries"], run.runs) == ("fine after 3", 2, 3)
    assert sleep.waits == pytest.approx([1.0, 1.5])


async def test_it_gives_up_after_three_and_says_how_often_it_tried():
    run = Tries(99)
    (result,) = await results(retry(Patience(), Sleeper())(tool(run)))
    assert run.runs == 4
    assert result.error
    assert (result.error.kind, result.error.retries) == ("transient_error", 3)


@pytest.mark.parametrize("kind", ["permission_denied", "invalid_parameters", "not_found", "execution_error"])
async def test_what_will_not_pass_is_not_tried_again(kind: ErrorKind):
    run = Tries(1, kind)
    await results(retry(Patience(), Sleeper())(tool(run)))
    assert run.runs == 1


@pytest.mark.parametrize(
    ("effect", "idempotent", "runs"),
    [(Effect.WRITE, None, 1), (Effect.EXECUTE, None, 1), (Effect.WRITE, True, 2), (Effect.READ, False, 1)],
)
async def test_only_what_may_run_twice_does(effect: Effect, idempotent: bool | None, runs: int):
    run = Tries(1)
    await results(retry(Patience(), Sleeper())(tool(run, effect, idempotent=idempotent)))
    assert run.runs == runs


async def test_a_wait_that_was_asked_for_is_kept_to_unless_it_is_too_long():
    run, sleep = Tries(1, "rate_limit", retry_after=7), Sleeper()
    await results(retry(Patience(), sleep)(tool(run)))
    assert sleep.waits == [7.0]
    late = Tries(1, "rate_limit", retry_after=700)
    await results(retry(Patience(), Sleeper())(tool(late)))
    assert late.runs == 1


async def test_a_time_out_is_tried_again_with_twice_the_time():
    seen: list[float] = []

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        seen.append(call.patience)
        return failure("timeout", "too slow") if len(seen) < 3 else ToolResult("ok")

    await results(retry(Patience(), Sleeper())(timeout(tool(run))))
    assert seen == [1.0, 2.0, 4.0]


async def test_five_failures_in_a_row_open_the_breaker_and_a_rest_closes_it():
    run, health = Tries(FAILURES, "execution_error"), Breakers(cool_down=0.0)
    guarded = breaker(health)(tool(run))
    found = await results(guarded, *({"n": n} for n in range(FAILURES + 1)))
    assert found[-1].text == f"fine after {FAILURES + 1}"
    assert health.condition("probe").state == "closed"


async def test_an_open_breaker_answers_without_running_and_names_others():
    run = Tries(99, "execution_error")
    probe = tool(run, facts=ToolFacts(category="web"))
    health = Breakers([probe, replace(probe, name="other")])
    found = await results(breaker(health)(probe), *({"n": n} for n in range(FAILURES + 2)))
    assert run.runs == FAILURES
    assert "is paused" in found[-1].text
    assert "other" in found[-1].text
    assert health.condition("probe").state == "opened"


async def test_faults_of_the_arguments_do_not_count():
    run = Tries(99, "invalid_parameters")
    await results(breaker(Breakers())(tool(run)), *({"n": n} for n in range(8)))
    assert run.runs == 8


async def test_a_success_in_between_starts_the_count_anew():
    health = Breakers()
    for _ in range(FAILURES - 1):
        health.note("probe", failure("execution_error", "x"))
    health.note("probe", ToolResult("ok"))
    assert not health.note("probe", failure("execution_error", "x"))
    assert health.admits("probe")


async def test_the_rest_doubles_while_it_keeps_failing():
    health = Breakers(cool_down=0.0)
    for _ in range(FAILURES):
        health.note("probe", failure("execution_error", "x"))
    health._cool_down = 60.0
    health._circuits["probe"].ttl = 60.0
    health._circuits["probe"]._state.opened_at = 0.0
    assert health.admits("probe")
    health.note("probe", failure("execution_error", "x"))
    assert health.condition("probe").rest == 120.0


async def test_repeated_time_outs_mark_a_tool_as_slow():
    health = Breakers()
    found = await results(breaker(health)(tool(Tries(2, "timeout"))), {"n": 1}, {"n": 2})
    assert "it is slow" in found[-1].text
    assert health.condition("probe").slow


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text("one")
    return path


def reading(file: Path, memory: CallMemory) -> tuple[Tool, Tries]:
    run = Tries(0)
    facts = ToolFacts(paths=("path",), cacheable=True)
    return once(memory)(tool(run, facts=facts)), run


async def test_the_same_call_is_answered_from_memory_and_says_so(file: Path):
    probe, run = reading(file, CallMemory(Path))
    first, second = await results(probe, {"path": str(file)}, {"path": str(file)})
    assert run.runs == 1
    assert second.text.startswith(first.text)
    assert "From memory: the same call, 0 s ago" in second.text
    assert second.meta["cached_s"] == 0


async def test_a_changed_file_is_read_again(file: Path):
    memory = CallMemory(Path)
    probe, run = reading(file, memory)
    await results(probe, {"path": str(file)})
    file.write_text("three")
    await results(probe, {"path": str(file)})
    assert run.runs == 2


async def test_a_write_through_us_forgets_what_depends_on_it(file: Path):
    memory = CallMemory(Path)
    probe, run = reading(file, memory)
    await results(probe, {"path": str(file)})
    writing = tool(Tries(0), Effect.WRITE, facts=ToolFacts(paths=("path",)))
    await results(once(memory)(writing), {"path": str(file)})
    await results(probe, {"path": str(file)})
    assert run.runs == 2


@pytest.mark.parametrize(
    ("effect", "args", "fails", "runs"),
    [
        (Effect.WRITE, {"path": "FOLDER/b.txt"}, False, 1),
        (Effect.WRITE, {"path": "FOLDER/a.txt"}, True, 2),
        (Effect.WRITE, {"path": "a\0b"}, False, 2),
        (Effect.WRITE, {}, False, 2),
        (Effect.EXECUTE, {"path": "FOLDER/b.txt"}, False, 2),
        (Effect.NETWORK, {"path": "FOLDER/a.txt"}, False, 1),
    ],
)
async def test_what_a_call_may_have_changed_is_forgotten(
    file: Path, effect: Effect, args: dict[str, str], fails: bool, runs: int
):
    """Also where the call failed: it may have changed something before."""

    def resolve(text: str) -> Path:
        if "\0" in text:
            raise UsageError("That is no path.")
        return Path(text)

    async def change(args: Mapping[str, Any], call: Call) -> ToolResult:
        if fails:
            raise ZeroDivisionError
        return ToolResult("changed")

    memory = CallMemory(resolve)
    probe, run = reading(file, memory)
    await results(probe, {"path": str(file)})
    args = {name: value.replace("FOLDER", str(file.parent)) for name, value in args.items()}
    changing = once(memory)(tool(change, effect, facts=ToolFacts(paths=("path",))))
    await results(changing, args)
    await results(probe, {"path": str(file)})
    assert run.runs == runs


async def test_what_changed_while_it_was_read_or_is_not_there_is_not_remembered(file: Path):
    memory = CallMemory(Path)

    async def reads(args: Mapping[str, Any], call: Call) -> ToolResult:
        seen.append(file.read_text())
        file.write_text(f"{seen[-1]}+")
        return ToolResult(seen[-1])

    seen: list[str] = []
    facts = ToolFacts(paths=("path", "other"), cacheable=True)
    probe = once(memory)(tool(reads, facts=facts))
    await results(probe, {"path": str(file)}, {"path": str(file)})
    assert seen == ["one", "one+"]
    gone, run = reading(file, memory)
    await results(gone, {"path": str(file.parent / "none")}, {"path": str(file.parent / "none")})
    assert run.runs == 2


async def test_old_answers_and_other_arguments_do_not_count(file: Path):
    now = [0.0]
    memory = CallMemory(Path, clock=lambda: now[0], lifetime=10.0)
    probe, run = reading(file, memory)
    await results(probe, {"path": str(file)}, {"path": str(file), "n": 1})
    assert run.runs == 2
    now[0] = 11.0
    await results(probe, {"path": str(file)})
    assert run.runs == 3


async def test_failures_and_calls_without_the_promise_are_not_remembered(file: Path):
    run = Tries(1)
    facts = ToolFacts(paths=("path",), cacheable=True)
    await results(once(CallMemory(Path))(tool(run, facts=facts)), {"path": str(file)}, {"path": str(file)})
    assert run.runs == 2
    live = Tries(0)
    await results(once(CallMemory(Path))(tool(live)), {}, {})
    assert live.runs == 2


def test_a_failure_has_the_code_of_the_system() -> None:
    error = OSError(ENOSPC, "No space left on device")
    result = identified(failed_result(from_os(error, "a.txt")), "call-1")
    assert "Error Type: resource_error\nError Code: ENOSPC\nError Message: a.txt: No space" in result.text
