"""What a pattern works with, and the answer that it gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ba_tui.core.teamwork.plans import Plan, SubTask
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.prompts import unfinished

if TYPE_CHECKING:
    from ba_tui.features.teams.engine.assignment import Assignment
    from ba_tui.features.teams.engine.jobs import Job, Outcome
    from ba_tui.features.teams.engine.settling import Settling


@frozen
class Answer:
    """``text`` is what the team found; ``complete``: nothing is missing. ``missing`` says what is."""

    text: str
    complete: bool = True
    missing: tuple[str, ...] = ()

    @staticmethod
    def unfinished(results: Mapping[str, str], missing: Sequence[str]) -> Answer:
        """The results as they are."""
        text = unfinished(results, missing) if results else ""
        return Answer(text, complete=not missing and bool(results), missing=tuple(missing))


class Floor(Protocol):
    """The team as its pattern sees it."""

    @property
    def assignment(self) -> Assignment: ...

    @property
    def settling(self) -> Settling: ...

    async def planned(self) -> Plan: ...

    async def carry(self, plan: Plan, work: Callable[[SubTask, str], Awaitable[Outcome]]) -> Plan: ...

    async def work(self, subtask: SubTask, prompt: str) -> Outcome: ...

    async def results(self, plan: Plan) -> Mapping[str, str]: ...

    def overruled(self, task: str) -> bool: ...

    async def do(self, job: Job) -> Outcome: ...

    async def synthesized(self, results: Mapping[str, str], missing: Sequence[str]) -> Answer: ...


def missing_of(plan: Plan) -> Sequence[str]:
    """What was not done, and why, in lines."""
    left = [each for each in plan.subtasks if each.status != "completed"]
    return [f"{each.id} ({each.description[:80]}): {each.error or each.status}" for each in left]
