"""The agent browser: every agent that a file describes; one of them in full on Enter.

Which agents there are and what becomes of their files is the business of ``core.ports.agents.Agents``.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.agents import AgentLine, Agents, AgentState
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.rows import painted
from ba_tui.faces.tui.screens.picker import LOW, Picker, PickerChoice, app_of
from ba_tui.faces.tui.screens.skill_page import LABEL, listed, plain
from ba_tui.faces.tui.transcript.page import MarkdownPage
from ba_tui.faces.tui.transcript.view import TranscriptView

KEYS = "Enter opens · Esc closes · To start one, ask for it by its name."
MEANING: dict[AgentState, str] = {
    "ready": "Ready: all that its file asks for is supported.",
    "partly": "Partly: some of what its file asks for is not supported.",
    "broken": "Broken: it can't be used.",
    "off": "Off: its file switches it off.",
    "shadowed": "Hidden by another agent of that name.",
}


class AgentBrowser(Picker):
    """Typing finds by name, state, source, model, tools and words of the description."""

    def __init__(self, agents: Agents) -> None:
        super().__init__("Agents", (), keys=KEYS)
        self.empty = "Looking …"
        self._agents = agents
        self._lines: dict[str, AgentLine] = {}

    def on_mount(self) -> None:
        self.run_worker(self._load, group="agents", exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        try:
            lines = await asyncio.to_thread(self._agents.lines)
        except BaError as error:
            self.say(error.with_hint)
            return
        self._lines = {line.path: line for line in lines}
        self.empty = "No agents were found. They are Markdown files in .ba/agents or .claude/agents."
        self.choices = [_choice(line) for line in lines]
        broken = sum(line.state == "broken" for line in lines)
        parts = [count(len(lines), "agent"), f"{broken} can't be used" if broken else ""]
        self.query_one(".title", Static).update(", ".join(filter(None, parts)))
        self.refill()

    def choose(self, id: str) -> None:
        if id in self._lines:
            app_of(self).push_screen(AgentPage(self._agents, self._lines[id]))


class AgentPage(ModalScreen[None]):
    """What ba makes of the file of one agent, and the file's text."""

    CSS_PATH = "../styles/screens.tcss"
    VERTICAL_BREAKPOINTS = LOW
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "close", "Close")]

    def __init__(self, agents: Agents, line: AgentLine) -> None:
        super().__init__(classes="picker")
        self._agents = agents
        self._line = line
        self._prompt = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(painted(self._line.name), classes="title", markup=False)
            yield MarkdownPage()
            yield Static("↑ ↓ scroll · / searches · Esc closes", classes="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(MarkdownPage).focus()
        self.run_worker(self._load, group="page", exit_on_error=False)

    async def _load(self) -> None:
        try:
            self._prompt = "" if self._line.trouble else await asyncio.to_thread(self._agents.prompt, self._line.path)
        except BaError as error:
            self._prompt = plain(error.with_hint)
        self.query_one(MarkdownPage).read(page(self._line, self._prompt))

    def action_close(self) -> None:
        self.dismiss()

    @on(TranscriptView.CopyRequested)
    def _copy(self, event: TranscriptView.CopyRequested) -> None:
        event.stop()
        self.post_message(CopyToClipboard(self._prompt))

    @on(MarkdownPage.LinkFollowed)
    def _followed(self, event: MarkdownPage.LinkFollowed) -> None:
        """What a file names is not opened; the person gets the address."""
        event.stop()
        self.post_message(CopyToClipboard(event.address))
        self.query_one(".keys", Static).update(painted(f"Copied: {event.address}"))

    @on(TranscriptView.Opened)
    def _opened(self, event: TranscriptView.Opened) -> None:
        """It is open already."""
        event.stop()


def _choice(line: AgentLine) -> PickerChoice:
    below = f"! {line.trouble}" if line.trouble else line.description
    left = " ".join((*line.unsupported, *line.warnings, line.path))
    model = line.model.rpartition("/")[2]
    return PickerChoice(
        line.path, (line.name, line.state, line.source, _tools(line, short=True), model), below, keywords=left
    )


def _tools(line: AgentLine, *, short: bool = False) -> str:
    if line.trouble:
        return ""
    if line.tools is not None:
        return count(len(line.tools), "tool") if short else ", ".join(line.tools) or "none"
    return f"all but {', '.join(line.without)}" if line.without and not short else "all tools"


def page(line: AgentLine, prompt: str) -> str:
    """The page as Markdown; only ``prompt`` may bring signs of its own."""
    facts = [("State", MEANING[line.state]), ("Source", f"{line.source} · {line.path}")]
    if not line.trouble:
        facts += [("Model", line.model or "that of the session"), ("Tools", _tools(line))]
        facts.append(("Limits", f"{f'{line.limit}; ' if line.limit else ''}{line.max_loops} model requests a task"))
    if line.color:
        facts.append(("Colour", line.color))
    parts = ["\\\n".join(f"**{name}**{' ' * (LABEL - len(name))}{plain(text)}" for name, text in facts)]
    if line.trouble:
        parts.append(f"**Broken:** {plain(line.trouble)}")
    # Descriptions can be as long as a screen.
    parts += [listed("Not supported", line.unsupported), listed("Warnings", line.warnings), plain(line.description)]
    if line.ignored:
        parts.append(f"**Ignored fields:** {plain(', '.join(line.ignored))}")
    if prompt.strip():
        parts += ["---", prompt]
    return "\n\n".join(part for part in parts if part)
