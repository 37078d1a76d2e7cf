"""What commands may do; and the parts of the open session that many commands need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from ba_tui.core.errors import UsageError

if TYPE_CHECKING:
    from textual.message import Message
    from textual.screen import Screen
    from textual.widget import Widget

    from ba_tui.command import AppParts, Command
    from ba_tui.core.events import Event, Notice
    from ba_tui.core.ports.brain import Inventory
    from ba_tui.core.ports.context import Mentions
    from ba_tui.faces.tui.session import OpenSession, Presses, Turns
    from ba_tui.faces.tui.transcript.view import TranscriptView
    from ba_tui.faces.tui.widgets.ask import AskPanel
    from ba_tui.faces.tui.widgets.composer import Composer
    from ba_tui.faces.tui.widgets.main_area import MainArea
    from ba_tui.faces.tui.widgets.notices import Activity, NoticeStrip, StatusLine

T = TypeVar("T")


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
    """``rows``: all commands, ba's own first. ``troubles``: why commands of the user's own can't be called."""

    @property
    def rows(self) -> Sequence[Command]: ...

    @property
    def troubles(self) -> Sequence[str]: ...


class Actions(Protocol):
    """All that a command may do: the chat screen, which nothing here imports."""

    activity: Activity
    """Shows a hint for a moment."""
    notices: NoticeStrip
    """Keeps the lines of ``tell`` for reading again."""
    session: OpenSession
    turns: Turns
    presses: Presses
    parts: AppParts
    """What features bring."""
    transcript: TranscriptView
    main_area: MainArea
    composer: Composer
    status: StatusLine
    ask: AskPanel | None
    """Made with the first question."""

    @property
    def ba(self) -> AppActions: ...

    @property
    def commands(self) -> CommandRows: ...

    def tell(self, notice: Notice) -> None:
        """Show a line next to the input."""

    async def show_session(self) -> None:
        """Paint the session again."""

    def show_facts(self) -> None:
        """Paint mode, model and title again."""

    def show_title(self, words: str = "", *, alert: bool = False) -> None: ...

    async def check_setup(self) -> None: ...

    def call_command(self, name: str, argument: str = "") -> None: ...

    def mount(self, *widgets: Widget, after: Widget | None = None) -> object: ...

    def post_message(self, message: Message) -> bool: ...


Act: TypeAlias = Callable[[Actions, str], "Awaitable[None] | None"]
"""What a command does with the words behind its name."""


class EventPane(Protocol):
    """A fold over events that shows itself; ``reset`` comes before another session is folded."""

    def apply(self, event: Event) -> None: ...

    def reset(self) -> None: ...


def inventory_of(chat: Actions) -> Inventory:
    """Return what the open session has. Raises UsageError until there is one."""
    return chat.session.live[1].inventory


def needed(part: T | None, why: str, hint: str = "") -> T:
    """Return ``part`` of a session. Raises UsageError, with ``why`` and ``hint``, when the session has none."""
    if part is None:
        raise UsageError(why, hint)
    return part


def mentions(chat: Actions) -> Mentions | None:
    conversation = chat.session.conversation
    return conversation.inventory.mentions if conversation else None


def refuse_while_busy(chat: Actions) -> None:
    """Raise UsageError while a turn runs."""
    if chat.turns.busy:
        raise UsageError("A turn is running.", "Press Esc to interrupt it first.")
