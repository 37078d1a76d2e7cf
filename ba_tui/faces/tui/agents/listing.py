"""The list of agents: those that run, those that have ended, and below them the ones that files describe."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import OptionList, Static

from ba_tui.core.errors import BaError, StorageError
from ba_tui.core.ports.agents import AgentLine as AgentFile
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.agents.live import LiveAgents
from ba_tui.faces.tui.agents.painted import spent
from ba_tui.faces.tui.agents.roster import AgentLine, Roster
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.replay import paced
from ba_tui.faces.tui.screens.overview.grouped import GroupedPicker, PickerGroup
from ba_tui.faces.tui.screens.picker import PickerChoice, app_of
from ba_tui.faces.tui.transcript.palette import UNICODE

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import Actions

FILE = "file:"
"""What begins the id of a choice that is a file."""
KEYS = "Enter open · p pause or continue · x stop · / search agent files · Esc close"
ENDED_KEYS = "Enter open · / search agent files · Esc close"
"""When no agent runs, none can be paused or stopped."""
EMPTY = "No agents yet. The model starts them with delegate_task; files in .ba/agents describe more."


class AgentList(GroupedPicker):
    """Newest first within each group. While it is shown it hears all events; it is drawn once a second at most."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x,delete", "stop", "Stop"),
        Binding("p", "pause", "Pause or continue"),
        Binding("slash", "files", "Search agent files", show=False),
    ]

    def __init__(self, chat: Actions) -> None:
        super().__init__("Agents", keys=ENDED_KEYS)
        self._chat = chat
        self._live = LiveAgents(chat)
        self._roster = Roster()
        self._files: list[AgentFile] = []
        self._stirred = True
        self._read = False
        self._stopping = ""
        self._moved = False
        """Whether the person chose a row; until then the first one is chosen."""

    def action_reload(self) -> None:
        """Fold the session anew, and read the files again."""
        self._roster = Roster()
        self.run_worker(self._follow, group="agents", exclusive=True, exit_on_error=False)
        self.run_worker(self._load, group="files", exclusive=True, exit_on_error=False)

    def on_mount(self) -> None:
        self.set_interval(1.0, self._tick)

    async def _follow(self) -> None:
        _, conversation = self._chat.session.live
        roster = self._roster
        self.call_later(self._tick)
        try:
            async for number, event in paced(conversation.follow()):
                if roster.apply(event) is not None:
                    self._stirred = True
                if number == 1:
                    # Drawn once all that was waiting is folded.
                    self.call_later(self._tick)
        except StorageError as error:
            self.say(error.with_hint)

    async def _load(self) -> None:
        files = self._chat.session.live[1].inventory.agents
        try:
            self._files = list(await asyncio.to_thread(files.lines)) if files else []
        except BaError as error:
            self.say(error.with_hint)
        self._read, self._stirred = True, True
        self._tick()

    def _tick(self) -> None:
        """Draw again what has changed; times change while an agent runs."""
        if self.is_mounted and (self._stirred or self._roster.running()):
            self._stirred = False
            self._draw()

    def _draw(self) -> None:
        now = time.time()
        lines = list(reversed(self._roster.lines.values()))
        running = [line for line in lines if self._live.running(line)]
        ended = [line for line in lines if line not in running]
        names = max((len(each.name) for each in self._files), default=0)
        shown = [
            (f"Running ({len(running)})", [_choice(line, now) for line in running]),
            (f"Ended ({len(ended)})", [_choice(line, now) for line in ended]),
            (f"Agent files ({len(self._files)})", [_file(each, names) for each in self._files]),
        ]
        self.groups = [PickerGroup(head, choices) for head, choices in shown if choices]
        self.empty = EMPTY if self._read else "Looking …"
        waiting = sum(line.state == "waiting" for line in running)
        parts = [f"{len(running)} running" if running else "", f"{waiting} waiting for you" if waiting else ""]
        parts.append(f"{len(ended)} ended" if ended else "")
        self.query_one(".title", Static).update(f"Agents: {', '.join(filter(None, parts))}" if lines else "Agents")
        before, self.keys = self.keys, KEYS if running else ENDED_KEYS
        if before != self.keys and not self._stopping:
            self.say(self.keys)
        self.refill()
        if not self._moved:
            options = self.query_one(OptionList)
            options.highlighted = next((at for at, row in enumerate(options.options) if not row.disabled), None)

    def _line(self) -> AgentLine | None:
        """The agent under the cursor."""
        return self._roster.lines.get(self.highlighted or "")

    def choose(self, id: str) -> None:
        if id.startswith(FILE):
            from ba_tui.faces.tui.screens.agents import AgentPage  # noqa: PLC0415 - for files alone

            files = self._chat.session.live[1].inventory.agents
            wanted = next((each for each in self._files if f"{FILE}{each.path}" == id), None)
            if files and wanted:
                app_of(self).push_screen(AgentPage(files, wanted))
        elif id in self._roster.lines:
            from ba_tui.faces.tui.agents.screen import AgentScreen  # noqa: PLC0415 - most lists are only read

            app_of(self).push_screen(AgentScreen(self._chat, id))

    def action_files(self) -> None:
        from ba_tui.faces.tui.screens.agents import AgentBrowser  # noqa: PLC0415 - see above

        if files := self._chat.session.live[1].inventory.agents:
            app_of(self).push_screen(AgentBrowser(files))

    def action_step(self, by: int) -> None:
        super().action_step(by)
        self._moved = True
        if self._stopping:
            self._stopping = ""
            self.say(self.keys)

    def action_pause(self) -> None:
        if line := self._line():
            self.say(self._live.pause(line))

    def action_stop(self) -> None:
        line = self._line()
        if line is None:
            return
        if not self._live.running(line):
            self.say(f"{line.name} has ended already.")
        elif self._stopping != line.agent_id:
            self._stopping = line.agent_id
            self.say(f"Press x again to stop {line.name}.")
        else:
            self._stopping = ""
            self.say(self._live.stop(line))


def _choice(line: AgentLine, now: float) -> PickerChoice:
    tokens = short_count(line.tokens).rjust(6) if line.tokens else ""
    seconds = spent(line.seconds(now)).rjust(6) if line.ended or line.running else ""
    where = "background: " if line.background and line.running else ""
    sign = getattr(UNICODE, line.state)
    cells = (f"{sign} {line.name}  {line.description}", count(line.calls, "call").rjust(8), tokens, seconds)
    return PickerChoice(line.agent_id, cells, f"{where}{line.words}")


def _file(file: AgentFile, names: int) -> PickerChoice:
    """``names``: characters of the longest name, so that what they are for stands in a column."""
    state = "" if file.state == "ready" else file.state
    about = f"! {file.trouble}" if file.trouble else file.description
    return PickerChoice(f"{FILE}{file.path}", (f"{file.name:<{names}}  {about}", state, file.source))
