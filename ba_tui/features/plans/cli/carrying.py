"""Carries a plan out in print mode: nobody is asked, the plan itself is agreed to as the permission mode allows."""

from __future__ import annotations

from collections.abc import Callable

from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import BaError
from ba_tui.core.events import Notice
from ba_tui.core.ports.delegation import Work
from ba_tui.core.questions import Question, Reply
from ba_tui.core.services import Services, begin
from ba_tui.core.start import Start
from ba_tui.faces.headless import Printer, denial, print_turn
from ba_tui.faces.run_result import INFRASTRUCTURE, OK, USAGE, RunResult


async def carry_out(services: Services, start: Start, printer: Printer, work: Callable[[Conversation], Work]) -> int:
    """Run the work of ``start``'s session to its end and print it; returns the exit code."""
    for notice in services.notices:
        printer.event(notice)
    try:
        conversation = begin(services.library, start)
    except BaError as error:
        printer.failed(error)
        return USAGE
    try:
        for event in await conversation.history():
            if isinstance(event, Notice) and event.damage:
                printer.event(event)
        if missing := services.setup.missing(conversation.model):
            printer.failed(BaError(missing))
            return USAGE
        turn = conversation.say(start.prompt, work(conversation))
    except BaError as error:
        await conversation.close()
        printer.failed(error)
        return USAGE if error.kind == "usage" else INFRASTRUCTURE
    outcome = RunResult(conversation.id, conversation.model)
    await print_turn(conversation, turn, printer, outcome, agreed)
    return code_of(outcome)


def agreed(question: Question) -> Reply:
    """Yes to the plan that was asked for on the command line, no to all else that needs a person."""
    return Reply("once", by="mode") if question.kind == "plan" else denial(question)


def code_of(outcome: RunResult) -> int:
    """That of the run; where it ended well, whether all of the plan is done."""
    record = outcome.plans.newest
    if outcome.code != OK or record is None:
        return outcome.code
    return OK if record.plan.state == "completed" else INFRASTRUCTURE
