"""The transcript of one sub-agent, live or from the journal; with a message line, pause and stop.

Its events are folded only while the screen is visible.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key, Paste
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from ba_tui.core.errors import BaError, StorageError
from ba_tui.core.events import Event, Rewound, TurnEnded
from ba_tui.core.ports.agents import AgentLine as AgentFile
from ba_tui.core.ports.agents import Agents, AgentState, Delegation
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.model import inspected
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.roster import Roster, RosterEntry, spent
from ba_tui.faces.tui.screens.list_screen import ListContent, ListRow, ListScreen
from ba_tui.faces.tui.screens.live_list import LiveList
from ba_tui.faces.tui.screens.sheet import MarkdownSheet, app_of, bullets, fact_lines, plain
from ba_tui.faces.tui.transcript.palette import UNICODE
from ba_tui.faces.tui.transcript.records import ToolRow
from ba_tui.faces.tui.transcript.view import TranscriptView, paced
from ba_tui.faces.tui.widgets.text_fields import ClusterInput, is_text

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import Actions

EMPTY = "No agents yet. The model starts them with delegate_task; files in .ba/agents describe more."
Row: TypeAlias = "ListRow[RosterEntry | AgentFile]"
OVER = ("finished", "error", "cancelled")


class LiveAgents:
    """Message, pause and stop for running agents of the open session. Results are in words for any screen. Agents that
    Delegation does not know belong to the turn.
    """

    def __init__(self, chat: Actions) -> None:
        self._chat = chat

    @property
    def _delegation(self) -> Delegation | None:
        conversation = self._chat.session.conversation
        return conversation.inventory.feature(Delegation) if conversation and not conversation.read_only else None

    def running(self, line: RosterEntry) -> bool:
        """Return whether it runs now: the journal may lack the end of an agent that ended with ba."""
        if not line.running:
            return False
        if self._chat.session.read_only:
            return True
        known = self._delegation.running() if self._delegation else ()
        mine = next((each for each in known if each.agent_id == line.agent_id), None)
        if mine is not None:
            return mine.activity not in OVER
        return self._chat.turns.busy or self._chat.turns.followed.outlived

    def tell(self, line: RosterEntry, text: str) -> tuple[bool, str]:
        """Return whether the message was accepted, and the text to show."""
        if self._delegation is not None and self._delegation.tell(line.agent_id, text):
            return True, f"Sent. {line.name} reads it before its next request."
        return False, self._why(line, "read messages")

    def pause(self, line: RosterEntry) -> str:
        if self._delegation is None or not self._delegation.pause(line.agent_id, on=not line.paused):
            return self._why(line, "be paused")
        return f"{line.name} continues." if line.paused else f"{line.name} pauses before its next request."

    def stop(self, line: RosterEntry) -> str:
        current = self._chat.turns.current
        if self._delegation is not None and self._delegation.cancel(line.agent_id):
            return f"Stopping {line.name} …"
        if current is not None and self.running(line):
            # An agent of a team or a plan: the turn knows every agent that works in it.
            current.cancel(line.agent_id)
            return f"Stopping {line.name} …"
        return self._why(line, "be stopped")

    def _why(self, line: RosterEntry, what: str) -> str:
        if self._chat.session.read_only:
            return "This session is open in another process, so it is read-only here."
        return f"{line.name} can't {what}." if self.running(line) else f"{line.name} has ended."


"""Events that are folded before keys are processed again."""
COLOURS = {"ok": "$text-success", "failed": "$text-error", "cancelled": "$text-warning", "waiting": "$text-accent"}
RUNNING_KEYS = "Enter send · Alt+P pause · Alt+X stop · ↑ ↓ select · Esc back"
PAUSED_KEYS = "Enter send · Alt+P continue · Alt+X stop · ↑ ↓ select · Esc back"
ENDED_KEYS = "↑ ↓ select · Enter open · Space unfold · Ctrl+F search · Esc back"


class AgentScreen(ModalScreen[None]):
    """The transcript of ``agent_id``. Typed text goes to the message line, as in the chat."""

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
        # Bound before the input, which would consume the letter.
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
    def line(self) -> RosterEntry:
        """Return the agent's row, as far as known."""
        return self._roster.lines.get(self.agent_id) or RosterEntry(self.agent_id, "")

    # Events

    async def _follow(self) -> None:
        """Fold the agent's events from the journal, then new ones."""
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
            # The turn that waited for it is over: its own end will not be recorded.
            self.transcript.apply(TurnEnded("interrupted", agent=self.agent_id, at=event.at))
        if own and isinstance(event, TurnEnded):
            self._told = ""
        if isinstance(event, Rewound) or (own and line is not None):
            self.call_later(self.show_state)

    # Display

    @property
    def running(self) -> bool:
        """Return whether it can get messages, be paused or stopped."""
        return self._live.running(self.line)

    def show_state(self) -> None:
        """Show the present title, state and keys."""
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

    def _state(self, line: RosterEntry, *, running: bool) -> Content:
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
        """Show a message in place of the keys, until the next key."""
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
        """Pause before its next request, or continue."""
        self.say(self._live.pause(self.line))

    def action_stop(self) -> None:
        """Stop the agent and all agents below it; needs a second press."""
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
        """Focus the message line if the pending ``event`` begins a message."""
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

    # Messages of the transcript

    @on(TranscriptView.Opened)
    def _opened(self, event: TranscriptView.Opened) -> None:
        event.stop()
        record = event.record
        if isinstance(record, ToolRow) and record.agents:
            app_of(self).push_screen(AgentScreen(self._chat, record.agents[0].agent_id))
            return
        inventory = self._chat.session.live[1].inventory
        app_of(self).push_screen(InspectorScreen(inspected(record, inventory.results, inventory.feature(Datasets))))

    @on(TranscriptView.CopyRequested)
    def _copy(self, event: TranscriptView.CopyRequested) -> None:
        event.stop()
        self.post_message(CopyToClipboard(event.text))


