"""A real Conversation over a journal in memory and a model that says what a test tells it to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path

from ba_tui.core.agent import Agent
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import BaError, SessionLocked, SessionNotFound, UsageError
from ba_tui.core.events import Event, MessageDone, Mode, Notice, TextDelta, Titled
from ba_tui.core.messages import Message, Text, ToolUse, Usage
from ba_tui.core.ports.brain import AdmittedPrompt, Inventory
from ba_tui.core.ports.context import Condenser, ContextPart, Suggestion, Weight
from ba_tui.core.ports.contributions import CheckResult
from ba_tui.core.ports.permissions import FolderTrust, RuleLine, RuleScope, RuleVerdict
from ba_tui.core.ports.sessions import ImportedSession, Outline, SavedRequest, SessionInfo
from ba_tui.core.ports.settings import SettingsForm
from ba_tui.core.ports.tools import Job, ToolFigures, ToolLine
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.core.services import Services
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Listener
from tests.faces.tui.fake_setup import MODELS, Ways
from tests.faces.tui.journal import Memory

STEP = str | Message | BaseException | asyncio.Event


@dataclass
class Script:
    """A provider. Each request plays one list of steps: words stream, an Event is waited for, an error is raised."""

    turns: list[list[STEP]] = field(default_factory=list)
    model: ModelInfo = MODELS[0]
    requests: list[ModelRequest] = field(default_factory=list)

    def connect(self) -> None: ...

    async def close(self) -> None: ...

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        self.requests.append(request)
        steps = self.turns.pop(0) if self.turns else ["Done."]
        words: list[str] = []
        for step in steps:
            match step:
                case str():
                    words.append(step)
                    yield TextDelta(step)
                case asyncio.Event():
                    await step.wait()
                case Message():
                    yield step
                    return
                case BaseException():
                    raise step
        yield answer("".join(words), model=self.model.id)


def answer(text: str, *calls: ToolUse, model: str = "demo/tour") -> Message:
    usage = Usage(1_200, 80, 10_000)
    return Message("assistant", (Text(text), *calls), usage, "tool_use" if calls else "end_turn", model, "assistant")


class Rules:
    def __init__(self) -> None:
        self.mode: Mode = "default"
        self.held = [
            RuleLine("shell(rm *)", "deny", "user config.yaml", 2, "user"),
            RuleLine("read_file", "allow", "built in", 40, "bundled"),
        ]

    def set_mode(self, mode: Mode) -> None:
        self.mode = mode

    def modes(self) -> Sequence[Mode]:
        return ("default", "accept-edits", "plan", "auto")

    def rules(self) -> Sequence[RuleLine]:
        return sorted(self.held, key=lambda line: ("deny", "ask", "allow").index(line.verdict))

    def add(self, rule: str, verdict: RuleVerdict, scope: RuleScope) -> RuleLine:
        if rule == "bad":
            raise UsageError("bad is no rule.", "Name a tool.")
        line = RuleLine(rule, verdict, f"{scope} config", 0, scope)
        self.held = [line, *(held for held in self.held if held != line)]
        return line

    def remove(self, rule: RuleLine) -> None:
        self.held.remove(rule)


@dataclass
class Brain:
    script: Script
    tools: Sequence[Tool] = ()
    permissions: Rules = field(default_factory=Rules)
    warmed: list[str] = field(default_factory=list)
    parts: Sequence[ContextPart] = (
        ContextPart("System prompt", 1_900, "built in", exact=True),
        ContextPart("Memory files", 240, "AGENTS.md"),
        ContextPart("Conversation", 800, "2 messages"),
    )
    inventory: Inventory = field(default_factory=Inventory)
    condenser: Condenser | None = None
    listeners: Sequence[Listener] = ()
    refusals: list[Exception] = field(default_factory=list[Exception])

    async def admit(self, prompt: Message, branch: Branch) -> AdmittedPrompt:
        if self.refusals:
            raise self.refusals.pop(0)
        return AdmittedPrompt()

    def model(self, name: str) -> ModelInfo:
        found = next((model for model in MODELS if name in {model.id, model.name}), None)
        if found is None:
            raise UsageError(f"There is no model {name!r}.", "Did you mean demo/tour?")
        return found

    def agent(self, model: str) -> Agent:
        self.warmed.append(model)
        self.script.model = self.model(model)
        return Agent(self.script, self.tools, "You are ba.")

    async def close(self) -> None: ...

    def reminders(self, transcript: Transcript) -> Sequence[Message]:
        return ()

    def context(self, transcript: Transcript, model: str) -> Sequence[ContextPart]:
        return self.parts


@dataclass
class Shelf:
    """A library of sessions in memory."""

    brain: Brain
    cwd: Path
    journals: dict[str, Memory] = field(default_factory=dict)
    infos: dict[str, SessionInfo] = field(default_factory=dict)
    locked: set[str] = field(default_factory=set)
    model: str = "demo/tour"
    created: int = 0

    def put(self, id: str, title: str, events: Sequence[Event] = (), cwd: Path | None = None) -> SessionInfo:
        now, last = time.time(), f"The last words of {title}"
        self.infos[id] = SessionInfo(id, title, cwd or self.cwd, now, now, 2, 0.012, self.model, last)
        self.journals[id] = Memory(events)
        return self.infos[id]

    def sessions(self, *, everywhere: bool = False) -> Sequence[SessionInfo]:
        listed = [info for info in self.infos.values() if everywhere or info.cwd == self.cwd]
        return [info for info in listed if self.journals[info.id].events or info.title]

    def search(self, text: str, *, everywhere: bool = False) -> Sequence[SessionInfo]:
        placed = [changed(info, found=self._place(info.id, text)) for info in self.sessions(everywhere=everywhere)]
        return [info for info in placed if info.found or text.casefold() in info.title.casefold()]

    def _place(self, id: str, words: str) -> str:
        """The answer that holds ``words``."""
        events = self.journals[id].events
        texts = [event.message.text for event in events if isinstance(event, MessageDone)]
        return next((text for text in texts if words.casefold() in text.casefold()), "")

    def find(self, key: str, *, unattended: bool = True) -> SessionInfo:
        for info in self.infos.values():
            if info.id.startswith(key) or key.casefold() in info.title.casefold():
                return info
        raise SessionNotFound(f"No session matches {key!r}.", "See ba sessions list.")

    def create(self) -> Conversation:
        self.created += 1
        id, now = f"{self.created:08d}new", time.time()
        self.journals[id] = Memory()
        self.infos[id] = SessionInfo(id, "", self.cwd, now, now, model=self.model)
        return Conversation(self.infos[id], self.journals[id], self.brain)

    def open(self, id: str) -> Conversation:
        if id in self.locked:
            raise SessionLocked("Session is in use by pid 1.", "Close it there.")
        return Conversation(self.infos[id], self.journals[id], self.brain)

    def view(self, id: str) -> Conversation:
        return Conversation(changed(self.infos[id], locked_by="pid 1"), self.journals[id], self.brain)

    def fork(self, id: str, upto: int | None = None) -> SessionInfo:
        return self.put(f"fork{len(self.infos)}", f"{self.infos[id].title} (fork)", self.journals[id].events)

    def rename(self, id: str, title: str) -> None:
        self.infos[id] = changed(self.infos[id], title=title)
        self.journals[id].append(Titled(title))

    def delete(self, id: str) -> None:
        del self.infos[id], self.journals[id]

    def take_in(self, path: Path, *, own_folder: bool = False) -> ImportedSession:
        raise UsageError(f"{path} is of no format that can be imported.")

    def outline(self, id: str) -> Outline:
        return Outline(Usage())

    def requests(self, id: str) -> Sequence[SavedRequest]:
        return ()

    def request(self, id: str, number: int, *, response: bool = False) -> bytes:
        raise UsageError(f"Session {id} has no saved requests.")

    def export(self, id: str, format: str, *, with_secrets: bool = False, for_model: bool = False) -> Iterator[str]:
        yield f"{format} of {id} with {len(self.journals[id].events)} events\n"


READ = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["path"],
}


@dataclass
class ToolShelf:
    """Tools of every state."""

    found: list[ToolLine] = field(
        default_factory=lambda: [
            ToolLine(
                "read_file",
                "core",
                description="Read a [text] file, with line numbers.\n\nUse it before you change anything.",
                category="files",
                tags=("text",),
                effect="read",
                schema=READ,
                figures=ToolFigures(24, 1, 2, 3, 0.0421, 0.2),
            ),
            ToolLine("web_fetch", "on", category="web", effect="network", breaker="opened", rest=60, slow=True),
            ToolLine("notebook", "off", category="files", description="Run cells of a notebook.", effect="execute"),
            ToolLine("weather", "deferred", "~/.config/ba/tools/weather.py:12", "Forecasts for a city.", "web"),
            ToolLine(
                "stocks", "broken", ".ba/tools/stocks.py", trouble=".ba/tools/stocks.py:3: No module named 'yfin'"
            ),
            ToolLine("diagram", "lacking", category="charts", trouble="needs the program dot: install graphviz"),
        ]
    )
    switched: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])

    def lines(self) -> Sequence[ToolLine]:
        return list(self.found)

    def switch(self, name: str, *, on: bool) -> None:
        if name == "weather" and not on:
            raise UsageError("weather is pinned by a skill.", "End the skill first.")
        self.switched.append((name, on))
        self.found = [changed(line, state="on" if on else "off") if line.name == name else line for line in self.found]


@dataclass
class JobShelf:
    """Background shells that a test begins and ends."""

    jobs: dict[str, Job] = field(default_factory=dict[str, Job])
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    listeners: set[Callable[[], None]] = field(default_factory=set[Callable[[], None]])
    detached: list[str] = field(default_factory=list[str])
    waits: bool = True

    def begin(self, id: str, command: str, since: float, output: str = "") -> None:
        self.jobs[id] = Job(id, command, since, None, "running", None, len(output), None)
        self.outputs[id] = output
        self.tell()

    def tell(self) -> None:
        for listener in tuple(self.listeners):
            listener()

    def list(self) -> Sequence[Job]:
        return tuple(self.jobs.values())

    def output(self, id: str) -> str:
        return self.outputs[id]

    async def end(self, id: str) -> None:
        job = self.jobs[id]
        self.jobs[id] = changed(job, state="killed", until=job.since + 75, exit_code=143)
        self.tell()

    def detach(self, call_id: str) -> bool:
        if self.waits:
            self.detached.append(call_id)
        return self.waits

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        self.listeners.add(listener)
        return lambda: self.listeners.discard(listener)


class Models:
    def models(self) -> Sequence[ModelInfo]:
        return MODELS


@dataclass
class Names:
    """What can be mentioned. ``weights`` are those of every prompt that holds the name."""

    found: Sequence[Suggestion] = (
        Suggestion("file", "src/app.py", "src/app.py"),
        Suggestion("folder", "src/", "src/"),
        Suggestion("file", "read me.md", "read me.md"),
        Suggestion("skill", "pdf", "pdf", "Reads and fills PDF files."),
    )
    weights: dict[str, Weight] = field(default_factory=dict)
    kept: list[bytes] = field(default_factory=list[bytes])

    async def search(self, query: str, limit: int = 50) -> Sequence[Suggestion]:
        return [each for each in self.found if query.casefold() in each.label.casefold()]

    async def keep(self, picture: bytes) -> str:
        self.kept.append(picture)
        return f"attachments/image-{len(self.kept)}.png"

    async def weigh(self, text: str) -> Sequence[Weight]:
        return [weight for name, weight in self.weights.items() if name in text]


@dataclass
class World:
    """Everything a test may look at, and the ``connect`` that the app is given."""

    cwd: Path
    script: Script = field(default_factory=Script)
    tools: Sequence[Tool] = ()
    notices: Sequence[Notice] = ()
    ways: Ways = field(default_factory=Ways)
    names: Names = field(default_factory=Names)
    gate: Callable[[], None] = lambda: None
    trust: FolderTrust | None = None
    settings: SettingsForm | None = None
    findings: Sequence[CheckResult | BaError] = ()
    """What the doctor finds."""
    added: list[Path] = field(default_factory=list[Path])
    """Folders that the user added."""

    def __post_init__(self) -> None:
        self.brain = Brain(self.script, self.tools)
        self.tool_shelf, self.job_shelf = ToolShelf(), JobShelf()
        self.shelf = Shelf(self.brain, self.cwd)
        self.brain.inventory = Inventory(self.tool_shelf, None, self.job_shelf, mentions=self.names)

    def connect(self) -> Services:
        self.gate()
        services = Services(self.shelf, Models(), self.ways, self.notices, trust=self.trust, settings=self.settings)
        return changed(services, checks=self._checks, with_folders=self._wider)

    def _checks(self) -> Iterator[CheckResult]:
        for finding in self.findings:
            if isinstance(finding, BaError):
                raise finding
            yield finding

    def _wider(self, folders: Sequence[Path]) -> Services:
        self.added[:] = folders
        return self.connect()
