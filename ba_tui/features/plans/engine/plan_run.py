"""Executes a plan: runs its steps, retries them, skips impossible ones, and has the plan replaced when needed.

Each change is emitted as an event before anything depends on it, so that a plan resumes where the journal ends.
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
from ba_tui.core.teamwork import ENDED_STATUSES, Plan, PlanState, PlanTask, SubTask
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line, sentence
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.executor import AT_ONCE, Steps, execute
from ba_tui.features.plans.engine.filling import (
    UnresolvedReference,
    Whole,
    filled,
    prompt_for,
    refused,
    revision,
)
from ba_tui.plotting.plan_edits import references

TRIES = 3
"""Number of failures of one step after which the plan is replaced."""
REPLANS = 3
_NUMBER = regex(r"\d+")


@frozen
class StepOutcome:
    """The outcome of one attempt at a step; ``error`` is empty on success. ``hopeless``: a retry would fail the same
    way. ``passing``: the cause is temporary, such as a lost connection. ``blocked``: the cause is outside the plan,
    such as a user's denial. ``revise``: the agent asks for a changed plan. ``text`` has at most a few thousand
    characters; ``artifact`` refers to the whole stored result.
    """

    text: str = ""
    value: Any = None
    artifact: str = ""
    agent_id: str = ""
    error: str = ""
    hopeless: bool = False
    passing: bool = False
    blocked: bool = False
    revise: bool = False


class StepFailures:
    """The failures of a plan in order; decides when the plan must be replaced."""

    def __init__(self, last: str = "") -> None:
        self.last = last
        """Why the newest try failed; empty when it succeeded."""

    def succeeded(self) -> None:
        self.last = ""

    def reason(self, step: SubTask, outcome: StepOutcome) -> str:
        """Record a failed try; return why the plan must be replaced, or "" if it continues."""
        before = self.last
        name, error = f"Step {step.id}", one_line(step.error, 300)
        if outcome.revise:
            return f"{name} asks for another plan: {error}"
        if step.critical and not outcome.passing:
            return f"{name} is critical and failed: {error}"
        if outcome.blocked:
            return ""
        self.last = _kind(step.error)
        if step.attempts >= TRIES:
            return f"{name} failed {step.attempts} times: {error}"
        if before and before != self.last:
            return f"Two different failures in a row, the last one of step {step.id}: {error}"
        if outcome.hopeless:
            return f"{name} failed, and trying it again can't help: {error}"
        return ""


def _kind(error: str) -> str:
    """Return the text of a failure with its numbers removed, so that similar failures are equal."""
    return _NUMBER.sub("#", one_line(error, 200)).casefold()


def merged(old: Plan, new: Plan) -> Plan:
    """Return ``new`` merged over ``old``: completed steps are kept unchanged, all others start again.

    Raises:
        UsageError: the new plan can't be executed.
    """
    done = {step.id: step for step in old.subtasks if step.status == "completed"}
    named = {step.id for step in new.subtasks}
    kept = [step for step in done.values() if step.id not in named]
    steps = (*kept, *(done.get(step.id) or fresh(step) for step in new.subtasks))
    plan = replace(new, id=old.id, subtasks=steps, state="running", replans=old.replans + 1)
    plan = replace(plan, task=replace(plan.task, id=old.task.id, original_query=old.task.original_query))
    if wrong := refused(plan):
        raise UsageError(f"The new plan can't be carried out: {'; '.join(wrong[:3])}.")
    return plan


def fresh(step: SubTask) -> SubTask:
    """Return ``step`` as if it was never begun."""
    return replace(step, status="pending", result="", value=None, artifact="", error="", attempts=0, agent_id="")


INTERRUPTED = "Interrupted while it ran: it may have done a part of its work."
UNBEGUN = "Not begun: "
ANEW = "Making the plan anew: "
"""Prefix of the reason of a change that a new plan follows."""


async def nothing() -> None:
    """Return immediately: the plan is not paused."""


async def silence() -> Sequence[str]:
    """Return no messages of the user."""
    return ()


def held(step: SubTask) -> Any:
    """Return the part of a result that ``step`` itself stores."""
    return step.result if step.value is None else step.value


@frozen
class PlanMeans:
    """Callbacks of a run.

    ``call`` makes the call of a step with a tool, with its resolved arguments; ``work`` has an agent (or a member of a
    team) do any other step, given the prompt. ``reads``: whether a step is read-only. ``replan`` replaces the plan, for
    a reason; it raises BaError. ``whole`` returns a complete result; it may read files. ``said``: the user's messages
    since the plan began. ``gate`` returns once the plan may continue. ``run``: the tools whose arguments are commands
    or programs.
    """

    call: Callable[[SubTask, dict[str, Any], Branch], Awaitable[StepOutcome]]
    work: Callable[[SubTask, str, Branch], Awaitable[StepOutcome]]
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
    """The plan must be replaced; the message says why."""


class PlanRun:
    """One run of one plan. ``failure`` and ``reason``: state of an earlier run, see core.plan_folds.PlanRecord."""

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
        self._failures = StepFailures(failure)
        self._steps = {step.id: step for step in plan.subtasks}
        self._anew = False
        self._over = ""
        self._gate = asyncio.Lock()
        self._said: Sequence[str] = ()
        self._spent = _spent(branch)
        self._stuck = next((step for step in plan.subtasks if _stuck(step)), None)

    @property
    def plan(self) -> Plan:
        """Return the current plan."""
        return replace(self._plan, subtasks=tuple(self._steps.values()))

    async def run(self) -> Plan:
        """Execute the plan and return its final state: ``completed``, or ``partial`` if a step is missing.

        It ends as ``cancelled`` while a step waits for the user's decision: it can be resumed later.

        Raises:
            UsageError: the plan is wrong; no step was begun. asyncio.CancelledError: it was cancelled; it can be
            resumed later.
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
            left = {id: step for id, step in self._steps.items() if step.status not in ENDED_STATUSES}
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

    async def _tried(self, step: SubTask) -> StepOutcome:
        """Make one attempt; every failure is part of the returned outcome."""
        try:
            if step.tool_name:
                outcome = await self._means.call(step, await self._arguments(step), self._branch)
            else:
                before = [self._steps[id] for id in step.dependencies]
                self._said = await self._means.said()
                prompt = prompt_for(step, self._plan.task, self._said, before)
                outcome = await self._means.work(step, prompt, self._branch)
        except StopTurn as stop:
            self._over = sentence(str(stop))
            return StepOutcome(error=self._over, blocked=True)
        except UnresolvedReference as error:
            return StepOutcome(error=sentence(str(error)), hopeless=True)
        except BaError as error:
            return StepOutcome(error=error.info().with_hint, hopeless=isinstance(error, UsageError))
        except Exception as error:  # noqa: BLE001 - one step that breaks must not lose the others' work
            return StepOutcome(error=f"{type(error).__name__}: {one_line(str(error), 300)}")
        if not outcome.error and not step.tool_name and (why := revision(outcome.text)):
            return replace(outcome, error=why, hopeless=True, revise=True)
        return outcome

    async def _arguments(self, step: SubTask) -> dict[str, Any]:
        """Return the arguments of the step's call with the results inserted. Raises UnresolvedReference."""
        before = {id: self._steps[id] for id in references(step) if id in self._steps}
        fill = partial(filled, step.tool_args, before, self._means.whole, words=step.tool_name in self._means.run)
        return await asyncio.to_thread(fill) if any(found.artifact for found in before.values()) else fill()

    def _again(self, step: SubTask, outcome: StepOutcome) -> bool:
        """Return whether the failed step is tried again. Raises _Anew when the plan must be replaced instead."""
        why = self._failures.reason(step, outcome)
        if why and not self._over and self._means.replan and self._plan.replans < REPLANS:
            self._give_up(step, outcome, why)
            raise _Anew(why)
        if step.attempts < TRIES and not (outcome.hopeless or outcome.blocked):
            self._steps[step.id] = step
            return True
        self._set(replace(step, status="blocked" if outcome.blocked else "failed"))
        return False

    def _give_up(self, step: SubTask, outcome: StepOutcome, why: str) -> None:
        """End ``step`` and record that the plan is replaced, in one event, so that a resumed run knows both."""
        ended = replace(step, status="blocked" if outcome.blocked else "failed")
        if self._anew:
            # The planner gets this step together with the one that failed before.
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
            # A failed replacement counts as well: otherwise a failing planner would be asked forever.
            self._plan = replace(self._plan, replans=self._plan.replans + 1)
            course = ""
            self._stuck = next((step for step in self._steps.values() if _stuck(step)), None)
            self._branch.emit(Notice(f"The plan could not be made anew: {error}", "warning", error.hint))
        self._anew = False
        self._failures.succeeded()
        self._change("running", course)

    def _unneeded(self, step: SubTask) -> str:
        """Return why the step can't be begun any more; empty if it can."""
        if self._over:
            return f"{UNBEGUN}{self._over}"
        for id in step.dependencies:
            before = self._steps[id]
            if before.status in ENDED_STATUSES and before.status != "completed" and id not in step.optional:
                return f"{UNBEGUN}it needs step {id}, which is {before.status}."
        return ""

    def _ended(self) -> str:
        """Return why no further step is begun; empty within the limits."""
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
        """Stop the running steps and skip those that were not begun."""
        self._over = why
        for step in list(self._steps.values()):
            if step.status == "executing":
                self._set(replace(step, status="failed", error=why))
            elif step.status == "pending":
                self._set(replace(step, status="skipped", error=f"{UNBEGUN}{why}"))

    def _interrupt(self) -> None:
        """Make running steps pending again, with a note that they may have changed something."""
        for step in self._steps.values():
            if step.status == "executing":
                self._steps[step.id] = begun_again(step)
        self._change("cancelled", self._reason if self._anew else "Interrupted.")


