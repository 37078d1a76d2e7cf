"""Folds without a picture of their own: questions to the ask panel, facts to the meters, a call for attention.

They only pass on what events say; each knows one target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.message import Message

from ba_tui.core.events import MAIN, Answered, Asked, Event, ModeChanged, ModelChanged, Titled, ToolFinished, TurnEnded
from ba_tui.core.ports.jobs import Jobs
from ba_tui.faces.tui.acts.port import Room

NEEDED = "ba needs you"

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import Actions, PaneActions
    from ba_tui.faces.tui.widgets.ask import AskPanel


class WindowTitle(Message):
    """``words`` go into the terminal's title; with ``alert`` only, and with a bell, while nobody looks."""

    def __init__(self, words: str, *, alert: bool = False) -> None:
        super().__init__()
        self.words = words
        self.alert = alert


class Asking:
    """Live questions reach the panel, which is made with the first one."""

    def __init__(self, chat: PaneActions) -> None:
        self._chat = chat

    def reset(self) -> None:
        if self._chat.ask:
            self._chat.ask.withdraw_all()

    def apply(self, event: Event) -> None:
        match event:
            case Asked(ask_id=ask_id, question=question, agent=agent):
                self._panel().ask(ask_id, question, agent)
            case Answered(ask_id=ask_id) if self._chat.ask:
                self._chat.ask.withdraw(ask_id)
            case TurnEnded(agent="main") if self._chat.ask:
                # Agents in the background ask on.
                self._chat.ask.withdraw_all(MAIN)
            case _:
                pass

    def _panel(self) -> AskPanel:
        from ba_tui.faces.tui.widgets.ask import AskPanel  # noqa: PLC0415 - a tenth of the way to the first paint

        if self._chat.ask is None:
            self._chat.ask = AskPanel(writing=lambda: bool(self._chat.composer.text))
            self._chat.mount(self._chat.ask, after=self._chat.main_area)
        return self._chat.ask


class MeterFold:
    """Mode, model and title as the session changes them."""

    def __init__(self, chat: Actions) -> None:
        self._chat = chat

    def reset(self) -> None:
        self._chat.show_facts()

    def apply(self, event: Event) -> None:
        match event:
            case ModeChanged() | ModelChanged() | Titled() | TurnEnded(agent="main"):
                self._chat.show_facts()
            case _:
                pass


class ShellCount:
    """How many background shells run, and whether commands run confined, in the status line."""

    def __init__(self, chat: Actions) -> None:
        self._chat = chat
        self._jobs: Jobs | None = None
        self._deaf: Callable[[], None] | None = None

    def reset(self) -> None:
        if self._deaf:
            self._deaf()
        conversation = self._chat.session.conversation
        self._jobs = conversation.inventory.jobs if conversation else None
        self._deaf = self._jobs.listen(self._count) if self._jobs else None
        self._count()
        self._confinement()

    def apply(self, event: Event) -> None:
        """The shells say so themselves; what confines is found when the first command runs."""
        if isinstance(event, ToolFinished):
            self._confinement()

    def _count(self) -> None:
        jobs = self._jobs.list() if self._jobs else ()
        self._chat.status.show(shells=sum(job.state == "running" for job in jobs))

    def _confinement(self) -> None:
        conversation = self._chat.session.conversation
        sandbox = conversation.inventory.confinement() if conversation else ""
        if sandbox != self._chat.status.situation.sandbox:
            self._chat.status.show(sandbox=sandbox)


class Attention:
    """Bell and window title when the person is needed and looks elsewhere."""

    def __init__(self, chat: PaneActions) -> None:
        self._chat = chat

    def reset(self) -> None:
        self._chat.show_title()

    def apply(self, event: Event) -> None:
        match event:
            case Asked():
                self._call(NEEDED)
            case TurnEnded(agent="main", reason="done"):
                self._call("ba is done")
            case Answered() | Titled():
                self._chat.show_title()
            case _:
                pass

    def _call(self, words: str) -> None:
        self._chat.show_title(words, alert=True)


QUESTIONS = Room({}, panes=(Asking, Attention))
