"""Carries out a plan: its steps on the engine, tries again, skips what nothing can be done for, and has it made anew.

Each change is an event before anything follows from it, so that a plan goes on where the journal ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ba_tui.core.errors import BaError, StopTurn, UsageError
from ba_tui.core.events import Notice, PlanChanged, SubTaskChanged
from ba_tui.core.provider import ASSUMED
from ba_tui.core.teamwork.plans import ENDED, Plan, PlanState, SubTask, Task
from ba_tui.core.text.wording import one_line, sentence
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.executor import AT_ONCE, Steps, execute
from ba_tui.features.plans.engine.filling import StepFacts, Unresolved, Whole, filled, prompt_for, refused, revision
from ba_tui.features.plans.engine.replanning import REPLANS, TRIES, Failure, Failures, merged
from ba_tui.plotting.plans.checking import references

INTERRUPTED = "Interrupted while it ran: it may have done a part of its work."
UNBEGUN = "Not begun: "
ANEW = "Making the plan anew: "
"""Begins the reason of a change that is followed by a new plan."""


@frozen
class Outcome:
    """What one try of a step gave; ``error`` is empty when it succeeded, the flags say of which kind a failure is (see
    replanning.Failure). ``text`` is at most a few thousand characters, ``artifact`` where the whole is stored."""

    text: str = ""
    value: Any = None
    artifact: str = ""
    agent_id: str = ""
    error: str = ""
    hopeless: bool = False
    passing: bool = False
    blocked: bool = False
    revise: bool = False


async def nothing() -> None:
    """Wait for nothing."""


async def silence() -> Sequence[str]:
    """Nobody said anything."""
    return ()


def held(step: SubTask) -> Any:
    """What ``step`` itself holds of its result."""
    return step.result if step.value is None else step.value


@frozen
class PlanMeans:
    """What a run works with.

    ``call`` makes the call of a step that names a tool, with its arguments as they are then; ``work`` has an agent (or
    a member of a team) do any other step, which it is told in the prompt. ``reads``: whether a step only reads.
    ``replan`` makes the plan anew, for a reason; it raises BaError. ``whole`` gives all of a result; it may read files.
    ``said``: what the person said since the plan began. ``gate`` returns once the plan may go on. ``run``: the tools
    whose arguments are commands or programs.
    """

    call: Callable[[SubTask, dict[str, Any], Branch], Awaitable[Outcome]]
    work: Callable[[SubTask, str, Branch], Awaitable[Outcome]]
    reads: Callable[[SubTask], bool]
    replan: Callable[[Plan, str], Awaitable[Plan]] | None = None
    whole: Whole = held
    said: Callable[[], Awaitable[Sequence[str]]] = silence
    gate: Callable[[], Awaitable[None]] = nothing
    run: Collection[str] = ()


@frozen
class PlanBounds:
    """``deadline`` in seconds and ``cost`` in US dollars for the whole plan; None: no limit."""

    at_once: int = AT_ONCE
    deadline: float | None = None
    cost: float | None = None


class _Anew(Exception):
    """The plan must be made anew; the message says why."""


class PlanRun:
    """One run of one plan. ``failure`` and ``reason``: what an earlier run left, see core.events.planned.PlanRecord."""

    def __init__(
        self,
        plan: Plan,
        branch: Branch,
        means: PlanMeans,
        bounds: PlanBounds | None = None,
        left: tuple[str, str] = ("", ""),
    ) -> None:
        self._plan = plan
        self._branch = branch
        self._means = means
        self._bounds = bounds or PlanBounds()
        failure, self._reason = left
        self._failures = Failures()
        self._failures.last = failure
        self._steps = {step.id: step for step in plan.subtasks}
        self._anew = False
        self._over = ""
        self._gate = asyncio.Lock()
        self._said: Sequence[str] = ()
        self._spent = _spent(branch)
        self._stuck = next((step for step in plan.subtasks if _stuck(step)), None)

    @property
    def plan(self) -> Plan:
        """The plan as it stands."""
        return replace(self._plan, subtasks=tuple(self._steps.values()))

    async def run(self) -> Plan:
        """Carry the plan out and return it as it ended: ``completed``, or ``partial`` when a step is missing.

        It ends as ``cancelled`` while a step waits for the user's decision: it can go on later.

        Raises:
            UsageError: the plan is wrong; no step was begun.
            asyncio.CancelledError: it was cancelled; it can go on later.
        """
        if wrong := refused(self.plan):
            raise UsageError(f"The plan can't be carried out: {'; '.join(wrong[:5])}.", "Change the plan.")
        left = self._reason if self._reason.startswith(ANEW) else ""
        self._change("running", left)
        limit = self._bounds.deadline
        clock = asyncio.timeout(limit)
        try:
            async with clock:
                if left:
                    await self._make_anew(left.removeprefix(ANEW))
                await self._rounds()
        except TimeoutError:
            if not clock.expired():
                raise
            self._close(f"The deadline of the plan ({limit:g} s) was reached.")
        except asyncio.CancelledError:
            self._interrupt()
            raise
        steps = self._steps.values()
        if any(step.undecided for step in steps):
            self._change("cancelled", "A step waits for your decision.")
        elif all(step.status == "completed" for step in steps):
            self._change("completed")
        else:
            self._change("partial", self._over)
        return self.plan

    async def _rounds(self) -> None:
        while True:
            left = {id: step for id, step in self._steps.items() if step.status not in ENDED}
            waits = {id: [other for other in step.dependencies if other in left] for id, step in left.items()}
            try:
                await execute(Steps(waits, self._step, self._reads, self._bounds.at_once))
                return
            except _Anew as anew:
                await self._make_anew(str(anew))

    def _reads(self, id: str) -> bool:
        step = self._steps[id]
        return bool(self._unneeded(step)) or self._means.reads(step)

    async def _step(self, id: str) -> None:
        while True:
            async with self._gate:
                await self._means.gate()
            step = self._steps[id]
            if why := self._unneeded(step) or self._ended():
                self._set(replace(step, status="skipped", error=why))
                return
            step = self._set(replace(step, status="executing", attempts=step.attempts + 1))
            outcome = await self._tried(step)
            if not outcome.error:
                self._failures.succeeded()
                self._set(completed(step, outcome))
                return
            if not self._again(replace(step, error=outcome.error, agent_id=outcome.agent_id), outcome):
                return

    async def _tried(self, step: SubTask) -> Outcome:
        """One try; whatever goes wrong is in what it returns."""
        try:
            if step.tool_name:
                outcome = await self._means.call(step, await self._arguments(step), self._branch)
            else:
                before = [self._steps[id] for id in step.dependencies]
                self._said = await self._means.said()
                facts = StepFacts(self._plan, self._said, before)
                outcome = await self._means.work(step, prompt_for(step, facts), self._branch)
        except StopTurn as stop:
            self._over = sentence(str(stop))
            return Outcome(error=self._over, blocked=True)
        except Unresolved as error:
            return Outcome(error=sentence(str(error)), hopeless=True)
        except BaError as error:
            return Outcome(error=error.info().with_hint, hopeless=isinstance(error, UsageError))
        except Exception as error:  # noqa: BLE001 - one step that breaks must not lose the others' work
            return Outcome(error=f"{type(error).__name__}: {one_line(str(error), 300)}")
        if not outcome.error and not step.tool_name and (why := revision(outcome.text)):
            return replace(outcome, error=why, hopeless=True, revise=True)
        return outcome

    async def _arguments(self, step: SubTask) -> dict[str, Any]:
        """The arguments of the step's call with the results in them. Raises Unresolved."""
        before = {id: self._steps[id] for id in references(step) if id in self._steps}
        fill = partial(filled, step.tool_args, before, self._means.whole, words=step.tool_name in self._means.run)
        return await asyncio.to_thread(fill) if any(found.artifact for found in before.values()) else fill()

    def _again(self, step: SubTask, outcome: Outcome) -> bool:
        """Whether the step that failed is tried again. Raises _Anew when the plan must be changed instead."""
        failure = Failure(step, outcome.hopeless, outcome.passing, outcome.blocked, outcome.revise)
        why = self._failures.reason(failure)
        if why and not self._over and self._means.replan and self._plan.replans < REPLANS:
            self._give_up(step, outcome, why)
            raise _Anew(why)
        if step.attempts < TRIES and not (outcome.hopeless or outcome.blocked):
            self._steps[step.id] = step
            return True
        self._set(replace(step, status="blocked" if outcome.blocked else "failed"))
        return False

    def _give_up(self, step: SubTask, outcome: Outcome, why: str) -> None:
        """End ``step`` and say that the plan is made anew: as one event, so that a run that goes on from here knows."""
        ended = replace(step, status="blocked" if outcome.blocked else "failed")
        if self._anew:
            # The planner is told of this step with the one that failed before.
            self._set(ended)
            return
        self._anew = True
        self._steps[step.id] = ended
        self._change("running", f"{ANEW}{why}")

    async def _make_anew(self, why: str) -> None:
        assert self._means.replan
        course = f"Made anew: {why}"
        try:
            self._plan = merged(self.plan, await self._means.replan(self.plan, why))
            self._steps = {step.id: step for step in self._plan.subtasks}
            self._stuck = None
        except BaError as error:
            # It counts, too: otherwise a planner that always fails would be asked forever.
            self._plan = replace(self._plan, replans=self._plan.replans + 1)
            course = ""
            self._stuck = next((step for step in self._steps.values() if _stuck(step)), None)
            self._branch.emit(Notice(f"The plan could not be made anew: {error}", "warning", error.hint))
        self._anew = False
        self._failures.succeeded()
        self._change("running", course)

    def _unneeded(self, step: SubTask) -> str:
        """Why the step can't be begun any more; empty when it can."""
        if self._over:
            return f"{UNBEGUN}{self._over}"
        for id in step.dependencies:
            before = self._steps[id]
            if before.status in ENDED and before.status != "completed" and id not in step.optional:
                return f"{UNBEGUN}it needs step {id}, which is {before.status}."
        return ""

    def _ended(self) -> str:
        """Why no further step is begun; empty while there are no bounds in the way."""
        limit = self._bounds.cost
        if limit is not None and _spent(self._branch) - self._spent >= limit:
            self._over = f"The plan has used its budget of ${limit:g}."
        if self._stuck and not self._anew:
            self._over = f"Step {self._stuck.id} is critical, and it is {self._stuck.status}."
        return f"{UNBEGUN}{self._over}" if self._over else ""

    def _set(self, step: SubTask) -> SubTask:
        self._steps[step.id] = step
        self._stuck = step if _stuck(step) else self._stuck
        self._branch.emit(SubTaskChanged(self._plan.id, step))
        return step

    def _change(self, state: PlanState, reason: str = "") -> None:
        self._reason = reason
        self._plan = replace(self.plan, state=state, task=knowing(self._plan.task, self._said))
        self._branch.emit(PlanChanged(self._plan, reason))

    def _close(self, why: str) -> None:
        """End what runs and skip what was not begun."""
        self._over = why
        for step in list(self._steps.values()):
            if step.status == "executing":
                self._set(replace(step, status="failed", error=why))
            elif step.status == "pending":
                self._set(replace(step, status="skipped", error=f"{UNBEGUN}{why}"))

    def _interrupt(self) -> None:
        """Steps that ran wait again, with a note that they may have done something."""
        for step in self._steps.values():
            if step.status == "executing":
                self._steps[step.id] = begun_again(step)
        self._change("cancelled", self._reason if self._anew else "Interrupted.")


