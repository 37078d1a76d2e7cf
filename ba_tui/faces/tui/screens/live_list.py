"""The base class of lists that follow the events of a session: its agents, its teams."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual.binding import BindingType

from ba_tui.core.errors import StorageError
from ba_tui.core.events import Event
from ba_tui.faces.tui.screens.list_screen import RELOAD, ListScreen
from ba_tui.faces.tui.transcript.view import paced

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import Actions

T = TypeVar("T")


class LiveList(ListScreen[T]):
    """Subclasses ``fold`` events and ``draw`` the rows, at most once a second, while the list is shown."""

    FILTERED: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [RELOAD]

    def __init__(self, chat: Actions, title: str) -> None:
        super().__init__(title)
        self.changed = True
        """Whether the rows differ from those that are drawn."""
        self._chat = chat

    def restart(self) -> None:
        """Forget all events: they are folded again."""
        raise NotImplementedError

    def fold(self, event: Event) -> bool:
        """Fold one event; return whether anything changed."""
        raise NotImplementedError

    def is_live(self) -> bool:
        """Return whether the rows change without events, such as times of running work."""
        raise NotImplementedError

    def draw(self) -> None:
        """Show the present rows."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.set_interval(1.0, self.tick)

    def action_reload(self) -> None:
        """Fold the session's events again."""
        self.restart()
        self.changed = True
        self.run_worker(self._follow, group="events", exclusive=True, exit_on_error=False)

    async def _follow(self) -> None:
        _, conversation = self._chat.session.live
        self.call_later(self.tick)
        try:
            async for number, event in paced(conversation.follow()):
                self.changed = self.fold(event) or self.changed
                if number == 1:
                    # Drawn after all waiting events are folded.
                    self.call_later(self.tick)
        except StorageError as error:
            self.say(error.with_hint)

    def tick(self) -> None:
        """Draw changes."""
        if self.is_mounted and (self.changed or self.is_live()):
            self.changed = False
            self.draw()
