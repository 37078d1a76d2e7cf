"""The transcript of one sub-agent: followed while it works, or read from the journal; words to it, its pause, its end.

Its events are folded only while this is shown.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key, Paste
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ba_tui.core.errors import StorageError
from ba_tui.core.events import Event, Rewound, TurnEnded
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.agents.live import LiveAgents
from ba_tui.faces.tui.agents.painted import spent
from ba_tui.faces.tui.agents.roster import AgentLine, Roster
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspected import inspected
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.replay import paced
from ba_tui.faces.tui.screens.picker import app_of
from ba_tui.faces.tui.transcript.palette import UNICODE
from ba_tui.faces.tui.transcript.records import ToolRow
from ba_tui.faces.tui.transcript.view import TranscriptView
from ba_tui.faces.tui.widgets.text_fields import ClusterInput, is_text

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import Actions

"""Events that are folded before keys are looked at again."""
COLOURS = {"ok": "$text-success", "failed": "$text-error", "cancelled": "$text-warning", "waiting": "$text-accent"}
RUNNING_KEYS = "Enter send · Alt+P pause · Alt+X stop · ↑ ↓ select · Esc back"
PAUSED_KEYS = "Enter send · Alt+P continue · Alt+X stop · ↑ ↓ select · Esc back"
ENDED_KEYS = "↑ ↓ select · Enter open · Space unfold · Ctrl+F search · Esc back"


class AgentScreen(ModalScreen[None]):
    """What ``agent_id`` was told, said and did. What is typed goes to its message line, as in the chat."""

    DEFAULT_CSS = """
    AgentScreen {
        background: $surface;
        & #agent { width: 100%; height: 100%; padding: 0 1; }
        & #agent-title { height: 1; text-style: bold; color: $accent; text-wrap: nowrap; text-overflow: ellipsis; }
        & #agent-state { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & TranscriptView { height: 1fr; background: $surface; }
        & Input { height: 1; border: none; padding: 0 1; background: $panel; }
        & .keys { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Back"),
        # Before the input, which would take the letter.
        Binding("alt+x", "stop", "Stop the agent; press it twice", priority=True),
        Binding("alt+p", "pause", "Pause the agent, or continue", priority=True),
        Binding("up", "record(-1)", "Previous record", show=False),
        Binding("down", "record(1)", "Next record", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
    ]

    def __init__(self, chat: Actions, agent_id: str) -> None:
        super().__init__()
        self.agent_id = agent_id
        self.transcript = TranscriptView(agent_id)
        self._chat = chat
        self._live = LiveAgents(chat)
        self._roster = Roster()
        self._told = ""
        self._stopping = 0.0

    def compose(self) -> ComposeResult:
        with Vertical(id="agent"):
            yield Static(id="agent-title", markup=False)
            yield Static(id="agent-state", markup=False)
            yield self.transcript
            yield ClusterInput(compact=True, select_on_focus=False)
            yield Static(classes="keys", markup=False)

    def on_mount(self) -> None:
        field = self.query_one(Input)
        field.cursor_blink = False
        field.placeholder = f"Message {paintable(self.line.name, newlines=False)}"
        self.transcript.focus()
        self.run_worker(self._follow, group="agent", exclusive=True, exit_on_error=False)
        self.set_interval(1.0, self.show_state)
        self.show_state()

    @property
    def line(self) -> AgentLine:
        """The agent, as far as is known."""
        return self._roster.lines.get(self.agent_id) or AgentLine(self.agent_id, "")

    # Events

    async def _follow(self) -> None:
        """Fold what the journal holds of the agent, then what comes."""
        _, conversation = self._chat.session.live
        try:
            async for _, event in paced(conversation.follow()):
                self._take(event)
        except StorageError as error:
            self.say(error.with_hint)

    def _take(self, event: Event) -> None:
        own = event.agent == self.agent_id
        before = self.line.running
        line = self._roster.apply(event)
        if own or event.agent.startswith(f"{self.agent_id}/"):
            self.transcript.apply(event)
        if before and not self.line.running and not own:
            # The turn that waited for it is over: no end of its own will come.
            self.transcript.apply(TurnEnded("interrupted", agent=self.agent_id, at=event.at))
        if own and isinstance(event, TurnEnded):
            self._told = ""
        if isinstance(event, Rewound) or (own and line is not None):
            self.call_later(self.show_state)

    # What is shown

    @property
    def running(self) -> bool:
        """Whether it can be told something, paused or stopped."""
        return self._live.running(self.line)

    def show_state(self) -> None:
        """Title, state and keys, as of now."""
        if not self.is_mounted:
            return
        line, running = self.line, self.running
        title = " · ".join(filter(None, (line.name, line.kind, line.description)))
        self.query_one("#agent-title", Static).update(paintable(title, newlines=False))
        self.query_one("#agent-state", Static).update(self._state(line, running=running))
        field = self.query_one(Input)
        had = field.has_focus
        field.display = running or bool(field.value)
        if had and not field.display:
            self.transcript.focus()
        keys = ENDED_KEYS if not running else PAUSED_KEYS if line.paused else RUNNING_KEYS
        self.query_one(".keys", Static).update(self._told or keys)

    def _state(self, line: AgentLine, *, running: bool) -> Content:
        if line.agent_id not in self._roster.lines:
            return Content.styled("Looking …", "$text-muted")
        waits = self._chat.ask.waiting if self._chat.ask else 0
        state = line.state if running or not line.running else "cancelled"
        word = {"ok": "finished", "failed": "not finished", "cancelled": "interrupted"}.get(state, "")
        if line.ending == "cancelled":
            word = "stopped"
        if running:
            word = "paused" if line.paused else "waiting for you" if state == "waiting" else "running"
        seconds = line.seconds(time.time()) if running or not line.running else 0.0
        facts = [
            "in the background" if line.background else "",
            "in a copy of the project" if line.worktree else "",
            count(line.calls, "call"),
            f"{short_count(line.tokens)} tokens" if line.tokens else "",
            spent(seconds) if seconds else "",
            line.model.rpartition("/")[2],
            line.trouble,
            line.worktree,
        ]
        asks = f"{count(waits, 'question')} waiting: Esc goes back to answer" if waits else ""
        sign = getattr(UNICODE, state)
        return Content.assemble(
            (f"{sign} {word}", COLOURS.get(state, "$text-accent")),
            (paintable("".join(f" · {fact}" for fact in facts if fact), newlines=False), "$text-muted"),
            (f"  {asks}" if asks else "", "$text-warning"),
        )

    def say(self, text: str) -> None:
        """In the place of the keys, until the next key."""
        self._told = paintable(text, newlines=False)
        self.show_state()

    # Keys

    def action_close(self) -> None:
        self.dismiss()

    def action_record(self, by: int) -> None:
        self.transcript.focus()
        self.transcript.action_record(by)

    def action_page(self, by: int) -> None:
        if by < 0:
            self.transcript.action_page_up()
        else:
            self.transcript.action_page_down()

    def action_pause(self) -> None:
        """Let it stand still before its next request, or go on."""
        self.say(self._live.pause(self.line))

    def action_stop(self) -> None:
        """Pressed twice, the agent and all below it end."""
        now = time.monotonic()
        if not self.running:
            self.say(f"{self.line.name} has ended already.")
        elif now - self._stopping > 2.0:
            self._stopping = now
            self.say(f"Press Alt+X again to stop {self.line.name}.")
        else:
            self._stopping = 0.0
            self.say(self._live.stop(self.line))

    def on_key(self, _event: Key) -> None:
        if self._told:
            self._told = ""
            self.show_state()

    def lead_to_input(self, event: Key | Paste) -> None:
        """Give the message line the focus when ``event``, which is not on its way yet, begins a message."""
        field = self.query_one(Input)
        writes = isinstance(event, Paste) or (is_text(event) and event.character != " " and "+" not in event.key)
        if writes and field.display and not field.has_focus and not self.transcript.searching:
            self.set_focus(field)

    @on(Input.Submitted)
    def _send(self, event: Input.Submitted) -> None:
        event.stop()
        if not event.value.strip():
            return
        told, words = self._live.tell(self.line, event.value)
        if told:
            self.query_one(Input).value = ""
        self.say(words)

    # What the transcript posts up

    @on(TranscriptView.Opened)
    def _opened(self, event: TranscriptView.Opened) -> None:
        event.stop()
        record = event.record
        if isinstance(record, ToolRow) and record.agents:
            app_of(self).push_screen(AgentScreen(self._chat, record.agents[0].agent_id))
            return
        from ba_tui.faces.tui.inspector.pane import InspectorScreen  # noqa: PLC0415 - not for those who only watch

        inventory = self._chat.session.live[1].inventory
        app_of(self).push_screen(InspectorScreen(inspected(record, inventory.results, inventory.feature(Datasets))))

    @on(TranscriptView.CopyRequested)
    def _copy(self, event: TranscriptView.CopyRequested) -> None:
        event.stop()
        self.post_message(CopyToClipboard(event.text))
