"""Interceptors that every agent has: how many requests one task may take, when a run that only fails ends, what
happens to answers that were cut, and who is asked when an agent repeats itself."""

from __future__ import annotations

from collections.abc import Callable

from ba_tui.core.agent_spec import AgentSpec, Budget
from ba_tui.core.errors import BudgetUsed, ErrorsOnly, StepsUsed
from ba_tui.core.events import MAIN, Steered
from ba_tui.core.messages import Message, reminder
from ba_tui.core.questions import Question
from ba_tui.core.turn import Branch

CONTINUATIONS = 3
"""How often an answer is continued in one turn without the person."""


class Reasoner:
    """Who goes on when an agent repeats itself: kept for one agent and turn. ``asked``: its requests go to the model
    of the slot reasoning from now on."""

    asked = False

    def __init__(self) -> None:
        self.name: Callable[[], str] = str
        """The model that can be asked; empty when there is no other one."""


class _Count:
    """A number that belongs to one agent and one turn."""

    def __init__(self) -> None:
        self.number = 0


class _Requests(_Count):
    closing = False
    """The last request, without tools, is on its way."""


class StepLimit:
    """core.agent.Interceptor: asks the person whether to go on after ``max_loops`` model requests in one turn."""

    def __init__(self, max_loops: int) -> None:
        self.max_loops = max_loops

    async def before(self, branch: Branch) -> None:
        """Raises StopTurn when the person says no."""
        made = branch.state(_Requests)
        if made.closing:
            return
        left = self.max_loops - made.number
        if left <= 0:
            if not await self._go_on(branch):
                made.closing = True
                message = f"Stopped at the limit of {self.max_loops} steps."
                closing = "The step limit of this turn is reached."
                raise StepsUsed(message, "Say “go on”, or raise max_loops.", closing=closing)
            made.number = 0
        elif made.number and left == max(1, self.max_loops // 20):
            note = f"{left} more model requests are allowed in this turn. Come to an end."
            branch.emit(Steered(reminder(note)))
        made.number += 1

    async def after(self, reply: Message, branch: Branch) -> None:
        """Nothing: the limit counts requests."""

    async def _go_on(self, branch: Branch) -> bool:
        text = f"{self.max_loops} steps were taken in this turn. Go on?"
        reply = await branch.ask(Question("continue", text))
        return reply.choice != "deny"


class ErrorBudget:
    """core.agent.Interceptor: ends a turn in which so many calls and sub-agents failed in a row, in whichever agent,
    without one success in between."""

    def __init__(self, most: int) -> None:
        self.most = most

    async def before(self, branch: Branch) -> None:
        """Raises StopTurn; the main agent says first how far it came."""
        stopped = branch.state(_Requests)
        if branch.failures.number < self.most or stopped.closing:
            return
        stopped.closing = True
        message = f"Stopped: {branch.failures.number} calls in a row failed, and none succeeded."
        hint = f"The last one: {branch.failures.last} Say what to do differently, or raise error_budget."
        closing = "Too many calls in a row have failed." if branch.name == MAIN else ""
        raise ErrorsOnly(message, hint, closing=closing)

    async def after(self, reply: Message, branch: Branch) -> None:
        """Nothing: an answer that came is kept."""


class Escalation:
    """core.agent.Interceptor: knows which model goes on when the agent repeats itself. ``name`` returns its id, or
    nothing when there is no other one."""

    def __init__(self, name: Callable[[], str]) -> None:
        self.name = name

    async def before(self, branch: Branch) -> None:
        branch.state(Reasoner).name = self.name

    async def after(self, reply: Message, branch: Branch) -> None:
        """Nothing: it is about calls."""


class CutAnswers:
    """core.agent.Interceptor: lets the model go on where an answer was cut at the output limit, or paused."""

    async def before(self, branch: Branch) -> None:
        """Say to a model whose last call was cut what to do instead."""
        transcript = branch.transcript
        reply = next((each for each in reversed(transcript.messages) if each.role == "assistant"), None)
        if reply is None or reply.stop != "max_tokens" or not reply.calls or reply.calls[-1].malformed is None:
            return
        if reply.calls[-1] in transcript.calls_since_prompt():
            note = "Your last call was cut at the output limit. Do it in several smaller calls."
            branch.emit(Steered(reminder(note)))

    async def after(self, reply: Message, branch: Branch) -> bool:
        cut = branch.state(_Count)
        if reply.stop not in {"max_tokens", "pause_turn"} or cut.number >= CONTINUATIONS:
            return False
        cut.number += 1
        if reply.stop == "max_tokens":
            branch.post(reminder("Your answer was cut at the output limit. Go on exactly where it stopped."))
        return True


class BudgetLimit:
    """core.agent.Interceptor: no request goes out once an agent, with all below it, has spent its budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    async def before(self, branch: Branch) -> None:
        """Raises StopTurn at a limit, and when a limit in dollars can't be kept because a price is not known."""
        most, account = self.budget, branch.account
        if most.cost is not None and account.spent is None:
            hint = "Use a budget in tokens, or give the prices of the model in models.yaml: ba guide prices."
            raise BudgetUsed("Stopped: what the model costs is not known, so the budget can't be kept.", hint)
        if most.cost is not None and (account.spent or 0.0) >= most.cost:
            raise BudgetUsed(f"Stopped at the budget of ${most.cost:g} for {branch.name}.", "Give it a larger budget.")
        used = account.usage.prompt + account.usage.output
        if most.tokens is not None and used >= most.tokens:
            message = f"Stopped at the budget of {most.tokens:,} tokens for {branch.name}: {used:,} were used."
            raise BudgetUsed(message, "Give it a larger budget.")

    async def after(self, reply: Message, branch: Branch) -> None:
        """An answer that came is kept."""


def own_limits(
    spec: AgentSpec, error_budget: int, reasoning: Callable[[], str]
) -> tuple[StepLimit, CutAnswers, ErrorBudget, Escalation]:
    """The limits of one agent's loop, in the order in which they run. They come before all others: at the end of a turn
    nothing else has a say."""
    return (StepLimit(spec.max_loops), CutAnswers(), ErrorBudget(error_budget), Escalation(reasoning))
