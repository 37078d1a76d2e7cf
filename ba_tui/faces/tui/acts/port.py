"""What commands may do, as small protocols, and what a room brings to the screen.

A command names the narrowest protocol that it needs. The chat screen keeps them all; nothing here imports it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from ba_tui.core.values import frozen

if TYPE_CHECKING:
    from textual.message import Message
    from textual.screen import Screen
    from textual.widget import Widget

    from ba_tui.core.events import Event, Notice
    from ba_tui.faces.tui.commands import SlashCommand
    from ba_tui.faces.tui.session import OpenSession
    from ba_tui.faces.tui.transcript.view import TranscriptView
    from ba_tui.faces.tui.turns import Presses, Turns
    from ba_tui.faces.tui.widgets.activity import Activity
    from ba_tui.faces.tui.widgets.ask import AskPanel
    from ba_tui.faces.tui.widgets.composer import Composer
    from ba_tui.faces.tui.widgets.main_area import MainArea
    from ba_tui.faces.tui.widgets.notices import NoticeStrip
    from ba_tui.faces.tui.widgets.status import StatusLine

T = TypeVar("T")


class Notices(Protocol):
    """Words for the person: ``tell`` shows a line next to the input, which ``notices`` keeps for reading again;
    ``activity`` shows a hint for a moment."""

    @property
    def activity(self) -> Activity: ...

    @property
    def notices(self) -> NoticeStrip: ...

    def tell(self, notice: Notice) -> None: ...


class SessionActions(Notices, Protocol):
    """The open session and its turns; ``show_session`` paints it anew, ``show_facts`` only mode, model and title."""

    @property
    def session(self) -> OpenSession: ...

    @property
    def turns(self) -> Turns: ...

    async def show_session(self) -> None: ...

    def show_facts(self) -> None: ...

    async def check_setup(self) -> None: ...


class PaneActions(Notices, Protocol):
    """The panes of the chat."""

    @property
    def transcript(self) -> TranscriptView: ...

    @property
    def main_area(self) -> MainArea: ...

    @property
    def composer(self) -> Composer: ...

    @property
    def status(self) -> StatusLine: ...

    ask: AskPanel | None
    """Made with the first question."""

    def mount(self, *widgets: Widget, after: Widget | None = None) -> object: ...

    def show_title(self, words: str = "", *, alert: bool = False) -> None: ...


class AppActions(Protocol):
    """The app: screens over the chat, colours, the terminal and leaving."""

    theme: str
    theme_names: list[str]
    app_focus: bool

    @property
    def screen_stack(self) -> Sequence[Screen[Any]]: ...

    def push_screen(self, screen: Screen[Any]) -> object: ...

    async def push_screen_wait(self, screen: Screen[T]) -> T | None: ...

    async def load_themes(self) -> None: ...

    def refresh(self, *, layout: bool) -> object: ...

    def suspend(self) -> AbstractContextManager[None]: ...

    def action_suspend_process(self) -> None: ...

    async def action_leave(self) -> None: ...

    async def action_quit(self) -> None: ...

    async def leave_for(self, command: str) -> None: ...


class CommandRows(Protocol):
    """``rows``: all commands, ba's own first. ``troubles``: why commands of the person's own can't be called."""

    @property
    def rows(self) -> Sequence[SlashCommand]: ...

    @property
    def troubles(self) -> Sequence[str]: ...


class Actions(SessionActions, PaneActions, Protocol):
    """All that a command may do."""

    @property
    def ba(self) -> AppActions: ...

    @property
    def commands(self) -> CommandRows: ...

    @property
    def presses(self) -> Presses: ...

    def call_command(self, name: str, argument: str = "") -> None: ...

    def post_message(self, message: Message) -> bool: ...


Act: TypeAlias = Callable[[Actions, str], "Awaitable[None] | None"]
"""What a command does with the words behind its name."""


class EventPane(Protocol):
    """A fold over events that shows itself; ``reset`` comes before another session is folded."""

    def apply(self, event: Event) -> None: ...

    def reset(self) -> None: ...


@frozen
class Room:
    """What one subject brings: its commands with what they do, and folds that are fed while a turn runs.

    Screens are opened by the commands, which import them late: most are never shown.
    """

    commands: Mapping[SlashCommand, Act]
    panes: Sequence[Callable[[Actions], EventPane]] = ()
