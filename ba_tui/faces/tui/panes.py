"""Folds over events that update other widgets: the ask panel, the meters, the bell, the suggested prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message

from ba_tui.core import events
from ba_tui.core.events import MAIN, Event, Notice
from ba_tui.core.ports.tools import Jobs

NEEDED = "ba needs you"
GO_ON = "go on"

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import Actions
    from ba_tui.faces.tui.widgets.ask import AskPanel


@dataclass
class WindowTitle(Message):
    """Set the terminal's title to ``words``; with ``alert`` also ring the bell, only while the window has no focus."""

    words: str
    alert: bool = False


class QuestionFold:
    """Show live questions in the ask panel, which is created with the first one."""

    def __init__(self, chat: Actions) -> None:
        self._chat = chat

    def reset(self) -> None:
        if self._chat.ask:
            self._chat.ask.withdraw_all()

    def apply(self, event: Event) -> None:
        match event:
            case events.Asked(ask_id=ask_id, question=question, agent=agent):
                self._panel().ask(ask_id, question, agent)
            case events.Answered(ask_id=ask_id) if self._chat.ask:
                self._chat.ask.withdraw(ask_id)
            case events.TurnEnded(agent="main") if self._chat.ask:
                # Background agents may still ask.
                self._chat.ask.withdraw_all(MAIN)
            case _:
                pass

    def _panel(self) -> AskPanel:
        from ba_tui.faces.tui.widgets.ask import AskPanel  # noqa: PLC0415 - a tenth of the way to the first paint

        if self._chat.ask is None:
            self._chat.ask = AskPanel(
                writing=lambda: bool(self._chat.composer.text),
                plan_editor=partial(self._chat.parts.view, "plan editor"),
            )
            self._chat.mount(self._chat.ask, after=self._chat.main_area)
        return self._chat.ask


class MeterFold:
    """Show mode, model and title when the session changes them."""

    def __init__(self, chat: Actions) -> None:
        self._chat = chat

    def reset(self) -> None:
        self._chat.show_facts()

    def apply(self, event: Event) -> None:
        match event:
            case events.ModeChanged() | events.ModelChanged() | events.Titled() | events.TurnEnded(agent="main"):
                self._chat.show_facts()
            case _:
                pass


class ShellCount:
    """Show the number of background shells, and the sandbox, in the status line."""

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
        """Show the sandbox once the first command runs; shells report their changes themselves."""
        if isinstance(event, events.ToolFinished):
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
    """Ring the bell and set the window title when ba needs the user and the window has no focus."""

    def __init__(self, chat: Actions) -> None:
        self._chat = chat

    def reset(self) -> None:
        self._chat.show_title()

    def apply(self, event: Event) -> None:
        match event:
            case events.Asked():
                self._call(NEEDED)
            case events.TurnEnded(agent="main", reason="done"):
                self._call("ba is done")
            case events.Answered() | events.Titled():
                self._chat.show_title()
            case _:
                pass

    def _call(self, words: str) -> None:
        self._chat.show_title(words, alert=True)


class NextPrompt:
    """Offer a suggested prompt in the empty input, if the session makes suggestions."""

    def __init__(self, chat: Actions) -> None:
        self._chat = chat
        self._suggestions = chat.session.start.suggestions
        self._answer = ""
        self._following = ""
        """The prompts that follow the suggested one in a new session."""

    def reset(self) -> None:
        """Start again for another session, or for this one after a rewind."""
        if self._suggestions and self._chat.session.started:
            self._chat.composer.suggest(GO_ON)
        elif self._following:
            self._chat.composer.suggest(self._following)

    def apply(self, event: Event) -> None:
        if not self._suggestions:
            return
        match event:
            case events.TurnStarted(agent="main"):
                self._chat.composer.suggest("")
            case events.MessageDone(agent="main", message=message):
                self._answer = message.text
            case events.TurnEnded(agent="main", reason=reason):
                answer, self._answer = self._answer, ""
                if reason == "cancelled":
                    self._chat.tell(Notice("Press Enter to go on with the demo."))
                # Work that is not a turn ends without an answer.
                whole = answer and reason == "done"
                suggestion = self._suggestions.get(answer, "") if whole else GO_ON
                suggestion, _, self._following = suggestion.partition("\n")
                self._chat.composer.suggest(suggestion)
            case _:
                pass
