"""The app: first paint, colours, global keys, and leaving cleanly.

The chat screen draws the conversation; ``acts`` implements the commands.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.events import Event, Key, Paste
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widgets import Static

from ba_tui.faces.tui.terminal import TerminalInput, call_for
from ba_tui.faces.tui.themes import ThemedApp, read_themes
from ba_tui.faces.tui.widgets.composer import Composer
from ba_tui.resources import bundled, places

if TYPE_CHECKING:
    from ba_tui.command import AppParts
    from ba_tui.core.services import Connect
    from ba_tui.core.start import Start
    from ba_tui.faces.tui.clipboard import ClipboardPart, CopyToClipboard
    from ba_tui.faces.tui.grid.pane import MentionWanted
    from ba_tui.faces.tui.grid.traps import GridWanted
    from ba_tui.faces.tui.panes import WindowTitle
    from ba_tui.faces.tui.screens.chat import ChatScreen


# Every start of ba waits for the imports of this module; keep them few.


class OpeningScreen(Screen[None]):
    """Looks like an empty chat. ``sent`` are prompts sent before the session was open."""

    AUTO_FOCUS = ""

    def __init__(self) -> None:
        super().__init__(id="opening")
        self.composer = Composer()
        self.sent: list[str] = []

    def compose(self) -> ComposeResult:
        yield Static(id="main-area")
        yield Static(id="activity")
        yield self.composer
        yield Static(id="status")

    def on_mount(self) -> None:
        self._focus()

    def _focus(self) -> None:
        """Focus the input once all earlier keys are processed, so that later keys do not overtake them."""
        if self.message_queue_size:
            self.call_later(self._focus)
        else:
            self.set_focus(self.composer.prompt)

    @on(Key)
    @on(Paste)
    async def _early(self, event: Key | Paste) -> None:
        """Pass on keys and pastes that arrived before the input had the focus."""
        if self.focused is not None:
            return
        if isinstance(event, Key) and event.key == "ctrl+j":
            # From before there was an app: until then the terminal makes a line feed of Enter.
            event.key, event.character = "enter", "\r"
        await self.composer.prompt.take(event)

    @on(Composer.Sent)
    def _sent(self, event: Composer.Sent) -> None:
        event.stop()
        if event.text.strip():
            self.sent.append(event.text)


log = logging.getLogger(__name__)


@runtime_checkable
class Writable(Protocol):
    """A screen that routes typed text to its input before the event is dispatched."""

    def lead_to_input(self, event: Key | Paste) -> None: ...


def _palette() -> type[Provider]:
    from ba_tui.faces.tui.screens.chat import PaletteCommands  # noqa: PLC0415 - loads the chat

    return PaletteCommands


async def _settled(pump: MessagePump) -> None:
    """Wait until ``pump`` has processed all messages sent so far."""
    done = asyncio.Event()
    pump.call_later(done.set)
    await done.wait()


async def _hand_over(opening: OpeningScreen, chat: ChatScreen) -> None:
    """Move typed text to the chat, including keys and prompts that are still in message queues."""
    old = opening.composer
    # The end of a burst of keys may submit the text: from now on the chat must do that.
    old.prompt.end_burst_in(None)
    # A prompt passes from the input to the composer and then to the screen; each first empties its queue.
    for pump in (old.prompt, old.prompt, old, old, opening):
        await _settled(pump)
    for text in opening.sent:
        chat.composer.post_message(Composer.Sent(text))
    chat.composer.take_over(old)
    prompt = chat.composer.prompt
    async with prompt.turn:
        # From now on keys go to the input, and wait there behind those that the screen received earlier.
        chat.set_focus(prompt)
        await _settled(chat)
        for event in chat.early or ():
            await prompt.take(event)
        chat.early = None


class BaApp(ThemedApp[None]):
    """``connect`` and ``parts`` are called in threads, after the first paint."""

    TITLE = "ba"
    CSS_PATH = "styles/app.tcss"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_palette}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "stop_or_quit", "Copy, interrupt, clear or quit", show=False, priority=True, system=True),
        Binding("ctrl+d", "quit_when_empty", "Quit", show=False),
        Binding("ctrl+q", "leave", "Quit", show=False, priority=True),
    ]

    def __init__(self, connect: Connect, start: Start, parts: Callable[[], AppParts]) -> None:
        super().__init__(start.theme, color=start.color)
        self.chat: ChatScreen | None = None
        """Set right after the first paint."""
        self._connect = connect
        self._parts = parts
        self._start = start
        self._session_closed = False
        self._themes_loaded = False
        self._next: tuple[str, ...] = ()

    def get_default_screen(self) -> Screen[Any]:
        return OpeningScreen()

    def on_mount(self) -> None:
        self.call_after_refresh(self._first_painted)

    def _first_painted(self) -> None:
        self.run_worker(self._open_chat)

    async def _open_chat(self) -> None:
        """Load the chat while the user can already type, then move the typed text into it."""
        parts = await asyncio.to_thread(self._parts)
        module = await asyncio.to_thread(importlib.import_module, "ba_tui.faces.tui.screens.chat")
        opening = self.screen_stack[0]
        chat: ChatScreen = module.ChatScreen(self._connect, self._start, parts)
        self.chat = chat
        await self.push_screen(chat)
        if isinstance(opening, OpeningScreen):
            await _hand_over(opening, chat)
        if self._wanted and self._wanted not in self.theme_names:
            await self._use_wanted()

    # Keys

    async def on_event(self, event: Event) -> None:
        """Handle an event as Textual does, but route typed text to the input wherever the focus is."""
        chat = self.chat
        if isinstance(event, Key | Paste) and not event.is_forwarded and chat:
            if isinstance(screen := self.screen, Writable):
                screen.lead_to_input(event)
            elif screen is chat:
                chat.notices.key_pressed()
                from ba_tui.faces.tui.acts.prompts import lead_to_input  # noqa: PLC0415 - loaded with the chat

                if chat.early is None and lead_to_input(chat, chat, event):
                    return
        await super().on_event(event)

    # Colours

    async def _use_wanted(self) -> None:
        await self.load_themes()
        if self._wanted in self.theme_names:
            self.theme = self._wanted
        else:
            self._warn(f"There is no theme {self._wanted!r}.", f"Themes: {', '.join(self.theme_names)}.")

    async def load_themes(self) -> None:
        """Read the bundled themes and the user's own, once."""
        if self._themes_loaded:
            return
        self._themes_loaded = True
        themes, faults = await asyncio.to_thread(read_themes, (bundled("themes"), places().config / "themes"))
        for theme in themes:
            self.register_theme(theme)
            if theme.name not in self.theme_names:
                self.theme_names.append(theme.name)
        for fault in faults:
            self._warn(fault)

    def _warn(self, text: str, hint: str = "") -> None:
        if self.chat:
            self.chat.warn(text, hint)

    # Attention

    def _on_window_title(self, event: WindowTitle) -> None:
        if event.alert and self.app_focus:
            return
        services = self.chat.session.services if self.chat else None
        how = services.notify if event.alert and services else "off"
        if how == "bell":
            self.bell()
        self._to_terminal(f"\x1b]2;{event.words}\x07{call_for(event.words, how) if how != 'bell' else ''}")

    def _to_terminal(self, sequence: str) -> None:
        if not self.is_headless and self._driver is not None:
            self._driver.write(sequence)
            self._driver.flush()

    def on_app_focus(self) -> None:
        self._show_title_soon()

    def on_app_blur(self) -> None:
        """Show an open question in the window title while the window has no focus."""
        self._show_title_soon()

    def _show_title_soon(self) -> None:
        """Update the title after Textual has recorded the focus of the window."""
        if self.chat:
            self.call_next(self.chat.show_title)

    # Leaving

    async def action_stop_or_quit(self) -> None:
        if selected := self.screen.get_selected_text() or getattr(self.focused, "selected_text", ""):
            self._copy(selected)
            self.screen.clear_selection()
        elif self.chat is None:
            await self.action_quit()
        elif self.screen is self.chat:
            from ba_tui.faces.tui.acts import view  # noqa: PLC0415 - not before the first paint

            await view.stop_or_quit(self.chat)
        elif self.chat.presses.again("ctrl+c"):
            await self.action_leave()

    def action_command_palette(self) -> None:
        """Open the palette (Ctrl+P); while completions are shown, move up in them, as Ctrl+N moves down."""
        if self.chat is None or self.screen is not self.chat:
            return
        if self.chat.composer.popup.display:
            self.chat.composer.popup.move(-1)
        else:
            super().action_command_palette()

    def _on_prompt_input_paste_wanted(self) -> None:
        from ba_tui.faces.tui.acts.prompts import paste  # noqa: PLC0415 - not before the first paint

        if self.chat:
            chat, text = self.chat, str(self.clipboard)
            self.run_worker(partial(paste, chat, text, self._ask_clipboard), group="paste", exit_on_error=False)

    async def _ask_clipboard(self) -> Sequence[ClipboardPart]:
        """Return the clipboard parts that the terminal sends."""
        driver = self._driver
        return await driver.clipboard() if isinstance(driver, TerminalInput) else ()

    def _on_copy_to_clipboard(self, event: CopyToClipboard) -> None:
        event.stop()
        self._copy(event.text, event.note)

    def _copy(self, text: str, note: str = "") -> None:
        if self.chat is None:
            self.copy_to_clipboard(text)
        else:
            self.chat.run_worker(partial(self._copied, self.chat, text, note), group="clipboard", exit_on_error=False)

    def _on_grid_wanted(self, event: GridWanted) -> None:
        from ba_tui.faces.tui.grid.pane import GridScreen  # noqa: PLC0415 - loaded for the first grid

        event.stop()
        self.push_screen(GridScreen(event.datasets, event.table))

    def _on_mention_wanted(self, event: MentionWanted) -> None:
        """Insert the mention into the input and show the input."""
        event.stop()
        if self.chat is None:
            return
        while self.screen is not self.chat:
            self.pop_screen()
        prompt = self.chat.composer.prompt
        prompt.focus()
        before = prompt.before_cursor
        prompt.insert(f"{' ' if before and not before[-1].isspace() else ''}{event.text} ")

    async def _copied(self, chat: ChatScreen, text: str, note: str) -> None:
        """Copy ``text`` and report the outcome on the visible screen."""
        from ba_tui.faces.tui.clipboard import copy  # noqa: PLC0415 - not before the first paint

        told = f"{await copy(self, text)} {note}".rstrip()
        if chat.is_active:
            chat.activity.hint(told)
        else:
            self.notify(told, markup=False)

    async def action_quit_when_empty(self) -> None:
        if self.chat is None or (self.screen is self.chat and not self.chat.composer.text):
            await self.action_leave()

    async def action_leave(self) -> None:
        """Quit. The first time, warn about unsaved work and say how to keep it."""
        if self.chat is None or await self.chat.may_leave():
            await self.action_quit()

    async def action_quit(self) -> None:
        """Stop the turn, close the session's file and save the draft."""
        code = 0
        if self.chat:
            await self.chat.close_session(self.left_because)
            self._session_closed = True
            code = self.chat.exit_code()
        self.exit(return_code=code)

    async def _on_unmount(self) -> None:
        """Close the session when the app ends without quitting, as after an error."""
        if self.chat and not self._session_closed:
            try:
                await self.chat.close_session(self.left_because)
            except Exception:
                # Continue: the terminal must still be restored.
                log.exception("the session was not closed")

    async def leave_for(self, command: str) -> None:
        """Quit, then run a sub-command of ba in this terminal."""
        self._next = (sys.executable, "-m", "ba_tui", command)
        await self.action_quit()

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run as Textual does; afterwards print how to resume the session."""
        result = super().run(*args, **kwargs)
        if self._next:
            os.execv(self._next[0], self._next)  # noqa: S606 - our own program
        if not self.is_headless and (hint := self.way_back()):
            with suppress(OSError):
                sys.stdout.write(f"{hint}\n")
                sys.stdout.flush()
        if not self.is_headless and self.chat:
            sys.stderr.write("".join(f"ba: {line}\n" for line in self.chat.losses()))
        return result

    def way_back(self) -> str:
        """Return how to resume the session; empty when there is nothing to resume."""
        return self.chat.resume_hint() if self.chat else ""
