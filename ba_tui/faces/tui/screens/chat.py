"""The chat: lays out the panes, feeds every event to every pane, and hands what is typed to where it belongs.

Panes are folds with ``apply``. ``rooms`` lists commands and folds, ``acts`` does what a command says, ``turns`` decides
when a prompt is sent.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import DescendantFocus, Key, Paste, ScreenResume, ScreenSuspend, TextSelected
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from ba_tui.core.errors import BaError, PromptRefused
from ba_tui.core.events import Event, Notice, Steered, TurnEnded, TurnStarted
from ba_tui.core.services import Connect
from ba_tui.core.start import Start
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.turn import Turn
from ba_tui.faces.tui.acts import agents, beginning, inventory, start_page, view, watching, writing
from ba_tui.faces.tui.acts.port import EventPane
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.command_table import CommandTable
from ba_tui.faces.tui.commands import SlashCommand
from ba_tui.faces.tui.meters import git_branch
from ba_tui.faces.tui.panes import NEEDED, WindowTitle
from ba_tui.faces.tui.replay import replay
from ba_tui.faces.tui.rooms import ACTS, COMMANDS, ROOMS
from ba_tui.faces.tui.session import OpenSession
from ba_tui.faces.tui.transcript.view import TranscriptView
from ba_tui.faces.tui.turns import Presses, Turns
from ba_tui.faces.tui.widgets.activity import Activity
from ba_tui.faces.tui.widgets.composer import Composer
from ba_tui.faces.tui.widgets.main_area import MainArea
from ba_tui.faces.tui.widgets.notices import NoticeStrip
from ba_tui.faces.tui.widgets.prompt import PromptInput
from ba_tui.faces.tui.widgets.queue import QueueLines
from ba_tui.faces.tui.widgets.status import StatusLine, short_folder
from ba_tui.resources import user_home

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import AppActions
    from ba_tui.faces.tui.widgets.ask import AskPanel

log = logging.getLogger(__name__)
LATER = 2.0
"""Seconds after which a first prompt that came at once has its answer under way: what can wait is done then."""


class ChatScreen(Screen[None]):
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(command.keys, f"act('{command.name}')", command.summary, show=False)
        for command in COMMANDS
        if command.keys
    ]

    def __init__(self, connect: Connect, start: Start) -> None:
        super().__init__(id="chat")
        self.session = OpenSession(connect, start)
        self.turns = Turns(self.session, self._start_following, self._refused)
        self.early: list[Key | Paste] | None = []
        """Typed before the input has what was typed before."""
        self.presses = Presses()
        self.transcript = TranscriptView()
        self.main_area = MainArea(self.transcript, lambda: self.turns.busy)
        self.ask: AskPanel | None = None
        """Made with the first question."""
        self.activity = Activity()
        self.notices = NoticeStrip(lambda: bool(self.ask and self.ask.waiting))
        self.queue = QueueLines()
        self.composer = Composer()
        self.commands = CommandTable(self, ACTS, COMMANDS)
        self.turns.alone = self.commands.alone
        self.composer.find_commands = self.commands.complete
        self.composer.takes_path = self.commands.takes_path
        self.composer.is_choice = self.main_area.is_choice
        self.composer.mentions = partial(inventory.mentions, self)
        self.composer.prompt.to_background = partial(inventory.detach, self)
        self.status = StatusLine()
        self._meters: tuple[EventPane, ...] = (self.main_area, self.status)
        self._live: tuple[EventPane, ...] = (
            self.activity,
            self.notices,
            *(make(self) for room in ROOMS for make in room.panes),
        )
        """Those that matter while a turn runs; a replay is not for them."""

    def compose(self) -> ComposeResult:
        yield self.main_area
        yield self.notices
        yield self.activity
        yield self.queue
        yield self.composer
        yield self.status

    def on_mount(self) -> None:
        writing.keep_early(self)
        self._show_queue()
        self.call_after_refresh(self.begin)

    @property
    def ba(self) -> AppActions:
        return cast("AppActions", self.app)  # pyright: ignore[reportUnknownMemberType] - App is generic

    # The session

    def begin(self) -> None:
        """Connect, off the loop; the person can type meanwhile."""
        self.run_worker(self._begin, group="begin", exclusive=True, exit_on_error=False)

    async def _begin(self) -> None:
        if not await beginning.begin(self):
            return
        self._show_queue()
        if self.turns.busy:
            self.set_timer(LATER, self._settle)
        else:
            self._settle()

    def _settle(self) -> None:
        """What the first request need not wait for."""
        upkeep = self.session.live[0].upkeep
        if upkeep:
            self.run_worker(upkeep, group="upkeep", exclusive=True, exit_on_error=False)
        self._look_around()

    def _look_around(self) -> None:
        """What the folder has for this session: where to begin, and commands of the person's own or the project's."""
        self.run_worker(partial(start_page.show_start_page, self), group="start", exclusive=True, exit_on_error=False)
        self.run_worker(self.commands.load, group="own", exclusive=True, exit_on_error=False)

    async def show_session(self) -> None:
        """Paint what the open session holds: its end at once, the rest when it is read."""
        _, conversation = self.session.live
        self.transcript.clear()
        self.main_area.leave_start()
        for pane in (*self._meters, *self._live):
            pane.reset()
        if self.session.started:
            await replay(self.transcript, conversation, lambda event: self._fold(event, self._meters))
        self.show_facts()
        if self.turns.ready:
            self._look_around()
            await writing.follow_session(self)
        branch = await asyncio.to_thread(git_branch, conversation.cwd)
        self.status.show(branch=paintable(branch, newlines=False))
        # Last: it may be what called this.
        self.run_worker(partial(watching.watch, self), group="watch", exclusive=True, exit_on_error=False)

    def show_facts(self) -> None:
        """Bring the status line and the side panel up to date with the session."""
        conversation = self.session.conversation
        if conversation is None:
            return
        try:
            window = conversation.model_info().window
        except BaError:
            window = 0
        folder = paintable(short_folder(conversation.cwd, user_home()), newlines=False)
        folder += "".join(f" · {mark}" for mark in self.session.marks)
        self.composer.say_read_only(self.session.read_only)
        self.status.show(mode=self.session.mode, model=conversation.model, window=window, folder=folder)
        if self.main_area.start_page:
            self.main_area.start_page.show(model=conversation.model)
        self.main_area.side.show(paintable(conversation.title, newlines=False), window)
        self._show_queue()

    def show_title(self, words: str = "", *, alert: bool = False) -> None:
        """In the terminal's title: ``words``; else that the person is needed and looks elsewhere, or the session's."""
        if not words and self.ask and self.ask.waiting and not self.ba.app_focus:
            words = NEEDED
        title = self.session.conversation.title if self.session.conversation else ""
        self.post_message(WindowTitle(paintable(words or title or "ba", newlines=False), alert=alert))

    async def check_setup(self) -> None:
        """Offer the ways on when the model can't be asked yet."""
        services, conversation = self.session.live
        before = self.turns.missing
        self.turns.missing = await asyncio.to_thread(services.setup.missing, conversation.model)
        if self.turns.missing:
            self.call_command("setup")
        elif self.turns.go_on():
            self.tell(Notice("ba ended at a question. Your answer continues the turn."))
        elif before:
            self.activity.hint(f"{conversation.model} is ready: press Enter.")
        elif self.composer.touched:
            self._warm()

    async def close_session(self, why: str = "") -> None:
        """Before the app leaves: keep what is unsent, stop the turn, let go of the file. ``why``: what made it leave,
        where the user did not."""
        await writing.end(self)
        if self.session.conversation:
            await self.session.conversation.close(why)

    def resume_hint(self) -> str:
        """How to come back to this session; empty when there is nothing to come back to."""
        return self.session.resume_hint()

    # Turns

    def _start_following(self, turn: Turn) -> None:
        self.main_area.leave_start()
        self.activity.begin()
        self.run_worker(partial(self._follow, turn), group="turn", exit_on_error=False)

    async def _follow(self, turn: Turn) -> None:
        async for event in self.turns.followed.events(turn):
            self.transcript.apply(event)
            self._fold(event, (*self._meters, *self._live))
            if isinstance(event, TurnEnded) and event.agent == "main":
                self.turns.over(event)
            if isinstance(event, TurnStarted | Steered | TurnEnded | Notice):
                self.show_facts()

    def _fold(self, event: Event, panes: Sequence[EventPane]) -> None:
        for pane in panes:
            try:
                pane.apply(event)
            except Exception:
                # One pane's fault must not keep the others from the end of the turn.
                log.exception("pane failed on %s", event.type)

    def _refused(self, text: str, error: BaError | None) -> None:
        self.composer.put_back(text)
        if error is None:
            # A server may have been started meanwhile.
            self.run_worker(self.check_setup, group="setup", exclusive=True, exit_on_error=False)
        elif error.kind != PromptRefused.kind:
            # That one is told where its turn ends.
            self.tell(Notice(str(error), "error", error.hint))

    def _show_queue(self) -> None:
        self.queue.show(self.turns.waiting, paused=self.turns.paused)
        self.status.show(queue=len(self.turns.waiting), paused=self.turns.paused)
        self.composer.waiting = bool(self.turns.waiting)
        self.composer.keep(self.turns.unsent)
        self.transcript.show_sent(*self.turns.sent)

    def _on_ask_panel_answered(self, event: AskPanel.Answered) -> None:
        event.stop()
        self.turns.followed.answer(event.ask_id, event.reply)
        if event.interrupt:
            self.turns.cancel()

    # What is typed: a command is done at once, everything else is a prompt.

    @on(Composer.Sent)
    def _sent(self, event: Composer.Sent) -> None:
        event.stop()
        text = event.text
        if start_page.choose(self, text):
            return
        called = self.commands.parse(text)
        if not text.strip() and self.session.conversation is None:
            self.begin()
        elif not text.strip() and self.session.read_only:
            self.call_command("fork")
        elif not text.strip() and not agents.open_news(self):
            self.turns.nudge()
        elif called is None:
            if not self.turns.busy:
                self.transcript.action_scroll_end()
            self.turns.submit(text)
        elif self.commands.find(called[0]) is None:
            self.run_worker(partial(self.commands.look_again, text, *called), group="command", exit_on_error=False)
        else:
            self.call_command(*called)
        self._show_queue()

    @on(Paste)
    @on(Key)
    def _untaken(self, event: Key | Paste) -> None:
        """What came before the input had the focus."""
        if self.early is not None:
            self.early.append(event)

    @on(Composer.Filled)
    def _filled(self, event: Composer.Filled) -> None:
        event.stop()
        if self.ask:
            self.ask.input_changed()

    @on(Composer.QueueWanted)
    def _edit_queued(self) -> None:
        if text := self.turns.take_back():
            self.composer.put_back(text)
        self._show_queue()

    @on(Composer.Touched)
    def _warm(self) -> None:
        """The person writes: load what the first prompt will need, and connect to the model."""
        if self.session.conversation and not self.turns.missing and not self.session.read_only:
            self.run_worker(self._warm_up, group="warm", exclusive=True, exit_on_error=False)

    async def _warm_up(self) -> None:
        _, conversation = self.session.live
        try:
            await conversation.warm()
        except BaError:
            log.info("warming failed; the first prompt will say why", exc_info=True)
        if not self.turns.busy:
            self.transcript.warm_up()

    @on(Composer.Weighed)
    def _weighed(self, event: Composer.Weighed) -> None:
        event.stop()
        self.activity.note(inventory.weight_in_words(event.weights))

    @on(PromptInput.Remarked)
    def _remarked(self, event: PromptInput.Remarked) -> None:
        self.activity.hint(event.words)

    @on(PromptInput.HelpWanted)
    def _help(self) -> None:
        self.call_command("help")

    # Commands

    def call_command(self, name: str, argument: str = "") -> None:
        """Run one row of the command table; its errors become a line."""
        if command := self.commands.find(name):
            self.run_worker(partial(self._call, command, argument), group="command", exit_on_error=False)

    async def _call(self, command: SlashCommand, argument: str) -> None:
        try:
            result = self.commands.run(command, argument)
            if inspect.isawaitable(result):
                await result
        except BaError as error:
            self.tell(Notice(str(error), "error", error.hint))

    def action_act(self, name: str) -> None:
        self.call_command(name)

    def warn(self, text: str, hint: str = "") -> None:
        notice = Notice(paintable(text, newlines=False), "warning", hint)
        tell = self.tell if self.turns.ready else self.session.untold.append
        tell(notice)

    def tell(self, notice: Notice) -> None:
        """Show a line next to the input. No session keeps it."""
        self.notices.tell(notice)

    @on(DescendantFocus)
    def _focused(self, event: DescendantFocus) -> None:
        view.say_keys(self, event.widget)

    @on(ScreenSuspend)
    @on(ScreenResume)
    def _front_or_back(self, event: ScreenSuspend | ScreenResume) -> None:
        self.composer.prompt.stand_behind(isinstance(event, ScreenSuspend))
        if isinstance(event, ScreenResume) and not self.stack_updates:
            event.refresh_styles = False  # All widgets were styled when they were mounted, right before.

    # What panes post up

    @on(TranscriptView.Opened)
    async def _opened(self, event: TranscriptView.Opened) -> None:
        event.stop()
        await view.inspect(self, event.record)

    @on(TranscriptView.CopyRequested)
    def _copy(self, event: TranscriptView.CopyRequested) -> None:
        event.stop()
        self.post_message(CopyToClipboard(event.text))

    @on(TextSelected)
    def _selected(self, event: TextSelected) -> None:
        event.stop()
        if text := self.get_selected_text():
            self.post_message(CopyToClipboard(text))

    async def _on_inspector_closed(self) -> None:
        await self.main_area.close_inspector()
        self.composer.prompt.focus()

    @on(Worker.StateChanged)
    def _worker_changed(self, event: Worker.StateChanged) -> None:
        """A worker that crashed is told and logged; a turn that nobody follows any more is stopped."""
        worker = cast("Worker[object]", event.worker)  # pyright: ignore[reportUnknownMemberType] - Worker is generic
        error = worker.error
        if event.state is not WorkerState.ERROR or error is None:
            return
        log.error("worker %s failed", worker.group, exc_info=error)
        words = f"Something in ba failed: {type(error).__name__}: {error}"
        self.tell(Notice(paintable(words, newlines=False), "error", "The log has the details."))
        if worker.group == "turn" and self.turns.cancel():
            self.turns.over(TurnEnded("error"))
