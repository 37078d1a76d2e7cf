"""What becomes of a prompt before its turn begins: commands stand for text, hooks add to it or refuse it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from ba_tui.context.attaching import Attaching
from ba_tui.context.own_commands import CommandExpander, Sent
from ba_tui.core.events import Event, TurnStarted
from ba_tui.core.messages import Message, Text, user
from ba_tui.core.ports.brain import Admitted
from ba_tui.core.turn import Branch

HookNotes: TypeAlias = Callable[[Message, Branch], Awaitable[Sequence[Message]]]
"""What hooks add to a prompt. Raises PromptRefused when one of them blocks it."""


class Admission:
    """core.ports.brain.Brain.admit, and a listener: commands first, then hooks, who see all that is sent.
    ``attaching`` hears what was said, to attach what it mentions."""

    def __init__(self, commands: CommandExpander, hooks: HookNotes | None, attaching: Attaching) -> None:
        self._commands = commands
        self._hooks = hooks
        self._attaching = attaching
        self._sent = Sent()

    async def admit(self, prompt: Message, branch: Branch) -> Admitted:
        """See core.ports.brain.Brain."""
        self._sent = Sent()
        try:
            sent = await self._commands.sent(prompt, branch)
            notes = [*sent.notes]
            if self._hooks:
                whole = "\n\n".join([prompt.text, *(note.text for note in sent.notes)])
                notes += await self._hooks(_saying(prompt, whole), branch)
        except BaseException:
            self._commands.forget()
            raise
        self._sent = sent
        return Admitted(tuple(notes), sent.model)

    def apply(self, event: Event) -> None:
        self._attaching.apply(event)
        match event:
            case TurnStarted(agent="main") if self._sent.spoken:
                # Files that a command names come with it, as far as its own file may reach.
                self._attaching.bring(self._sent.spoken, self._sent.owner)
            case _:
                self._commands.apply(event)


def _saying(prompt: Message, text: str) -> Message:
    """``prompt`` with other words."""
    if text == prompt.text:
        return prompt
    rest = tuple(block for block in prompt.blocks if not isinstance(block, Text))
    return replace(user(text, origin=prompt.origin), blocks=(Text(text), *rest), id=prompt.id, at=prompt.at)
