"""Brings what the person mentions into the conversation: with a prompt, and with words that join a running turn.

What is attached is made in ``attachments``.
"""

from __future__ import annotations

from collections import deque

from ba_tui.context.attachments import Attachments, Words
from ba_tui.context.touched import TouchedFiles
from ba_tui.core.events import Event, Rewound, Steered, TurnStarted
from ba_tui.core.messages import Message
from ba_tui.core.turn import Branch
from ba_tui.ingress import Owner


class Attaching:
    """core.agent.Interceptor, and a listener of the conversation: what the person says brings what it mentions, in
    the same breath and before the next request."""

    def __init__(self, attachments: Attachments, touched: TouchedFiles) -> None:
        self._attachments = attachments
        self._touched = touched
        self._said: deque[Words] = deque()

    def apply(self, event: Event) -> None:
        match event:
            case TurnStarted(prompt=message, agent="main"):
                self._said.append(((message.text, "person"),))
            case Steered(message=Message(origin="steer") as message, agent="main"):
                self._said.append(((message.text, "person"),))
            case Rewound():
                self._said.clear()
            case _:
                pass

    def bring(self, text: str, by: Owner) -> None:
        """What the newest prompt stands for, in the words of a file."""
        self._said.append((*self._said.pop(), (text, by)))

    async def before(self, branch: Branch) -> None:
        while self._said and branch.name == "main":
            outcome = await self._attachments.made(self._said[0], branch)
            self._said.popleft()
            for path in outcome.files:
                self._touched.add(path)
            for note in outcome.notes:
                branch.emit(Steered(note))
            for notice in outcome.notices:
                branch.emit(notice)

    async def after(self, reply: Message, branch: Branch) -> None:
        """Answers mention nothing."""