def _spent(branch: Branch) -> float:
    """US dollars; what had no price, at assumed ones: a limit holds for any model."""
    account = branch.account
    return ASSUMED.cost(account.usage) if account.spent is None else account.spent


def knowing(task: Task, said: Sequence[str]) -> Task:
    """``task`` with what the person said in its context, each only once."""
    new = [each for each in dict.fromkeys(said) if each and each not in task.context]
    return replace(task, context="\n".join(filter(None, (task.context, *new)))) if new else task


def _stuck(step: SubTask) -> bool:
    return step.critical and step.status in {"failed", "blocked"}


def begun_again(step: SubTask) -> SubTask:
    """A step that was interrupted, as it waits for its next try."""
    return replace(step, status="pending", error=INTERRUPTED, attempts=max(0, step.attempts - 1))


def may_have_run(step: SubTask) -> bool:
    """Whether the step was running when the plan was interrupted, and nothing was decided about it since."""
    return step.status == "executing" or step.undecided or (step.status == "pending" and step.error == INTERRUPTED)


def completed(step: SubTask, outcome: Outcome) -> SubTask:
    """Return ``step`` with the result of a try that succeeded."""
    return replace(
        step,
        status="completed",
        result=outcome.text,
        value=outcome.value,
        artifact=outcome.artifact,
        agent_id=outcome.agent_id,
        error="",
    )
