"""The chat screen: lays out the panes, sends every event to every pane, and routes input.

``AppParts`` lists commands and folds, ``acts`` implements commands, ``turns`` decides when a prompt is sent.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingsMap
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.events import DescendantFocus, Key, Paste, ScreenResume, ScreenSuspend, TextSelected
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from ba_tui.command import AppParts, Command
from ba_tui.core.errors import BaError, PromptRefused
from ba_tui.core.events import Event, Notice, Steered, TurnEnded, TurnStarted
from ba_tui.core.ports.sessions import SessionInfo, unsaved
from ba_tui.core.services import Connect
from ba_tui.core.start import Start
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import with_hint
from ba_tui.core.turn import Turn
from ba_tui.faces.run_result import saved_code
from ba_tui.faces.tui.acts import prompts, sessions, view
from ba_tui.faces.tui.acts.port import EventPane, mentions
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.commands import CommandTable, find
from ba_tui.faces.tui.meters import git_branch, weight_in_words
from ba_tui.faces.tui.panes import NEEDED, WindowTitle
from ba_tui.faces.tui.session import OpenSession, Presses, Turns
from ba_tui.faces.tui.transcript.view import TranscriptView, replay
from ba_tui.faces.tui.widgets.composer import Composer, QueueLines
from ba_tui.faces.tui.widgets.main_area import MainArea
from ba_tui.faces.tui.widgets.notices import Activity, NoticeStrip, StatusLine, short_folder
from ba_tui.faces.tui.widgets.prompt import PromptInput
from ba_tui.faces.tui.widgets.start_page import look_for_suggestions, recent
from ba_tui.resources import user_home

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import AppActions
    from ba_tui.faces.tui.widgets.ask import AskPanel

log = logging.getLogger(__name__)
LEAVING = "leave unsaved"
LATER = 2.0
"""Seconds until postponed work is done, when the first prompt was sent at once."""


class ChatScreen(Screen[None]):
    AUTO_FOCUS = ""

    def __init__(self, connect: Connect, start: Start, parts: AppParts) -> None:
        super().__init__(id="chat")
        self.parts = parts
        keys = [Binding(row.keys, f"act('{row.name}')", row.summary, show=False) for row in parts.rows if row.keys]
        self._bindings.key_to_bindings.update(BindingsMap(keys).key_to_bindings)
        self.session = OpenSession(connect, start)
        self.turns = Turns(self.session, self._start_following, self._refused)
        self.early: list[Key | Paste] | None = []
        """Keys that were typed before the text was handed over."""
        self.presses = Presses()
        self.transcript = TranscriptView()
        self.main_area = MainArea(self.transcript, lambda: self.turns.busy, partial(parts.view, "plan"))
        self.ask: AskPanel | None = None
        """Made with the first question."""
        self.activity = Activity()
        self.notices = NoticeStrip(lambda: bool(self.ask and self.ask.waiting))
        self.queue = QueueLines()
        self.composer = Composer()
        self.commands = CommandTable(self, parts.rows)
        self.turns.alone = self.commands.alone
        self.composer.find_commands = self.commands.complete
        self.composer.takes_path = self.commands.takes_path
        self.composer.is_choice = self.main_area.is_choice
        self.composer.mentions = partial(mentions, self)
        self.composer.prompt.to_background = partial(view.detach, self)
        self.status = StatusLine()
        self._meters: tuple[EventPane, ...] = (self.main_area, self.status)
        self._live: tuple[EventPane, ...] = (
            self.activity,
            self.notices,
            *(resolve_name(name)(self) for name in parts.panes),
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
        prompts.keep_early(self)
        self._show_queue()
        self.call_after_refresh(self.begin)

    @property
    def ba(self) -> AppActions:
        return cast("AppActions", self.app)  # pyright: ignore[reportUnknownMemberType] - App is generic

    # The session

    def begin(self) -> None:
        """Connect, off the loop; the user can type meanwhile."""
        self.run_worker(self._begin, group="begin", exclusive=True, exit_on_error=False)

    async def _begin(self) -> None:
        if not await sessions.begin(self):
            return
        self._show_queue()
        if self.turns.busy:
            self.set_timer(LATER, self._settle)
        else:
            self._settle()

    def _settle(self) -> None:
        """Start work that the first request need not wait for."""
        self.run_worker(self._keep_up, group="upkeep", exclusive=True, exit_on_error=False)
        self._look_around()

    async def _keep_up(self) -> None:
        """Maintain stored files while the app is open. Textual knows an async function only by its definition."""
        if upkeep := self.session.live[0].upkeep:
            await upkeep()

    def _look_around(self) -> None:
        """Load the start page, and the commands of the user and of the project."""
        self.run_worker(self._show_start_page, group="start", exclusive=True, exit_on_error=False)
        self.run_worker(self.commands.load, group="own", exclusive=True, exit_on_error=False)

    async def _show_start_page(self) -> None:
        """Show the start page while the session is empty. Files are read in a thread, after the first paint."""
        conversation = self.session.conversation
        if conversation is None or not self._fresh:
            return
        cwd, id, library = conversation.cwd, conversation.id, self.session.live[0].library

        def look() -> tuple[Sequence[SessionInfo], Sequence[str]]:
            return recent(library, id), look_for_suggestions(cwd, git=bool(git_branch(cwd)))

        found, offered = await asyncio.to_thread(look)
        if self._fresh and conversation is self.session.conversation:
            folder = paintable(short_folder(cwd, user_home()), newlines=False)
            await self.main_area.show_start(
                folder=folder, model=conversation.model, sessions=tuple(found), prompts=tuple(offered)
            )

    @property
    def _fresh(self) -> bool:
        return not (self.session.started or self.turns.busy or self.transcript.records)

    async def show_session(self) -> None:
        """Show the open session: its end immediately, the rest once it is read."""
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
            await prompts.follow_session(self)
        branch = await asyncio.to_thread(git_branch, conversation.cwd)
        self.status.show(branch=paintable(branch, newlines=False))
        # Last: it may be what called this.
        self.run_worker(partial(view.watch, self), group="watch", exclusive=True, exit_on_error=False)

    def show_facts(self) -> None:
        """Update the status line and the side panel."""
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
        """Show a terminal title: ``words``, else that an absent user is needed, else the title of the session."""
        if not words and self.ask and self.ask.waiting and not self.ba.app_focus:
            words = NEEDED
        title = self.session.conversation.title if self.session.conversation else ""
        self.post_message(WindowTitle(paintable(words or title or "ba", newlines=False), alert=alert))

    async def check_setup(self) -> None:
        """Show the setup when no model can be used yet; otherwise continue an open turn or warm up."""
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

    def resume_hint(self) -> str:
        """Return how to resume this session; empty when there is nothing to resume."""
        return self.session.resume_hint()

    # Leaving

    async def may_leave(self) -> bool:
        """Return whether the session is saved, or the user has asked to leave a second time."""
        if self.session.conversation is None:
            return True
        await self.session.conversation.saving.retry()
        lost = unsaved(self.session.conversation)
        if lost is None or lost.chosen or self.presses.said_once(LEAVING):
            return True
        text = f"This session is only in memory: {lost.folder} can't be written ({lost.why})."
        self.tell(Notice(text, "error", "/export FILE saves a copy elsewhere. Quit again to lose the session."))
        return False

    async def close_session(self, why: str = "") -> None:
        """Save unsent input, stop the turn and close the session's file. ``why``: the reason, unless the user quit."""
        await self.composer.release(self.turns.unsent)
        if self.session.conversation:
            await self.session.conversation.close(why)

    def exit_code(self) -> int:
        """Return the exit code of the app."""
        return saved_code(unsaved(self.session.conversation))

    def losses(self) -> Iterator[str]:
        """Yield messages about what could not be saved, with the text of prompts that were not sent."""
        for text in self.composer.drafts.lost if self.composer.drafts else ():
            yield f"This text was not sent and can't be saved:\n{paintable(text)}"
        if lost := unsaved(self.session.conversation):
            yield paintable(with_hint(*lost.at_end), newlines=False)

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
            # The end of its turn reports a refused prompt.
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

    # Input: commands are run immediately, everything else is a prompt.

    @on(Composer.Sent)
    def _sent(self, event: Composer.Sent) -> None:
        event.stop()
        text = event.text
        if self._choose(text):
            return
        called = self.commands.parse(text)
        if not text.strip() and self.session.conversation is None:
            self.begin()
        elif not text.strip() and self.session.read_only:
            self.call_command("fork")
        elif not text.strip() and not view.open_waiting(self):
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

    def _choose(self, text: str) -> bool:
        """Open the session or take the prompt that the number ``text`` names on the start page; return False for other
        text."""
        page = self.main_area.start_page
        if page is None:
            return False
        if session := page.choices.session(text):
            self.call_command("resume", session.id)
        elif prompt := page.choices.prompt(text):
            self.composer.put_back(prompt)
        else:
            return False
        return True

    @on(Paste)
    @on(Key)
    def _untaken(self, event: Key | Paste) -> None:
        """Pass on keys and pastes that arrived before the input had the focus."""
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
        """Load what the first prompt needs, and connect to the model, because the user types."""
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
        self.activity.note(weight_in_words(event.weights))

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

    async def _call(self, command: Command, argument: str) -> None:
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
        """Report and log a worker that crashed; stop the turn that it followed."""
        worker = cast("Worker[object]", event.worker)  # pyright: ignore[reportUnknownMemberType] - Worker is generic
        error = worker.error
        if event.state is not WorkerState.ERROR or error is None:
            return
        log.error("worker %s failed", worker.group, exc_info=error)
        words = f"Something in ba failed: {type(error).__name__}: {error}"
        self.tell(Notice(paintable(words, newlines=False), "error", "The log has the details."))
        if worker.group == "turn" and self.turns.cancel():
            self.turns.over(TurnEnded("error"))


WHOLE_NAME = 1_000
"""Higher than the score of any similar name."""


class PaletteCommands(Provider):
    """Ctrl+P: finds rows of the command table. Offers nothing while another screen than the chat is in front."""

    async def discover(self) -> Hits:
        for command, title in self._offered():
            yield DiscoveryHit(Content(title), partial(self._run, command), title, command.summary)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command, title in self._offered():
            score = max(matcher.match(title), matcher.match(command.summary))
            if find(query.strip().removeprefix("/"), (command,)):
                score += WHOLE_NAME
            if score > 0:
                yield Hit(score, matcher.highlight(title), partial(self._run, command), title, command.summary)

    def _offered(self) -> list[tuple[Command, str]]:
        here: Screen[Any] = self.screen
        if not isinstance(here, ChatScreen):
            return []
        rows = here.commands.rows
        return [(command, command.title if command.slash else command.name) for command in rows]

    def _run(self, command: Command) -> None:
        here: Screen[Any] = self.screen
        if not isinstance(here, ChatScreen):
            return
        if command.asks:
            # It needs words: they are typed in the input.
            here.composer.put_back(f"/{command.name} ")
        else:
            here.call_command(command.name)
