"""Folds without a picture of their own: questions to the ask panel, facts to the meters, a call for attention.

They only pass on what events say; each knows one target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from ba_tui.core.events import Answered, Asked, Event, ModeChanged, ModelChanged, Titled, TurnEnded
from ba_tui.faces.tui.widgets.ask import AskPanel

if TYPE_CHECKING:
    from ba_tui.faces.tui.screens.chat import ChatScreen


class WindowTitle(Message):
    """``words`` go into the terminal's title; with ``alert`` only, and with a bell, while nobody looks."""

    def __init__(self, words: str, *, alert: bool = False) -> None:
        super().__init__()
        self.words = words
        self.alert = alert


class Asking:
    """Live questions reach the panel. A replayed one was answered, or its turn has ended."""

    def __init__(self, panel: AskPanel) -> None:
        self._panel = panel

    def reset(self) -> None:
        self._panel.withdraw_all()

    def apply(self, event: Event) -> None:
        match event:
            case Asked(ask_id=ask_id, question=question, agent=agent):
                self._panel.ask(ask_id, question, agent)
            case Answered(ask_id=ask_id):
                self._panel.withdraw(ask_id)
            case TurnEnded(agent="main"):
                self._panel.withdraw_all()
            case _:
                pass


class Facts:
    """Mode, model and title as the session changes them."""

    def __init__(self, chat: ChatScreen) -> None:
        self._chat = chat

    def reset(self) -> None:
        self._chat.show_facts()

    def apply(self, event: Event) -> None:
        match event:
            case ModeChanged() | ModelChanged() | Titled() | TurnEnded():
                self._chat.show_facts()
            case _:
                pass


class Attention:
    """Bell and window title when the person is needed and looks elsewhere."""

    def __init__(self, chat: ChatScreen) -> None:
        self._chat = chat

    def reset(self) -> None:
        self._chat.post_message(WindowTitle(""))

    def apply(self, event: Event) -> None:
        match event:
            case Asked():
                self._call("ba needs you")
            case TurnEnded(reason="done"):
                self._call("ba is done")
            case Answered():
                self._chat.post_message(WindowTitle(""))
            case _:
                pass

    def _call(self, words: str) -> None:
        self._chat.post_message(WindowTitle(words, alert=True))