class AgentList(LiveList[RosterEntry | AgentFile]):
    """Newest first within each group."""

    ENTER: ClassVar[str] = "open"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "pause or continue"),
        Binding("x,delete", "stop", "stop"),
        Binding("slash", "files", "search agent files"),
    ]

    def __init__(self, chat: Actions) -> None:
        super().__init__(chat, "Agents")
        self._live = LiveAgents(chat)
        self._roster = Roster()
        self._files: list[AgentFile] = []
        self._has_read_files = False
        self._has_moved = False
        """Whether the user moved the cursor; until then it stays at the first row."""

    def restart(self) -> None:
        """Fold the session's events again, and reread the files."""
        self._roster = Roster()
        self.run_worker(self._read_files, group="files", exclusive=True, exit_on_error=False)

    def fold(self, event: Event) -> bool:
        return self._roster.apply(event) is not None

    def is_live(self) -> bool:
        return bool(self._roster.running())

    async def _read_files(self) -> None:
        files = self._chat.session.live[1].inventory.agents
        try:
            self._files = list(await asyncio.to_thread(files.lines)) if files else []
        except BaError as error:
            self.say(error.with_hint)
        self._has_read_files = self.changed = True
        self.tick()

    def draw(self) -> None:
        now = time.time()
        lines = list(reversed(self._roster.lines.values()))
        running = self._running_agents()
        ended = [line for line in lines if line not in running]
        rows = [_agent_row(line, now, f"Running ({len(running)})") for line in running]
        rows += [_agent_row(line, now, f"Ended ({len(ended)})") for line in ended]
        names = max((len(each.name) for each in self._files), default=0)
        rows += [_file_row(each, names, f"Agent files ({len(self._files)})") for each in self._files]
        waiting = sum(line.state == "waiting" for line in running)
        parts = [f"{len(running)} running" if running else "", f"{waiting} waiting for you" if waiting else ""]
        parts.append(f"{len(ended)} ended" if ended else "")
        title = f"Agents: {', '.join(filter(None, parts))}" if lines else "Agents"
        self.show(ListContent(rows, title, EMPTY if self._has_read_files else self.READING))
        if not self._has_moved:
            self.query_one(OptionList).action_first()

    def _running_agents(self) -> list[RosterEntry]:
        return [line for line in reversed(self._roster.lines.values()) if self._live.running(line)]

    def footer(self) -> list[str]:
        """Return the keys: without a running agent, none can be paused or stopped."""
        keys = super().footer()
        return keys if self._running_agents() else [key for key in keys if key[:2] not in {"p ", "x "}]

    @property
    def _agent(self) -> RosterEntry | None:
        """The agent at the cursor."""
        return self._roster.lines.get(self.highlighted or "")

    def choose(self, row: Row) -> None:
        if isinstance(row.value, AgentFile):
            if files := self._chat.session.live[1].inventory.agents:
                app_of(self).push_screen(AgentPage(files, row.value))
        elif row.value:
            app_of(self).push_screen(AgentScreen(self._chat, row.id))

    def action_files(self) -> None:
        if files := self._chat.session.live[1].inventory.agents:
            app_of(self).push_screen(AgentBrowser(files))

    def action_step(self, by: int) -> None:
        super().action_step(by)
        self._has_moved = True

    def action_pause(self) -> None:
        if line := self._agent:
            self.say(self._live.pause(line))

    def action_stop(self) -> None:
        line = self._agent
        if line is None:
            return
        if not self._live.running(line):
            self.say(f"{line.name} has ended already.")
        elif self.confirmed(line.agent_id, f"Press x again to stop {line.name}."):
            self.say(self._live.stop(line))


