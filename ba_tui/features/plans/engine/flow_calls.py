"""The branch and the calls of a workflow's steps: a context of their own, questions and progress through the caller's.

Which step comes when is flow_run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ba_tui.core.events import Event, ToolFinished, ToolProgress, ToolStarted
from ba_tui.core.questions import Question, Reply
from ba_tui.core.tool import Call
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch

T = TypeVar("T")


class FlowBranch(Branch):
    """A branch whose transcript is the workflow's own: it begins with the caller's folder and list, and no messages.

    The person sees one call, the workflow's: what its steps report goes out as that one's, everything else through the
    caller's branch. ``trail``: the workflows that are running, the outermost first.
    """

    def __init__(self, outer: Call, trail: tuple[str, ...]) -> None:
        caller = outer.branch
        transcript = Transcript(caller.name)
        transcript.cwd, transcript.todos = caller.transcript.cwd, caller.transcript.todos
        super().__init__(caller._turn, transcript, caller._inbox)
        self.ceiling = caller.ceiling
        self.trail = trail
        self._outer = outer

    def state(self, kind: Callable[[], T]) -> T:
        return self._outer.branch.state(kind)

    def emit(self, event: Event) -> None:
        match event:
            case ToolStarted():
                pass
            case ToolProgress(text=text):
                self._outer.report(text)
            case ToolFinished():
                self.transcript.apply(event if event.agent == self.name else replace(event, agent=self.name))
            case _:
                self._outer.branch.emit(event)


def step_call(number: int, outer: Call, branch: FlowBranch, step: str) -> Call:
    """The call of one step of the workflow that ``outer`` runs; its questions are that one's."""

    async def consult(question: Question) -> Reply:
        reason = f"Step {step} of {branch.trail[-1]}. {question.reason}".rstrip()
        return await outer.ask(replace(question, call_id=outer.id, reason=reason))

    return Call(f"{outer.id}.{number}", branch, consults=(consult,))
