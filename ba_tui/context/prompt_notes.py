"""Notes that go with a new prompt, and lines for the person that wait for a turn to be shown in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from ba_tui.context.instructions import Instructions, said
from ba_tui.core.events import Notice
from ba_tui.core.messages import Message, reminder
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.write_ahead import Outcome

UNREAD, CUT = "The model can't see it.", "The model can't see the rest: shorten the file."


class PendingNotices:
    """core.agent.Interceptor: shows each notice once, before the next request."""

    def __init__(self, notices: Iterable[Notice] = ()) -> None:
        self._notices = list(notices)

    def add(self, notice: Notice) -> None:
        self._notices.append(notice)

    async def before(self, branch: Branch) -> None:
        while self._notices:
            branch.emit(self._notices.pop(0))

    async def after(self, reply: Message, branch: Branch) -> None:
        """Nothing more to say."""


class PromptNotes:
    """The time and the project's instructions. ``read`` them anew for each prompt; what is wrong with their files is
    said once, through ``notices``, and each of the ``outcomes`` of changes that ba was killed in goes with a prompt."""

    def __init__(
        self,
        read: Callable[[], Sequence[Instructions]],
        notices: PendingNotices,
        outcomes: Callable[[], Sequence[Outcome]] = tuple,
    ) -> None:
        self._read = read
        self._notices = notices
        self._outcomes = outcomes
        self._warned: set[str] = set()

    def notes(self, transcript: Transcript) -> Sequence[Message]:
        """Hidden notes for a new prompt. Reads files."""
        now = datetime.now().astimezone()
        instructions = self._read()
        for item in instructions:
            if item.note:
                line = f"{item.shown} was {item.note}." if item.text else f"{item.shown} {item.note}."
                self._warn(line, CUT if item.text else UNREAD)
            for why in item.refused:
                self._warn(f"{item.shown}: {why}.", UNREAD)
        told = said(instructions, transcript.messages)
        known = [reminder(f"It is {now:%A, %Y-%m-%d %H:%M} ({now:%Z})."), *([told] if told else [])]
        for outcome in self._outcomes():
            known.append(reminder(f"In an earlier run: {outcome.text} Read a file again before you change it."))
            outcome.forget()
        return known

    def again(self, transcript: Transcript) -> Sequence[Message]:
        """The instructions that a compression took out of the conversation."""
        told = said(self._read(), transcript.messages)
        return [told] if told else []

    def _warn(self, line: str, hint: str) -> None:
        if line not in self._warned:
            self._warned.add(line)
            self._notices.add(Notice(line, "warning", hint))