def _agent_row(line: RosterEntry, now: float, group: str) -> Row:
    tokens = short_count(line.tokens).rjust(6) if line.tokens else ""
    seconds = spent(line.seconds(now)).rjust(6) if line.ended or line.running else ""
    where = "background: " if line.background and line.running else ""
    sign = getattr(UNICODE, line.state)
    cells = (f"{sign} {line.name}  {line.description}", count(line.calls, "call").rjust(8), tokens, seconds)
    return ListRow(line.agent_id, cells, f"{where}{line.words}", value=line, group=group)


def _file_row(file: AgentFile, names: int, group: str) -> Row:
    """Return the row of a file. ``names``: characters of the longest name, to align the descriptions."""
    state = "" if file.state == "ready" else file.state
    about = f"! {file.trouble}" if file.trouble else file.description
    return ListRow(f"file:{file.path}", (f"{file.name:<{names}}  {about}", state, file.source), value=file, group=group)


MEANING: dict[AgentState, str] = {
    "ready": "Ready: all that its file asks for is supported.",
    "partly": "Partly: some of what its file asks for is not supported.",
    "broken": "Broken: it can't be used.",
    "off": "Off: its file switches it off.",
    "shadowed": "Hidden by another agent of that name.",
}


class AgentBrowser(ListScreen[AgentFile]):
    """Typing searches name, state, source, model, tools and description."""

    ENTER: ClassVar[str] = "open"
    EMPTY: ClassVar[str] = "No agents were found. They are Markdown files in .ba/agents or .claude/agents."

    def __init__(self, agents: Agents) -> None:
        super().__init__("Agents")
        self._agents = agents

    def read(self) -> ListContent[AgentFile]:
        lines = self._agents.lines()
        broken = sum(line.state == "broken" for line in lines)
        parts = [count(len(lines), "agent"), f"{broken} can't be used" if broken else ""]
        return ListContent([_browser_row(line) for line in lines], ", ".join(filter(None, parts)))

    def footer(self) -> list[str]:
        return [*super().footer(), "To start one, ask for it by its name."]

    def choose(self, row: ListRow[AgentFile]) -> None:
        if row.value:
            app_of(self).push_screen(AgentPage(self._agents, row.value))


class AgentPage(MarkdownSheet):
    """ba's reading of one agent file, and the file's text."""

    def __init__(self, agents: Agents, line: AgentFile) -> None:
        super().__init__(line.name)
        self._agents = agents
        self._line = line

    def on_mount(self) -> None:
        self.run_worker(self._load, group="page", exit_on_error=False)

    async def _load(self) -> None:
        try:
            self.text = "" if self._line.trouble else await asyncio.to_thread(self._agents.prompt, self._line.path)
        except BaError as error:
            self.text = plain(error.with_hint)
        self.read(page(self._line, self.text))


def _browser_row(line: AgentFile) -> ListRow[AgentFile]:
    below = f"! {line.trouble}" if line.trouble else line.description
    cells = (line.name, line.state, line.source, _tools(line, short=True), line.model.rpartition("/")[2])
    keywords = " ".join((*line.unsupported, *line.warnings, line.path))
    return ListRow(line.path, cells, below, keywords=keywords, value=line)


def _tools(line: AgentFile, *, short: bool = False) -> str:
    if line.trouble:
        return ""
    if line.tools is not None:
        return count(len(line.tools), "tool") if short else ", ".join(line.tools) or "none"
    return f"all but {', '.join(line.without)}" if line.without and not short else "all tools"


def page(line: AgentFile, prompt: str) -> str:
    """Return the page as Markdown; only ``prompt`` may contain markup."""
    facts = [("State", MEANING[line.state]), ("Source", f"{line.source} · {line.path}")]
    if not line.trouble:
        facts += [("Model", line.model or "that of the session"), ("Tools", _tools(line))]
        facts.append(("Limits", f"{f'{line.limit}; ' if line.limit else ''}{line.max_loops} model requests a task"))
    if line.color:
        facts.append(("Colour", line.color))
    parts = [fact_lines(facts)]
    if line.trouble:
        parts.append(f"**Broken:** {plain(line.trouble)}")
    # Descriptions can fill a screen.
    parts += [bullets("Not supported", line.unsupported), bullets("Warnings", line.warnings), plain(line.description)]
    if line.ignored:
        parts.append(f"**Ignored fields:** {plain(', '.join(line.ignored))}")
    if prompt.strip():
        parts += ["---", prompt]
    return "\n\n".join(part for part in parts if part)
