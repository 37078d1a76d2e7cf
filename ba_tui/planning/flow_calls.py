"""The branch and the calls of a workflow's steps: a context of their own, questions and progress through the caller's.

Which step comes when is flow_run.
"""

from __future__ import annotations

import time
from dataclasses import replace

from ba_tui.core.events import Event
from ba_tui.core.questions import Question, Reply
from ba_tui.core.tool import Call
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch


class FlowBranch(Branch):
    """A branch whose transcript is the workflow's own: it begins with the caller's folder and list, and no messages.

    What is said on it goes out through the caller's branch.
    """

    def __init__(self, caller: Branch) -> None:
        transcript = Transcript(caller.name)
        transcript.cwd, transcript.todos = caller.transcript.cwd, caller.transcript.todos
        super().__init__(caller._turn, transcript, caller._inbox)
        self._caller = caller

    def emit(self, event: Event) -> None:
        self._caller.emit(event)


class StepCall(Call):
    """The call of one step. The person sees one call, the workflow's, so reports and questions go out as that one's.

    ``trail``: the workflows that are running, the outermost first.
    """

    def __init__(self, number: int, outer: Call, branch: FlowBranch, trail: tuple[str, ...], step: str) -> None:
        super().__init__(f"{outer.id}.{number}", branch)
        self.trail = trail
        self._outer = outer
        self._step = step

    def report(self, text: str) -> None:
        self._tail = (self._tail + text)[-self.TAIL :]
        self._outer.report(text)

    async def ask(self, question: Question) -> Reply:
        reason = f"Step {self._step} of {self.trail[-1]}. {question.reason}".rstrip()
        start = time.monotonic()
        try:
            return await self._outer.ask(replace(question, call_id=self._outer.id, reason=reason))
        finally:
            self.waited = self.waited + (time.monotonic() - start)