def _spent(branch: Branch) -> float:
    """Return the cost in US dollars; unpriced requests are estimated, so that the limit applies to every model."""
    account = branch.account
    return ASSUMED.cost(account.usage) if account.spent is None else account.spent


def knowing(task: PlanTask, said: Sequence[str]) -> PlanTask:
    """Return ``task`` with the user's messages added to its context, without duplicates."""
    new = [each for each in dict.fromkeys(said) if each and each not in task.context]
    return replace(task, context="\n".join(filter(None, (task.context, *new)))) if new else task


def _stuck(step: SubTask) -> bool:
    return step.critical and step.status in {"failed", "blocked"}


def begun_again(step: SubTask) -> SubTask:
    """Return an interrupted step as pending for its next attempt."""
    return replace(step, status="pending", error=INTERRUPTED, attempts=max(0, step.attempts - 1))


def may_have_run(step: SubTask) -> bool:
    """Return whether the step was running when the plan was interrupted and is still undecided."""
    return step.status == "executing" or step.undecided or (step.status == "pending" and step.error == INTERRUPTED)


def completed(step: SubTask, outcome: StepOutcome) -> SubTask:
    """Return ``step`` with the result of a successful attempt."""
    return replace(
        step,
        status="completed",
        result=outcome.text,
        value=outcome.value,
        artifact=outcome.artifact,
        agent_id=outcome.agent_id,
        error="",
    )
